package dump

import (
	"errors"
	"fmt"
	"strings"

	"github.com/stet-ecs/stet/internal/describe"
	"github.com/stet-ecs/stet/internal/term"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
)

// Recover writes what is good; what it found on the way is the report, which is printed also if
// nothing could be saved. Who calls it has lost something and decides by the report what to do
// next, so the document tells numbers of records, and what other calls would save.
//
//	exit 0   all of the state wanted is in OUT
//	exit 1   OUT is written, and something is lost
//	exit 4   nothing could be saved; --partial may do more, if the report says so
//
// It opens nothing as other commands do: a store that cannot be opened is just what it is for.

// recoverDoc is what recover --json prints.
type recoverDoc struct {
	Complete bool   `json:"complete"`       // Nothing of the state wanted is lost.
	Out      string `json:"out,omitempty"`  // What was written; absent: nothing could be saved.
	Tick     uint64 `json:"tick"`           // Of the state saved.
	Seq      uint64 `json:"record"`         // Of its record in STORE.
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
	Tips         []tipDoc `json:"tips"`          // Branches that reach further: --at record:RECORD saves them.

	Pieces   bool         `json:"pieces"`   // --partial would reach further.
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
	Seq  uint64 `json:"record"`
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

Exit status: 0 nothing is lost, 1 something is, 3 STORE is none, 4 nothing could be saved.`,
	example: `  ecsdump recover D -o D.recovered
  ecsdump recover D -o D.branch --at record:5
  ecsdump recover slot1.save -o slot1.pieces --partial`,
	run: func(f flags) action {
		var o recovery
		f.output(&o.out, "directory or file to write; nothing may have that name")
		f.StringVar(&o.At, "at", "@latest", "point in time to save: "+pointForms+" or snap:N")
		f.BoolVar(&o.Partial, "partial", false, "take what is good of damaged snapshots, if that reaches further")
		return func(c *call) (err error) {
			path := c.args[0]
			if o.out == "" {
				return fail(exitUsage, try("recover", path, "-o", path+".recovered"), "give the name of what to write with -o")
			}
			if o.At == "@latest" { // Then it is the newest that there is a trace of, not the head.
				o.At = ""
			}
			var name string
			if o.Files, name, err = c.find(c.ctx, path); err != nil {
				return opening(path, err)
			}
			r, err := inspect.Recover(c.ctx, name, o.out, o.RecoverOptions)
			return o.end(c, &r, err)
		}
	},
}

// A recovery is what recover is to do.
type recovery struct {
	out string
	inspect.RecoverOptions
}

// end prints what became of it, if err says that nothing else went wrong than that STORE is
// damaged. That is what a report is for, so it is printed also if nothing could be saved; any
// other error leaves no report. That STORE is none, or that OUT is there already, is such an error.
func (o *recovery) end(c *call, r *inspect.RecoverReport, err error) error {
	path := c.args[0]
	if err != nil && !errors.Is(err, persist.ErrCorrupt) || errors.Is(err, persist.ErrNotFound) {
		f := opening(path, err)
		if errors.Is(err, persist.ErrForeign) {
			f.next = "" // What it would say is known by now.
		}
		return f
	}
	doc := recoverDocOf(r)
	if err == nil {
		doc.Out, doc.Complete = o.out, r.Complete()
	}
	// Complete is only said of what was written.
	if err := c.tell(doc); err != nil || doc.Complete {
		return err
	}
	if err != nil {
		// The first line is the reason. Problems are below it, and were printed.
		reason, _, _ := strings.Cut(describe.Unprefixed(err), "\n")
		return fail(exitCorrupt, recovering(path, r, err), "%s: nothing could be saved: %s", path, reason)
	}
	next := ""
	if r.Pieces {
		next = tryPieces(path)
	}
	return fail(exitProblem, next, "%s: something is lost; %s has the rest", path, o.out)
}

// recovering returns the recover command that would save something of what is at path, by what a
// recovery said that was to write nothing; "": none would.
func recovering(path string, r *inspect.RecoverReport, err error) string {
	switch {
	case err == nil:
		return try("recover", path, "-o", path+".recovered")
	case r.Pieces:
		return tryPieces(path)
	}
	return ""
}

// tryPieces returns the recover command that puts a state together from pieces.
func tryPieces(path string) string { return try("recover", path, "-o", path+".pieces", "--partial") }

// recoverDocOf describes r. Lists are empty rather than null.
func recoverDocOf(r *inspect.RecoverReport) *recoverDoc {
	return &recoverDoc{
		Tick: r.Tick, Seq: r.Seq, Wanted: r.Wanted, Lost: r.Lost, LostFrom: r.LostFrom, More: describe.Unprefixed(r.More),
		Snapshot: r.Snapshot, Replayed: r.Replayed, From: r.From, Ticks: r.Ticks,
		DroppedTicks: r.DroppedTicks, Names: append([]string{}, r.Names...), DroppedNames: append([]string{}, r.DroppedNames...),
		Tips:   describe.Listed(r.Tips, func(t inspect.Tip) tipDoc { return tipDoc(t) }),
		Pieces: r.Pieces, Partial: r.Partial, Entities: r.Entities, Retired: r.Retired,
		Missing:  describe.Listed(r.Missing, func(m inspect.Missing) missingDoc { return missingDoc(m) }),
		Problems: describe.Listed(r.Problems, describe.ProblemOf),
	}
}

// print prints what was saved, then what was not: nobody shall take a part for the whole.
func (d *recoverDoc) print(a *app) {
	for _, p := range d.Problems {
		a.Line("problem: %s", p.Message)
	}
	if d.Out == "" {
		return
	}
	what, from := "saved", ""
	if d.Partial {
		what = "saved, NOT AS IT WAS"
	}
	if d.Snapshot != "" {
		from = fmt.Sprintf(", from %s and %s", d.Snapshot, term.Count(d.Replayed, "tick", "ticks"))
	}
	a.Line("%s: tick %d, record %d%s", what, d.Tick, d.Seq, from)
	d.missing(a)
	d.lost(a)
	a.kept(d.Ticks, d.From, d.Names)
	if d.DroppedTicks > 0 {
		a.Line("left out: %s", term.Count(d.DroppedTicks, "readable tick", "readable ticks"))
	}
	a.left(d.DroppedNames)
	a.Line("written: %s", d.Out)
}

// missing prints what is not in a state that was put together.
func (d *recoverDoc) missing(a *app) {
	for _, m := range d.Missing {
		a.Line("missing: %d of %s of %s", m.Rows, term.Count(m.Of, "row", "rows"), m.Component)
	}
	if d.Entities > 0 {
		a.Line("missing: %s of which nothing is known", term.Count(d.Entities, "entity", "entities"))
	}
	if d.Retired > 0 {
		a.Line("missing: the generations of %s, never to be used again", term.Count(d.Retired, "index", "indices"))
	}
}

// lost prints what is lost.
func (d *recoverDoc) lost(a *app) {
	switch {
	case d.Lost == 1:
		a.Line("lost: record %d", d.LostFrom)
	case d.Lost > 1:
		a.Line("lost: records %d to %d", d.LostFrom, d.Wanted)
	}
	if d.More != "" {
		a.Line("lost: perhaps newer ticks, in %s", d.More)
	}
	for _, t := range d.Tips {
		a.Line("branch: record %d is at tick %d; --at record:%d saves that instead", t.Seq, t.Tick, t.Seq)
	}
}
