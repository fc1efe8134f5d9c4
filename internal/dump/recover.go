package dump

import (
	"errors"
	"fmt"
	"strings"

	"github.com/stet-ecs/stet/internal/describe"
	"github.com/stet-ecs/stet/internal/term"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/repair"
)

// The command recover writes the readable part of a store or save, and prints a report. The report
// names the lost records, and commands that would save more.
//
//	exit 0   OUT contains the whole requested state
//	exit 1   OUT is written, and something is lost
//	exit 4   nothing could be saved; the report says whether --partial would save something

// recoverDoc is what recover --json prints.
type recoverDoc struct {
	Complete bool `json:"complete"` // True if OUT contains the whole wanted state.
	// The path that was written; missing if nothing could be saved.
	Out    string `json:"out,omitempty"`
	Tick   uint64 `json:"tick"`   // Tick of the saved state.
	Seq    uint64 `json:"record"` // Record of the saved state in STORE.
	Wanted uint64 `json:"wanted"` // The record of the wanted state.
	// Upper bound on the number of lost records between the saved and the wanted state.
	Lost     int    `json:"lost"`
	LostFrom uint64 `json:"lost_from"`      // The first lost record.
	More     string `json:"more,omitempty"` // Damage that may hide later records.

	Snapshot string `json:"snapshot,omitempty"` // The snapshot file that was loaded.
	Replayed int    `json:"replayed"`           // Number of ticks replayed after the snapshot.

	From         uint64   `json:"from"`          // The oldest tick of the history in OUT.
	Ticks        int      `json:"ticks"`         // Number of ticks in OUT.
	DroppedTicks int      `json:"dropped_ticks"` // Number of readable ticks that OUT lacks.
	Names        []string `json:"names"`         // Named snapshots in OUT.
	DroppedNames []string `json:"dropped_names"` // Named snapshots that are missing in OUT.
	// Other branches with later records. To save one of them, use --at record:RECORD.
	Tips []stateDoc `json:"tips"`

	Pieces bool `json:"pieces"` // True if --partial would save a later state.
	// True if OUT combines parts of several states, so STORE never had this state.
	Partial  bool         `json:"partial"`
	Missing  []missingDoc `json:"missing"`  // Known losses in OUT.
	Entities int          `json:"entities"` // Number of missing entities.
	// Indices that are never reused, because their generations are lost.
	Retired int `json:"retired"`

	Problems []problemDoc `json:"problems"` // The damage that was found.
}

// A missingDoc counts the lost rows of a component or resource.
type missingDoc struct {
	Component string `json:"component"`
	Rows      int    `json:"rows"` // Largest number of lost rows.
	Of        int    `json:"of"`   // Number of rows before the damage.
}

var recoverCommand = command{
	use: "recover STORE -o OUT",
	doc: `Write what is readable of a damaged store or save to a new one

Recover writes what is readable of a damaged store or save to a new one, and reports
what is lost. STORE is only read.

It saves the newest state that can be restored exactly, from any undamaged snapshot and
the ticks after it. It also saves the history before that state, as far back as all
ticks are readable. With --partial, it may build a newer state from the undamaged pages
of a damaged snapshot and the ticks after it. The lost values are missing in that state.

Exit status: 0 if nothing is lost, 1 if something is lost, 3 if STORE is not a store or
a save, 4 if nothing could be saved.`,
	example: `  ecsdump recover D -o D.recovered
  ecsdump recover D -o D.branch --at record:5
  ecsdump recover game1.save -o game1.pieces --partial`,
	run: func(f flags) action {
		var o recoverCmd
		f.output(&o.out, "directory or file to write; it must not exist")
		f.StringVar(&o.At, "at", "@latest", "point in time to save: "+pointForms+" or snap:N")
		f.BoolVar(&o.Partial, "partial", false, "use undamaged pages of damaged snapshots, if that gives a newer state")
		return func(c *call) (err error) {
			path := c.args[0]
			if o.out == "" {
				return fail(exitUsage, describe.Command("recover", path, "-o", path+".recovered"), "give the output with -o")
			}
			// Without --at, recover saves the newest recoverable state, which may be newer than the
			// head.
			if o.At == "@latest" {
				o.At = ""
			}
			var name string
			if o.Files, name, err = c.findFiles(c.ctx, path); err != nil {
				return classifyOpen(path, err)
			}
			r, err := repair.Recover(c.ctx, name, o.out, o.RecoverOptions)
			return o.report(c, &r, err)
		}
	},
}

// A recoverCmd has the flags of recover.
type recoverCmd struct {
	out string
	repair.RecoverOptions
}

// report prints the report of recover, even if nothing could be saved. It prints no report if
// recover did not start, for example because OUT exists.
func (o *recoverCmd) report(c *call, r *repair.RecoverReport, err error) error {
	path := c.args[0]
	if err != nil && !errors.Is(err, persist.ErrCorrupt) || errors.Is(err, persist.ErrNotFound) {
		f := classifyOpen(path, err)
		if errors.Is(err, persist.ErrForeign) {
			f.next = "" // A suggestion would only repeat this result.
		}
		return f
	}
	doc := recoverDocOf(r)
	if err == nil {
		doc.Out, doc.Complete = o.out, r.Complete()
	}
	if err := c.printReport(doc); err != nil || doc.Complete {
		return err
	}
	if err != nil {
		// The first line is the reason. The report has the other lines already.
		reason, _, _ := strings.Cut(describe.Unprefixed(err), "\n")
		return fail(exitCorrupt, describe.RecoverCommand(path, r, err), "%s: nothing could be saved: %s", path, reason)
	}
	next := ""
	if r.Pieces {
		next = describe.PiecesCommand(path)
	}
	return fail(exitProblem, next, "%s: something is lost; what was saved is in %s", path, o.out)
}

// recoverDocOf describes r.
func recoverDocOf(r *repair.RecoverReport) *recoverDoc {
	return &recoverDoc{
		Tick: r.Tick, Seq: r.Seq, Wanted: r.Wanted, Lost: r.Lost, LostFrom: r.LostFrom, More: describe.Unprefixed(r.More),
		Snapshot: r.Snapshot, Replayed: r.Replayed, From: r.From, Ticks: r.Ticks,
		DroppedTicks: r.DroppedTicks, Names: append([]string{}, r.Names...), DroppedNames: append([]string{}, r.DroppedNames...),
		Tips:   describe.Listed(r.Tips, func(t repair.Tip) stateDoc { return stateDoc(t) }),
		Pieces: r.Pieces, Partial: r.Partial, Entities: r.Entities, Retired: r.Retired,
		Missing:  describe.Listed(r.Missing, func(m repair.Missing) missingDoc { return missingDoc(m) }),
		Problems: describe.Listed(r.Problems, describe.ProblemOf),
	}
}

// print prints what was saved, then what was lost.
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
	a.printKept(d.Ticks, d.From, d.Names)
	if d.DroppedTicks > 0 {
		a.Line("left out: %s", term.Count(d.DroppedTicks, "readable tick", "readable ticks"))
	}
	a.printDropped(d.DroppedNames)
	a.Line("written: %s", d.Out)
}

// missing prints the losses of a state that combines parts of several states.
func (d *recoverDoc) missing(a *app) {
	for _, m := range d.Missing {
		a.Line("missing: %d of %s of %s", m.Rows, term.Count(m.Of, "row", "rows"), m.Component)
	}
	if d.Entities > 0 {
		a.Line("missing: %s, with all their components", term.Count(d.Entities, "entity", "entities"))
	}
	if d.Retired > 0 {
		a.Line("missing: the generations of %s, which are retired", term.Count(d.Retired, "index", "indices"))
	}
}

// lost prints the lost records.
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
