// Package web shows the contents of a store or a save in a browser. A [Handler] serves an API and a
// page that uses it.
//
//	browser ──▶ guard ──▶ page       embedded files; the URL holds the page's state
//	                 └──▶ /api/v1/…  documents ──▶ session ──▶ inspect.View
//
//	access checks and the API            handler.go, guard.go
//	parameters and errors                params.go, failure.go
//	queues of requests                   session.go
//	moves from one state to another      anchors.go
//	points in time and the time bar      points.go, bar.go
//	rows written per tick                counter.go, keptcounts.go
//	entity lists and single entities     entities.go, entity.go
//	the changes of a tick, A → B         diff.go
//	values over many ticks               series.go
//	positions of entities                map.go
//	stored arrays; damage                arrays.go, health.go
//	changes of an open store             follow.go
//
// A point in time is first resolved to a record. All other requests name a record. The data of a
// record never changes, so a browser caches the answers and only revalidates them. A long request
// is cancelled when its client disconnects. The handler never writes to the store.
//
// Two sessions answer requests, each with its own view. The fast session holds one state, and
// answers quick requests, which move through time. The slow session answers slow requests, so the
// fast session never waits for a slow request.
package web
