// Package web shows the contents of a store or a save in a browser. A [Handler] serves a page and
// an API. A guard checks each request first. The files of the page are embedded, and the URL of the
// page contains its state. The API, at /api/v1/, returns documents. A session makes them from an
// inspect.View. The files of the package are:
//
//	handler.go, guard.go       access checks and the API
//	params.go, failure.go      parameters and errors
//	session.go                 queues of requests
//	anchors.go                 moves from one state to another
//	points.go, bar.go          points in time and the time bar
//	counter.go, keptcounts.go  rows written per tick
//	entities.go, entity.go     entity lists and single entities
//	diff.go                    the changes of a tick, and the differences of two states
//	series.go                  values over many ticks
//	map.go                     positions of entities
//	arrays.go                  stored arrays
//	health.go                  damage
//	follow.go                  changes of an open store
//
// A point in time is first resolved to a record. All other requests name a record. The data of a
// record never changes, so a browser caches the answers and only revalidates them. A long request
// is cancelled when its client disconnects. The handler never writes to the store.
//
// Two sessions answer requests, each with its own view. The fast session holds one state, and
// answers quick requests, which move through time. The slow session answers slow requests, so the
// fast session never waits for a slow request.
package web
