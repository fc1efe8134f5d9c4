package inspect

import (
	"context"
	"slices"

	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist/internal/catalog"
	"github.com/stet-ecs/stet/persist/internal/image"
)

// A Cursor holds one state of a store and can move to other states. Ticks contain only new values
// of rows, so replay only goes forward. To go back, a Cursor loads a snapshot and replays.
type Cursor struct {
	view *catalog.Catalog
	// image is the state to which ticks are applied. It may have rows of dead entities. For
	// example, after a rollback to a tick before an entity existed, its rows in no-rewind
	// components remain. After an error, image is nil.
	image *image.Image
	// settled is image without the rows of dead entities.
	settled *image.Image
	// shown is the result of Image, or nil before the call.
	shown *Image
	seq   uint64
}

// newCursor returns a cursor at the state after record seq. After an error the cursor has no
// state.
func newCursor(ctx context.Context, v *catalog.Catalog, seq uint64) (*Cursor, error) {
	c := &Cursor{view: v}
	return c, c.Seek(ctx, seq)
}

// Image returns the state of c. It is valid until the cursor moves to another state. It returns nil
// after an error of Seek.
func (c *Cursor) Image() *Image {
	if c.shown == nil && c.settled != nil {
		c.shown = NewImage(c.settled)
	}
	return c.shown
}

// State returns the state of c as a [State], which is completely in memory.
func (c *Cursor) State() *State { return stateOf(c.settled) }

// Seq returns the record that leads to the state of c.
func (c *Cursor) Seq() uint64 { return c.seq }

// Clone returns an independent cursor with a copy of the same state.
func (c *Cursor) Clone() *Cursor {
	d := &Cursor{view: c.view, seq: c.seq}
	if c.image != nil {
		d.image = c.image.Clone()
		d.settled = d.image.Settled()
	}
	return d
}

// Seek moves c to the state after record seq. It applies ticks to the current state, or loads the
// nearest snapshot if that reads fewer bytes. After an error c has no state, and the next Seek
// loads a snapshot.
func (c *Cursor) Seek(ctx context.Context, seq uint64) (err error) {
	im, from := c.image, c.seq
	if im != nil && from == seq {
		return nil
	}
	// Replay changes im in place, so c must have no state if replay fails.
	c.image, c.settled, c.shown, c.seq = nil, nil, nil, seq
	if path := shortcut(c.view, im, from, seq); path != nil {
		c.image, _, err = (&catalog.Walk{Catalog: c.view}).Along(ctx, im, path)
	} else {
		c.image, err = c.view.Base(ctx, seq)
	}
	if err == nil {
		c.settled = c.image.Settled()
	}
	return err
}

// shortcut returns the records to replay on image im, to get from the state after record from to
// the state after record to. It returns nil if loading the nearest readable snapshot reads fewer
// bytes, or if no path exists.
//
// The search for the nearest snapshot visits all ancestors, which is slow. So shortcut first checks
// whether any snapshot file between the two records is smaller than the ticks.
func shortcut(v *catalog.Catalog, im *image.Image, from, to uint64) []journal.Entry {
	if im == nil {
		return nil
	}
	path, err := v.Log.Path(from, to)
	if err != nil {
		return nil
	}
	bytes := bytesOf(path)
	if !slices.ContainsFunc(v.Snapshots, func(s catalog.SnapshotInfo) bool { return s.ID.Seq > from && s.ID.Seq <= to && s.Size < bytes }) {
		return path
	}
	for _, s := range v.CandidateSnapshots(to) {
		if s.Err != nil {
			continue
		}
		fromSnapshot, err := v.Log.Path(s.ID.Seq, to)
		if err == nil && s.Size+bytesOf(fromSnapshot) < bytes {
			return nil
		}
		break
	}
	return path
}

// bytesOf returns the total size of the payloads of records.
func bytesOf(entries []journal.Entry) (n int64) {
	for _, e := range entries {
		n += int64(e.Length)
	}
	return n
}
