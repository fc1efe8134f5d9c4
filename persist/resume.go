package persist

import (
	"cmp"
	"context"
	"time"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/persist/internal/catalog"
	"github.com/stet-ecs/stet/persist/internal/format"
	"github.com/stet-ecs/stet/persist/internal/image"
)

// resume makes a store whose journal has failed go on in a new one. On a full disk it removes
// what Retain lets go.
func (s *Store) resume(ctx context.Context, full bool) error {
	if s.copying != nil {
		s.abandon()
	}
	if _, err := s.written(ctx); err != nil { // It fails, as the journal has.
		return err
	}
	s.journal.Abandon()

	c := catalog.New(s.files)
	defer func() { _ = c.Log.Close() }()
	if err := c.Scan(ctx); err != nil {
		return err
	}
	durable, found, err := c.Continued(ctx, "")
	if err != nil {
		return err
	}
	why := cmp.Or(s.failed, s.journal.Err())
	s.failed = nil
	if err = s.openJournal(c.Log); err == nil {
		err = s.goOnFrom(ctx, c, durable, found, full)
		if err != nil {
			s.journal.Abandon()
		}
	}
	if err != nil {
		s.failed = why
	}
	return err
}

// goOnFrom journals the present state behind the newest durable one.
func (s *Store) goOnFrom(ctx context.Context, c *catalog.Catalog, durable *image.Image, found *catalog.Found, full bool) error {
	seq, tick := s.journal.Next(), s.world.Tick()
	now, err := s.now()
	if err != nil {
		return err
	}
	if err := s.world.Raw().Attach(s, seq); err != nil {
		return err
	}
	s.head = durable.ID.Seq
	s.adoptFiles(c, found)
	s.damaged = s.damaged || len(found.Skipped)+len(c.Problems()) > 0
	if full {
		s.pruneNow()
	}
	payload := s.encodeAll(durable, now)
	if err := s.announce(); err != nil {
		return err
	}
	s.mu.Lock()
	s.pending = nil // What failed will not be durable.
	s.mu.Unlock()
	s.await(seq, tick)
	id, err := s.journal.Append(durable.ID.Seq, tick, 0, payload)
	if err == nil {
		err = s.journal.Sync(ctx)
	}
	if err != nil {
		return err
	}
	clear(s.ids)
	s.ids[seq], s.committedAt, s.head, s.since = id, now, seq, seq
	s.notes.Reset()
	s.encoder = newTickRecorder(s.schema, &s.notes, &s.dirty)
	for _, st := range s.world.Raw().Storages() {
		s.encoder.whole.add(st, seq)
	}
	if s.begin("", s.journal.Sync) == nil { // Should it fail, the next tick tries again.
		s.hand()
	}
	return nil
}

// encodeAll returns the payload of a tick that gives the whole state, whatever its
// parent is: its operations clear the world and make it again.
func (s *Store) encodeAll(parent *image.Image, now time.Time) []byte {
	rows, alive, free := s.world.Raw().Registry()
	entities := raw.As[ecs.Entity](rows)
	registry := raw.EntityChange{Changed: true, Alive: alive, Free: free, Total: len(rows)}
	if len(rows) > 0 {
		registry.Rows = []raw.Range{{N: len(rows)}}
	}
	t := format.NewTickEncoder()
	t.Begin(s.journal.Buffer(), false, parent.ID, s.world.Tick(), now)
	t.Registry(registry, entities)
	var storages []raw.Storage
	for _, st := range s.world.Raw().Storages() {
		if st.Persistent() {
			storages = append(storages, st)
		}
	}
	t.Storages(len(storages))
	t.Ops.Add(raw.OpClear, format.NoComponent, 0)
	for _, e := range entities[:alive] {
		t.Ops.Add(raw.OpCreate, format.NoComponent, e)
	}
	for _, st := range storages {
		number, before := s.schema.Number(st), 0
		if number < len(parent.Components) {
			before = parent.Components[number].N
		}
		if !st.IsResource() {
			for _, e := range raw.As[ecs.Entity](st.Entities()) {
				if e != ecs.Vacant {
					t.Ops.Add(raw.OpAdd, number, e)
				}
			}
		}
		all := wholeStorage{Storage: st}
		t.Storage(number, all.change(before))
	}
	return t.End(&format.Notes{})
}
