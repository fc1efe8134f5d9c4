package inspect

import (
	"context"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist/internal/catalog"
	"github.com/stet-ecs/stet/persist/internal/format"
	"github.com/stet-ecs/stet/persist/internal/image"
	"github.com/stet-ecs/stet/persist/internal/snap"
)

// The declarations below export internals for tests in package inspect_test.

var (
	CompareEntities  = compareEntities
	DiffFields       = diffFields
	DiffImages       = diffImages
	AppendFieldsWith = appendFieldsWith
)

// Way returns the seqs of the path to record seq, as FindDivergence uses it.
func (v *View) Way(seq uint64) (seqs []uint64) {
	for _, e := range historyTo(v.cat, seq) {
		seqs = append(seqs, e.ID.Seq)
	}
	return seqs
}

// CountReads makes v read through the files that wrap() returns.
func (v *View) CountReads(wrap func(disk.FS) disk.FS) { v.cat.Files = wrap(v.cat.Files) }

// Replayed replays the records of v. It starts at im, or at the oldest state if im is nil.
func (v *View) Replayed(ctx context.Context, im *image.Image) (problems []error, records int, err error) {
	c := newReplayCheck(ctx, v.cat)
	if im != nil {
		err = c.from(ctx, im)
	} else {
		err = c.run(ctx)
	}
	return c.problems, c.replayed + c.rewound, err
}

// Followed wraps a follower.
type Followed struct{ f *follower }

// Follow returns a follower in the state im. The last argument has the values of the followed
// entity in im.
func Follow(im *image.Image, s *format.Schema, at *EntityState) *Followed {
	followed := at.Entity
	if followed == ecs.None {
		// Without an entity, follow the resources. A follower uses ecs.Vacant for them.
		followed = ecs.Vacant
	}
	f := &follower{
		entity: followed, id: im.ID, tick: im.Tick, schema: s, row: at.Row, holder: at.Holder,
		alive: im.Alive, free: im.Free, total: len(im.Registry),
		whole: func(context.Context, uint64) (*image.Image, error) { return im, nil },
	}
	for n, c := range im.Components {
		r := followedRow{n: c.Len(), row: at.Components[n].Row}
		if r.row >= 0 {
			r.value = c.Row(r.row)
		}
		f.rows = append(f.rows, r)
	}
	return &Followed{f}
}

func (d *Followed) Apply(ctx context.Context, t *format.Tick, id journal.ID) error {
	return d.f.apply(ctx, t, id)
}
func (d *Followed) State() (*EntityState, error) { return d.f.state() }
func (d *Followed) Entity() ecs.Entity           { return d.f.entity }

// Row returns the row and the value of component number n.
func (d *Followed) Row(n int) (row int, value []byte) { return d.f.has(n), d.f.rows[n].value }

// Column wraps a column of a state in memory.
type Column struct{ c *column }

// ColumnOf returns a column with the rows of im.
func ColumnOf(t require.TestingT, im *image.Image, component, field string) *Column {
	s := stateOf(im)
	s.wanted = func(c *image.Component) bool { return c.Name == component }
	c, err := newColumn(s, component, field)
	require.NoError(t, err)
	return &Column{c}
}

// Apply applies a tick to the column's state and reads the rows again. The parameter id is the ID
// of the state that the tick continues.
func (c *Column) Apply(ctx context.Context, t *format.Tick, id journal.ID) error {
	c.c.state.outline.ID = id
	if err := c.c.state.apply(t, id); err != nil {
		return err
	}
	return c.c.read(ctx)
}

// Rows returns the entity and the target of each row.
func (c *Column) Rows() (owners, targets []ecs.Entity) { return c.c.owners, c.c.targets }

// HeldWhole returns how many whole pages of component number n are in the cache of a sweep. It does
// not count pages of which only some rows are left.
func (s *Span) HeldWhole(n int) (held int) {
	k := s.of[n].sweptPages
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, p := range k.pages {
		if p.rows != nil && p.rows.few == nil {
			held++
		}
	}
	return held
}

// Held returns how many pages of component number n are in the cache of a sweep.
func (s *Span) Held(n int) int {
	k := s.of[n].sweptPages
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.pages)
}

// ReadAsStore calls f with the state in a save as if it were a snapshot of a store.
func (v *View) ReadAsStore(ctx context.Context, f func(*State) error) error {
	r, err := snap.Open(v.cat.Files, v.cat.Save, catalog.SnapshotName)
	if err != nil {
		return err
	}
	defer r.Close()
	s, err := newState(v, r, everyComponent)
	if err != nil {
		return err
	}
	if err := s.dropDead(ctx); err != nil {
		return err
	}
	return f(s)
}
