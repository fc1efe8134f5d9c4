package inspect

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist/internal/catalog"
	"github.com/stet-ecs/stet/persist/internal/format"
	"github.com/stet-ecs/stet/persist/internal/progress"
	"github.com/stet-ecs/stet/persist/internal/snap"
)

// A rewrite makes a store of states that were read from another one, and of the
// ticks between them:
//
//	older snapshots    base ── tick ── tick ── last
//
// Up to the base the states keep their identities, so that the new store is like
// one whose older journal was pruned. The ticks behind it are records of a later
// epoch: what they continue has another name than before, and so have they.
type rewrite struct {
	files   disk.FS
	from    *catalog.Catalog
	journal *journal.Journal
	schema  *format.Schema        // That of the journal's last preamble.
	ids     map[uint64]journal.ID // What the records are called here, by their seqs there.
	number  uint32                // Of the last snapshot.
	ticks   int                   // Records written.

	branches bool            // Write what was rewound behind the base as well, but
	bad      map[uint64]bool // not these records.
}

func newRewrite(files disk.FS, from *catalog.Catalog) *rewrite {
	return &rewrite{files: files, from: from, ids: map[uint64]journal.ID{}}
}

// snapshot writes im, the state that id names, to a snapshot file.
func (r *rewrite) snapshot(ctx context.Context, im *Image, id journal.ID, made time.Time, label string) error {
	r.number++
	s := snap.SavedImage(im)
	s.Manifest.World, s.Manifest.Number, s.Manifest.ID = r.from.Log.World, r.number, id
	s.Manifest.Time, s.Manifest.Name = made, label
	_, err := s.Create(ctx, r.files, catalog.SnapshotName(r.number))
	return err
}

// begin makes im the base: the journal goes on from there.
func (r *rewrite) begin(ctx context.Context, im *Image, names bool) (err error) {
	r.ids[im.ID.Seq], r.schema = im.ID, im.Stored()
	if err := r.settle(ctx, im, names, true); err != nil {
		return err
	}
	log := &journal.Log{Epoch: max(r.from.Log.Epoch, im.ID.Epoch), LastID: im.ID}
	r.journal, err = journal.Open(disk.Sub(r.files, catalog.JournalDir), log, journal.Options{
		World: r.from.Log.World, Sync: journal.SyncNever(), FirstSeq: im.ID.Seq + 1,
		Preamble: func() []byte { return r.schema.Encode() },
	})
	return err
}

// append writes the record e, which is under schema s and continues one that was
// written or the base.
func (r *rewrite) append(ctx context.Context, e journal.Entry, payload []byte, s *format.Schema) error {
	if err := r.announce(ctx, s); err != nil {
		return err
	}
	parent := r.ids[e.Parent]
	renamed, err := format.Reparented(r.journal.Buffer(), payload, parent)
	if err != nil {
		return r.from.EntryError(e, err)
	}
	id, err := r.journal.Append(parent.Seq, e.Tick, e.Flags&journal.FlagsUser, renamed)
	if err != nil {
		return err
	}
	r.ids[e.ID.Seq] = id
	r.ticks++
	return nil
}

// along writes the records that lead from im, the base, to that of seq, and the
// snapshots of states between: those with names, if they are wanted, those that a
// conversion made, and the last one. It returns the last state.
func (r *rewrite) along(ctx context.Context, im *Image, seq uint64, names bool) (*Image, error) {
	path, err := r.from.Path(im.ID.Seq, seq)
	if err != nil {
		return nil, err
	}
	p := progress.Start(ctx, progress.PhaseReplay, int64(len(path)))
	for i, e := range path {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := r.aside(ctx, im.ID.Seq+1, e.ID.Seq); err != nil {
			return nil, err
		}
		if im, err = r.step(progress.Quiet(ctx), im, e); err != nil {
			return nil, err
		}
		if err := r.settle(progress.Quiet(ctx), im, names, i == len(path)-1); err != nil {
			return nil, err
		}
		p.Add(1)
	}
	return im, r.aside(ctx, seq+1, math.MaxUint64)
}

// aside writes, if rewound branches are wanted, the records with seqs in [from, to)
// that continue what was written. Those that cannot be read are left out.
func (r *rewrite) aside(ctx context.Context, from, to uint64) error {
	if !r.branches {
		return nil
	}
	for _, e := range recordsBetween(r.from, from, to) {
		if _, ok := r.ids[e.Parent]; !ok || r.bad[e.ID.Seq] {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		payload, _, s, err := read(r.from, e, new(Image))
		if err != nil {
			continue
		}
		if err := r.append(ctx, e, payload, s); err != nil {
			return err
		}
	}
	return nil
}

// step writes the record e and returns im, the state before it, as it is behind it.
func (r *rewrite) step(ctx context.Context, im *Image, e journal.Entry) (*Image, error) {
	v := r.from
	next, err := v.Across(ctx, im, e)
	if err != nil {
		return nil, err
	}
	if next != im {
		if err := r.snapshot(ctx, next, r.ids[next.ID.Seq], committed(v, next.ID), ""); err != nil {
			return nil, err
		}
	}
	payload, t, s, err := read(v, e, next)
	if err != nil {
		return nil, err
	}
	if err := v.Advance(next, e, t, s); err != nil {
		return nil, err
	}
	return next, r.append(ctx, e, payload, s)
}

// settle writes the snapshots of im: those with names, if they are wanted, and at
// least one if there must be.
func (r *rewrite) settle(ctx context.Context, im *Image, names, must bool) error {
	var wanted []string
	if names {
		wanted = labels(r.from, im.ID)
	}
	if must && len(wanted) == 0 {
		wanted = []string{""}
	}
	for _, label := range wanted {
		if err := r.snapshot(ctx, im, r.ids[im.ID.Seq], committed(r.from, im.ID), label); err != nil {
			return err
		}
	}
	return nil
}

// announce sees to it that s is the schema of the next record.
func (r *rewrite) announce(ctx context.Context, s *format.Schema) error {
	if s == r.schema {
		return nil
	}
	encoded, before := s.Encode(), r.schema.Encode()
	more := len(s.Components) >= len(r.schema.Components) && s.Differs(r.schema) == nil
	r.schema = s
	switch {
	case string(encoded) == string(before):
		return nil
	case more:
		return r.journal.AppendPreamble(encoded)
	}
	return r.journal.Roll(ctx) // Within a segment numbers are only added.
}

// end closes the journal at the state that was there after record seq.
func (r *rewrite) end(ctx context.Context, seq uint64) error {
	if err := r.journal.Close(context.WithoutCancel(ctx), r.ids[seq].Seq); err != nil {
		return err
	}
	return ctx.Err()
}

// abandon lets go of the journal, if there is one, after an error.
func (r *rewrite) abandon() {
	if r.journal != nil {
		r.journal.Abandon()
	}
}

// read is tick with the payload, which leads on from im. A preamble that damage hides
// is no obstacle if it is known what it said: im was led to by a record of the same
// segment, or there is an earlier preamble in it. Within a segment numbers are only
// added, and a tick that names one that is not known does not fit.
func read(v *catalog.Catalog, e journal.Entry, im *Image) ([]byte, *format.Tick, *format.Schema, error) {
	s, err := v.SchemaAt(e)
	if err != nil {
		if s = schemaBefore(v, e, im); s == nil {
			return nil, nil, nil, v.JournalError(err)
		}
	}
	payload, err := v.Log.Payload(e, nil)
	if err != nil {
		return nil, nil, nil, v.JournalError(err)
	}
	t, err := v.Decode(e, payload)
	return payload, t, s, err
}

// schemaBefore returns a schema that is the beginning of the one in force at e, or
// nil.
func schemaBefore(v *catalog.Catalog, e journal.Entry, im *Image) *format.Schema {
	if p, ok := v.Log.PreambleAt(e); ok {
		if encoded, err := v.Log.Payload(p, nil); err == nil {
			if s, err := format.DecodeSchema(encoded); err == nil {
				v.Schemas[catalog.JournalPreamble{Segment: p.Segment, Offset: p.Offset}] = s
				return s
			}
		}
	}
	if last, ok := v.Log.Find(im.ID.Seq); ok && last.ID == im.ID && last.Segment == e.Segment {
		return im.Stored()
	}
	return nil
}

// between returns the records with seqs in [from, to).
func recordsBetween(v *catalog.Catalog, from, to uint64) []journal.Entry {
	at := func(seq uint64) int {
		i, _ := slices.BinarySearchFunc(v.Log.Entries, seq, func(e journal.Entry, seq uint64) int { return cmp.Compare(e.ID.Seq, seq) })
		return i
	}
	return v.Log.Entries[at(from):at(to)]
}

// committed returns when the state that id names was committed; zero: not known.
func committed(v *catalog.Catalog, id journal.ID) time.Time {
	for _, s := range v.Snapshots {
		if s.Err == nil && s.ID == id && !s.Time.IsZero() {
			return s.Time
		}
	}
	if e, ok := v.Log.Find(id.Seq); ok && e.ID == id {
		if t, _, err := v.Tick(e); err == nil {
			return t.Time
		}
	}
	return time.Time{}
}
