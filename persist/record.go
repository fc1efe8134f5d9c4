package persist

import (
	"time"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/journal"
)

// Record encodes a tick into the journal. [ecs.World.Commit] calls it.
func (s *Store) Record(c *ecs.Change) uint64 {
	defer s.notes.reset()
	if s.failed != nil {
		return c.Parent
	}
	s.notes.about(c.Parent)
	s.goOn()
	seq := s.journal.Next()
	s.dirty.all = s.dirty.all || c.Parent < s.since // Went back to before what dirty is relative to.
	if c.Parent+1 < seq {
		s.branched(c.Parent)
	}
	now := s.options.Now()
	payload := s.encoder.encode(s.journal.Buffer(), c, seq, s.ids[c.Parent], now)
	if n := len(s.schema.components); n != s.announced {
		if s.failed = s.journal.AppendPreamble(s.schema.encode()); s.failed != nil {
			return c.Parent // Err tells.
		}
		s.announced = n
	}
	size := int64(len(payload))
	s.await(seq, c.Tick)
	id, err := s.journal.AppendSummed(c.Parent, c.Tick, s.notes.flags(), payload, s.encoder.sum)
	if s.failed = err; err != nil {
		return c.Parent
	}
	s.grown += size
	s.remember(id)
	s.committedAt = now
	return id.Seq
}

// remember keeps id for as long as the history can go back to it.
func (s *Store) remember(id journal.ID) {
	s.ids[id.Seq] = id
	if len(s.ids)%1024 == 0 {
		oldest := s.world.OldestMark()
		for seq := range s.ids {
			if seq < oldest {
				delete(s.ids, seq)
			}
		}
	}
}

// A tickRecorder makes the payload of a tick from what it changed. For each part it
// notes which pages it touches, completes what must be given whole, and encodes it.
type tickRecorder struct {
	*tickEncoder
	schema *schema
	whole  wholeList // What a tick may have to give though it did not change.
	notes  *notes    // Of the tick.
	dirty  *dirty    // Told what changed.
	rows   []ecs.Range
}

func newTickRecorder(s *schema, n *notes, d *dirty) *tickRecorder {
	return &tickRecorder{tickEncoder: newTickEncoder(), schema: s, notes: n, dirty: d}
}

// encode appends the payload of c, which becomes record seq, to buf.
func (t *tickRecorder) encode(buf []byte, c *ecs.Change, seq uint64, parent journal.ID, now time.Time) []byte {
	t.begin(buf, !t.notes.none(), parent, c.Tick, now)
	t.recordRegistry(c)
	t.storages(t.count(c))
	for s := range c.Storages() {
		if s.Storage.Persistent() {
			t.recordStorage(t.whole.complete(s, t.schema, seq, c.Parent))
		}
	}
	for s := range t.whole.rest(seq, c.Parent) {
		t.recordStorage(s)
	}
	t.recordOps(c)
	return t.end(t.notes)
}

func (t *tickRecorder) recordRegistry(c *ecs.Change) {
	change := c.Entities(t.rows[:0])
	t.rows = change.Rows
	if change.Changed {
		t.dirty.setRegistry(change)
	}
	rows, _, _ := c.World().Registry()
	t.registry(change, rows)
}

func (t *tickRecorder) recordStorage(c ecs.StorageChange) {
	number := t.schema.number(c.Storage)
	t.dirty.setStorage(number, c)
	t.storage(number, c)
}

func (t *tickRecorder) recordOps(c *ecs.Change) {
	for op := range c.Ops() {
		number := noComponent
		if op.Storage != nil {
			if !op.Storage.Persistent() {
				continue
			}
			number = t.schema.number(op.Storage)
		}
		t.dirty.setOp(op.Kind, number, op.Entity)
		t.ops.add(op.Kind, number, op.Entity)
	}
}

// count returns how many storages and resources the tick gives.
func (t *tickRecorder) count(c *ecs.Change) (n int) {
	for i := range t.whole {
		if t.whole[i].owed(c.Parent) {
			n++
		}
	}
	for s := range c.Changed() {
		if w := t.whole.find(s); s.Persistent() && (w == nil || !w.owed(c.Parent)) {
			n++
		}
	}
	return n
}
