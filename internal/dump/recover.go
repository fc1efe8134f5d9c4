package dump

import (
	"errors"
	"fmt"

	"github.com/stet-ecs/stet/internal/term"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
)

// recoverDoc is what recover --json prints.
type recoverDoc struct {
	Complete bool   `json:"complete"`       // Nothing of the state wanted is lost.
	Out      string `json:"out,omitempty"`  // What was written; absent: nothing could be saved.
	Tick     uint64 `json:"tick"`           // Of the state saved.
	Seq      uint64 `json:"seq"`            // Of its record in STORE.
	Wanted   uint64 `json:"wanted"`         // The record of the state wanted.
	Lost     int    `json:"lost"`           // Records between the two that cannot be saved, at most,
	LostFrom uint64 `json:"lost_from"`      // from this one on.
	More     string `json:"more,omitempty"` // Damage that later ones may have been lost in.

	Snapshot string `json:"snapshot,omitempty"` // The file the state was reached from,
	Replayed int    `json:"replayed"`           // and the ticks replayed behind it.

	From         uint64   `json:"from"`          // The oldest tick from which on OUT has the history.
	Ticks        int      `json:"ticks"`         // How many OUT has.
	DroppedTicks int      `json:"dropped_ticks"` // Readable ones that it lacks.
	Names        []string `json:"names"`         // Its snapshots with names.
	DroppedNames []string `json:"dropped_names"` // Those it lacks.
	Tips         []tipDoc `json:"tips"`          // Branches that reach further: --at seq:SEQ saves them.

	Partial  bool         `json:"partial"`  // OUT is put together from pieces: a state that STORE never was in.
	Missing  []missingDoc `json:"missing"`  // What is known to be missing in it,
	Entities int          `json:"entities"` // how many entities that were alive,
	Retired  int          `json:"retired"`  // and indices that are never used again, as their generations are lost.

	Problems []problemDoc `json:"problems"` // What is damaged.
}

// A missingDoc says what is lost of a component or resource.
type missingDoc struct {
	Component string `json:"component"`
	Rows      int    `json:"rows"` // Lost, at most.
	Of        int    `json:"of"`   // There were.
}

// A tipDoc is the end of a branch.
type tipDoc struct {
	Tick uint64 `json:"tick"`
	Seq  uint64 `json:"seq"`
}

var recoverCommand = command{
	use: "recover STORE -o OUT",
	doc: `Write what is good of a damaged store or save to a new one

Recover writes what is good of a damaged store or save to a new one, and says how far
that reaches. STORE is only read.

It saves the newest state on the way to the newest one that can be reached exactly as it
was, from whatever snapshot is whole and with the ticks behind it, and as much of the
history before it as hangs together. With --partial, it puts a newer state together from
the good pages of a damaged snapshot and the ticks behind it; what is lost is missing in that.

Exit status: 0 nothing is lost, 1 something is, 4 nothing could be saved.`,
	example: `  ecsdump recover D -o D.recovered
  ecsdump recover D -o D.branch --at seq:5
  ecsdump recover slot1.save -o slot1.pieces --partial`,
	run: func(f flags) action {
		var r recovery
		f.output(&r.out, "directory or file to write; nothing may have that name")
		f.StringVar(&r.At, "at", "@latest", "point in time to save: "+pointForms+" or snap:N")
		f.BoolVar(&r.RecoverOptions.Partial, "partial", false, "take what is good of damaged snapshots, if that reaches further")
		return func(c *call) (err error) {
			r.app, r.path = c.app, c.args[0]
			if r.out == "" {
				return fail(exitUsage, try("recover", r.path, "-o", r.path+".recovered"), "give the name of what to write with -o")
			}
			if r.At == "@latest" {
				r.At = ""
			}
			var name string
			if r.Files, name, err = c.find(c.ctx, r.path); err != nil {
				return opening(r.path, err)
			}
			r.RecoverReport, err = inspect.Recover(c.ctx, name, r.out, r.RecoverOptions)
			return r.end(err)
		}
	},
}

// A recovery is a call of recover, and what became of it.
type recovery struct {
	*app
	path, out string
	inspect.RecoverOptions
	inspect.RecoverReport
}

// end prints what became of it.
func (r *recovery) end(err error) error {
	if err != nil && !errors.Is(err, persist.ErrCorrupt) && !errors.Is(err, persist.ErrForeign) || errors.Is(err, persist.ErrNotFound) {
		if unwritten := unwritten(err); unwritten != err { //nolint:errorlint // Made anew, or the same.
			return unwritten
		}
		return opening(r.path, err)
	}
	if e := r.tell(r.doc(err == nil), func() { r.report(err == nil) }); e != nil {
		return e
	}
	next := ""
	if !r.RecoverOptions.Partial {
		next = try("recover", r.path, "-o", r.path+".pieces", "--partial")
	}
	switch {
	case err != nil:
		return fail(exitCorrupt, next, "%s: nothing could be saved", r.path)
	case !r.Complete():
		return fail(exitProblem, next, "%s: something is lost; %s has the rest", r.path, r.out)
	}
	return nil
}

// report prints what was saved, then what was not: nobody shall take a part for the whole.
func (r *recovery) report(saved bool) {
	for _, p := range r.Problems {
		r.Line("problem: %s", problemDocOf(p).Message)
	}
	if !saved {
		return
	}
	what, from := "saved", ""
	if r.RecoverReport.Partial {
		what = "saved, NOT AS IT WAS"
	}
	if r.Snapshot != "" {
		from = fmt.Sprintf(", from %s and %s", r.Snapshot, term.Count(r.Replayed, "tick", "ticks"))
	}
	r.Line("%s: tick %d, record %d%s", what, r.Tick, r.Seq, from)
	r.missing()
	r.lost()
	r.kept(r.Ticks, r.From, r.Names)
	if r.DroppedTicks > 0 {
		r.Line("left out: %s", term.Count(r.DroppedTicks, "readable tick", "readable ticks"))
	}
	r.left(r.DroppedNames)
	r.Line("written: %s", r.out)
}

// missing prints what is not in a state that was put together.
func (r *recovery) missing() {
	for _, m := range r.Missing {
		r.Line("missing: %d of %s of %s", m.Rows, term.Count(m.Of, "row", "rows"), m.Component)
	}
	if r.Entities > 0 {
		r.Line("missing: %s of which nothing is known", term.Count(r.Entities, "entity", "entities"))
	}
	if r.Retired > 0 {
		r.Line("missing: the generations of %s, never to be used again", term.Count(r.Retired, "index", "indices"))
	}
}

// lost prints what is lost.
func (r *recovery) lost() {
	switch {
	case r.Lost == 1:
		r.Line("lost: record %d", r.LostFrom)
	case r.Lost > 1:
		r.Line("lost: records %d to %d", r.LostFrom, r.Wanted)
	}
	if r.More != nil {
		r.Line("lost: perhaps newer ticks, in %s", unprefixed(r.More))
	}
	for _, t := range r.Tips {
		r.Line("branch: record %d is at tick %d; --at seq:%d saves that instead", t.Seq, t.Tick, t.Seq)
	}
}

// doc describes the same for programs. Lists are empty rather than null.
func (r *recovery) doc(saved bool) recoverDoc {
	doc := recoverDoc{
		Complete: saved && r.Complete(), Tick: r.Tick, Seq: r.Seq, Wanted: r.Wanted, Lost: r.Lost, LostFrom: r.LostFrom, More: unprefixed(r.More),
		Snapshot: r.Snapshot, Replayed: r.Replayed, From: r.From, Ticks: r.Ticks,
		DroppedTicks: r.DroppedTicks, Names: append([]string{}, r.Names...), DroppedNames: append([]string{}, r.DroppedNames...),
		Tips:    listed(r.Tips, func(t inspect.Tip) tipDoc { return tipDoc(t) }),
		Partial: r.RecoverReport.Partial, Entities: r.Entities, Retired: r.Retired,
		Missing:  listed(r.Missing, func(m inspect.Missing) missingDoc { return missingDoc(m) }),
		Problems: listed(r.Problems, problemDocOf),
	}
	if saved {
		doc.Out = r.out
	}
	return doc
}
