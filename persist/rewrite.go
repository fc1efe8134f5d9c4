package persist

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"github.com/stet-ecs/stet/internal/disk"
	"github.com/stet-ecs/stet/journal"
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
	from    *catalog
	journal *journal.Journal
	schema  *schema               // That of the journal's last preamble.
	ids     map[uint64]journal.ID // What the records are called here, by their seqs there.
	number  uint32                // Of the last snapshot.
	ticks   int                   // Records written.

	branches bool            // Write what was rewound behind the base as well, but
	bad      map[uint64]bool // not these records.
}

func newRewrite(files disk.FS, from *catalog) *rewrite {
	return &rewrite{files: files, from: from, ids: map[uint64]journal.ID{}}
}

// snapshot writes im, the state that id names, to a snapshot file.
func (r *rewrite) snapshot(ctx context.Context, im *Image, id journal.ID, made time.Time, label string) error {
	r.number++
	s := newImageSaving(im)
	s.manifest.world, s.manifest.number, s.manifest.id = r.from.log.World, r.number, id
	s.manifest.time, s.manifest.name = made, label
	_, err := s.create(ctx, r.files, snapshotName(r.number))
	return err
}

// begin makes im the base: the journal goes on from there.
func (r *rewrite) begin(ctx context.Context, im *Image, names bool) (err error) {
	r.ids[im.ID.Seq], r.schema = im.ID, im.stored()
	if err := r.settle(ctx, im, names, true); err != nil {
		return err
	}
	log := &journal.Log{Epoch: max(r.from.log.Epoch, im.ID.Epoch), LastID: im.ID}
	r.journal, err = journal.Open(disk.Sub(r.files, journalDir), log, journal.Options{
		World: r.from.log.World, Sync: journal.SyncNever(), FirstSeq: im.ID.Seq + 1,
		Preamble: func() []byte { return r.schema.encode() },
	})
	return err
}

// append writes the record e, which is under schema s and continues one that was
// written or the base.
func (r *rewrite) append(ctx context.Context, e journal.Entry, payload []byte, s *schema) error {
	if err := r.announce(ctx, s); err != nil {
		return err
	}
	parent := r.ids[e.Parent]
	renamed, err := reparented(r.journal.Buffer(), payload, parent)
	if err != nil {
		return r.from.entryError(e, err)
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
	p := startProgress(ctx, PhaseReplay, int64(len(path)))
	for i, e := range path {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := r.aside(ctx, im.ID.Seq+1, e.ID.Seq); err != nil {
			return nil, err
		}
		if im, err = r.step(quiet(ctx), im, e); err != nil {
			return nil, err
		}
		if err := r.settle(quiet(ctx), im, names, i == len(path)-1); err != nil {
			return nil, err
		}
		p.add(1)
	}
	return im, r.aside(ctx, seq+1, math.MaxUint64)
}

// aside writes, if rewound branches are wanted, the records with seqs in [from, to)
// that continue what was written. Those that cannot be read are left out.
func (r *rewrite) aside(ctx context.Context, from, to uint64) error {
	if !r.branches {
		return nil
	}
	for _, e := range r.from.between(from, to) {
		if _, ok := r.ids[e.Parent]; !ok || r.bad[e.ID.Seq] {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		payload, _, s, err := r.from.read(e, new(Image))
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
	next, err := v.across(ctx, im, e)
	if err != nil {
		return nil, err
	}
	if next != im {
		if err := r.snapshot(ctx, next, r.ids[next.ID.Seq], v.committed(next.ID), ""); err != nil {
			return nil, err
		}
	}
	payload, t, s, err := v.read(e, next)
	if err != nil {
		return nil, err
	}
	if err := v.advance(next, e, t, s); err != nil {
		return nil, err
	}
	return next, r.append(ctx, e, payload, s)
}

// settle writes the snapshots of im: those with names, if they are wanted, and at
// least one if there must be.
func (r *rewrite) settle(ctx context.Context, im *Image, names, must bool) error {
	var wanted []string
	if names {
		wanted = r.from.labels(im.ID)
	}
	if must && len(wanted) == 0 {
		wanted = []string{""}
	}
	for _, label := range wanted {
		if err := r.snapshot(ctx, im, r.ids[im.ID.Seq], r.from.committed(im.ID), label); err != nil {
			return err
		}
	}
	return nil
}

// announce sees to it that s is the schema of the next record.
func (r *rewrite) announce(ctx context.Context, s *schema) error {
	if s == r.schema {
		return nil
	}
	encoded, before := s.encode(), r.schema.encode()
	more := len(s.components) >= len(r.schema.components) && s.differs(r.schema) == nil
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
func (v *catalog) read(e journal.Entry, im *Image) ([]byte, *tick, *schema, error) {
	s, err := v.schemaAt(e)
	if err != nil {
		if s = v.schemaBefore(e, im); s == nil {
			return nil, nil, nil, v.journalError(err)
		}
	}
	payload, err := v.log.Payload(e, nil)
	if err != nil {
		return nil, nil, nil, v.journalError(err)
	}
	t, err := v.decode(e, payload)
	return payload, t, s, err
}

// schemaBefore returns a schema that is the beginning of the one in force at e, or
// nil.
func (v *catalog) schemaBefore(e journal.Entry, im *Image) *schema {
	if p, ok := v.log.PreambleAt(e); ok {
		if encoded, err := v.log.Payload(p, nil); err == nil {
			if s, err := decodeSchema(encoded); err == nil {
				v.schemas[journalPreamble{p.Segment, p.Offset}] = s
				return s
			}
		}
	}
	if last, ok := v.log.Find(im.ID.Seq); ok && last.ID == im.ID && last.Segment == e.Segment {
		return im.stored()
	}
	return nil
}

// between returns the records with seqs in [from, to).
func (v *catalog) between(from, to uint64) []journal.Entry {
	at := func(seq uint64) int {
		i, _ := slices.BinarySearchFunc(v.log.Entries, seq, func(e journal.Entry, seq uint64) int { return cmp.Compare(e.ID.Seq, seq) })
		return i
	}
	return v.log.Entries[at(from):at(to)]
}

// committed returns when the state that id names was committed; zero: not known.
func (v *catalog) committed(id journal.ID) time.Time {
	for _, s := range v.snapshots {
		if s.Err == nil && s.ID == id && !s.Time.IsZero() {
			return s.Time
		}
	}
	if e, ok := v.log.Find(id.Seq); ok && e.ID == id {
		if t, _, err := v.tick(e); err == nil {
			return t.time
		}
	}
	return time.Time{}
}
