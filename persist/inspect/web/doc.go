// Package web shows what lies in a store or a save in a browser: a [Handler] with an API and
// a page that asks it.
//
//	browser ──▶ guard ──▶ page       files that are embedded; the URL is the state
//	                 └──▶ /api/v1/…  documents ──▶ desk ──▶ inspect.View
//
//	who may ask, and what                handler.go, guard.go
//	parameters, and what went wrong      ask.go, failure.go
//	who waits for whom                   desk.go
//	from one state to another            anchors.go
//	points in time, and the time bar     points.go, bar.go
//	how many rows ticks wrote            counter.go, keptcounts.go
//	who is alive, and one of them        entities.go, entity.go
//	what a tick did, A → B               diff.go
//	over many ticks                      series.go
//	where entities are                   map.go
//	as it lies; what is damaged          arrays.go, health.go
//	what is written meanwhile            follow.go
//
// A point in time is resolved to a record first; all else is asked of a record. What a record
// leads to never changes, so a browser keeps the answers and only asks whether they still hold.
// Long answers end when whoever asked goes away. Nothing is ever written to the store.
//
// Answers come from two desks, each with a view of its own: one for what somebody waits for
// while they move through time, which holds one state; and one for what takes long, so that
// the first never waits for it.
package web
