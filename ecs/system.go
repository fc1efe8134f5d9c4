package ecs

import (
	"slices"

	"github.com/stet-ecs/stet/ecs/internal/system"
	"github.com/stet-ecs/stet/ecs/internal/track"
	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/internal/digest"
)

// This file has the functions that package schedule needs from a world.

var (
	_ system.World = rawWorld{}
	_ system.Query = (*join)(nil)
)

// RunSystem implements [system.World].
func (w rawWorld) RunSystem(s *system.System, run func()) {
	if debug {
		defer w.stepping(s)()
	}
	outer := w.system
	w.system = &s.Name
	defer func() { w.system = outer }()
	run()
}

// RunTogether implements [system.World].
func (w rawWorld) RunTogether(names string, run func()) {
	w.refreshIndexes()
	if w.clock.Undone {
		w.clock.End()
	}
	outer := w.system
	w.system, w.parallel, w.clock.Shared = &names, true, true
	defer func() { w.system, w.parallel, w.clock.Shared = outer, false, false }()
	run()
}

// Stage implements [system.World].
func (w rawWorld) Stage() uint64 {
	w.verify()
	w.newSpan()
	return w.clock.Span
}

// Sums implements [system.World].
func (w rawWorld) Sums(before []uint64, span uint64) []uint64 {
	var h digest.Hasher
	now := make([]uint64, 0, 1+len(w.storages)+len(w.resources))
	add := func(t *track.Tracker, sum func() uint64) {
		if j := len(now); j < len(before) && t.Span < span {
			now = append(now, before[j])
			return
		}
		now = append(now, sum())
	}
	add(&w.entities.rows, func() uint64 { return w.entities.sum(&h) })
	for _, s := range w.World.Storages() {
		add(s.tracked(), func() uint64 {
			if !digested(s.Raw()) {
				return 0
			}
			return storageSum(&h, s.Raw())
		})
	}
	return now
}

// InSystem implements [system.World].
func (w rawWorld) InSystem() bool { return w.system != nil }

// OneAtATime implements [system.World].
func (rawWorld) OneAtATime() bool { return debug }

// HistoryTicks implements [system.World].
func (w rawWorld) HistoryTicks() int { return w.options.History }

// Uses returns what a query with the access reads and writes, for package schedule.
func (a Access[T]) Uses() []raw.Use { return []raw.Use{a.use()} }

func (a Access[T]) use() raw.Use {
	if a.write {
		return a.s.use(raw.Writes, raw.Reads)
	}
	return a.s.use(raw.Reads, raw.Reads)
}

// Uses returns what drawing a number reads and writes, for package schedule.
func (r *Rand) Uses() []raw.Use { return r.state.Uses() }

// Uses returns what sending an event reads and writes, for package schedule.
func (e *Events[T]) Uses() []raw.Use { return e.queue.Uses() }

// Uses returns what reading events with r reads and writes, for package schedule.
func (r *EventReader[T]) Uses() []raw.Use {
	events := raw.Use{Storage: &r.events.queue.raw, Values: raw.Reads}
	return append(r.next.Uses(), events)
}

// Uses returns what a look-up in x reads and writes, for package schedule.
func (x *Index[T, K]) Uses() []raw.Use {
	u := x.s.use(raw.Reads, raw.Reads)
	u.Indexed = true
	return []raw.Use{u}
}

// Uses returns what a look-up of sources or targets reads and writes, for package schedule.
func (r *Relation[T]) Uses() []raw.Use {
	return append(r.sources.Uses(), raw.Use{Buffers: r.relations})
}

// Visited implements [system.Query].
func (j *join) Visited() uint64 { return j.visited }

// uses returns what a loop over the query reads and writes.
func (j *join) uses() []raw.Use {
	uses := []raw.Use{{Buffers: j}}
	add := func(s *set, values raw.Mode) {
		storage := j.w.storages[slices.Index(j.w.sets, s)].Raw()
		uses = append(uses, raw.Use{Storage: storage, Values: values, Members: raw.Reads})
	}
	for _, c := range j.columns {
		if c.write {
			add(c.set, raw.Writes)
		} else {
			add(c.set, raw.Reads)
		}
	}
	for _, s := range j.allSets {
		add(s, raw.Unused)
	}
	for _, p := range j.predicates {
		uses = append(uses, p.uses()...)
	}
	return uses
}

// bundleUses returns what creating entities with these components reads and writes.
func bundleUses(storages ...AnyStorage) []raw.Use {
	uses := []raw.Use{{Members: raw.Writes}}
	for _, s := range storages {
		uses = append(uses, s.Uses()...)
	}
	return uses
}
