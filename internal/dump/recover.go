package dump

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stet-ecs/stet/internal/term"
	"github.com/stet-ecs/stet/persist"
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

// A recovery is a call of recover.
type recovery struct {
	*app
	path, out string
	persist.RecoverOptions
}

func newRecover(a *app) *cobra.Command {
	r := &recovery{app: a}
	cmd := &cobra.Command{
		Use:   "recover STORE -o OUT",
		Short: "Write what is good of a damaged store or save to a new one",
		Long: `Recover writes what is good of a damaged store or save to a new one, and says how far
that reaches. STORE is only read.

It saves the newest state on the way to the newest one that can be reached exactly as it
was, from whatever snapshot is whole and with the ticks behind it, and as much of the
history before it as hangs together. With --partial, it puts a newer state together from
the good pages of a damaged snapshot and the ticks behind it; what is lost is missing in that.

Exit status: 0 nothing is lost, 1 something is, 4 nothing could be saved.`,
		Example: `  ecsdump recover D -o D.recovered
  ecsdump recover D -o D.branch --at seq:5
  ecsdump recover slot1.save -o slot1.pieces --partial`,
		Args: positional(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if r.out == "" {
				return &failure{exitUsage, errors.New("give the name of what to write with -o"), command("recover", args[0], "-o", args[0]+".recovered")}
			}
			r.path = args[0]
			report, err := persist.Recover(cmd.Context(), r.path, r.out, r.RecoverOptions)
			return r.end(report, err)
		},
	}
	cmd.Flags().StringVarP(&r.out, "output", "o", "", "directory or file to write; nothing may have that name")
	cmd.Flags().StringVar(&r.At, "at", "@latest", "point in time to save: a tick, @latest~N, @first, @-5s, seq:N or snap:N")
	cmd.Flags().BoolVar(&r.Partial, "partial", false, "take what is good of damaged snapshots, if that reaches further")
	cmd.PreRun = func(*cobra.Command, []string) {
		if r.At == "@latest" {
			r.At = ""
		}
	}
	return cmd
}

// end prints what became of it.
func (r *recovery) end(report persist.RecoverReport, err error) error {
	if err != nil && !errors.Is(err, persist.ErrCorrupt) && !errors.Is(err, persist.ErrForeign) || errors.Is(err, persist.ErrNotFound) {
		return r.unwritten(err)
	}
	if e := r.report(report, err == nil); e != nil {
		return e
	}
	switch {
	case err != nil:
		return &failure{exitCorrupt, fmt.Errorf("%s: nothing could be saved", r.path), r.next()}
	case !report.Complete():
		return &failure{exitProblem, fmt.Errorf("%s: something is lost; %s has the rest", r.path, r.out), r.next()}
	}
	return nil
}

// next returns what may save more.
func (r *recovery) next() string {
	if r.Partial {
		return ""
	}
	return command("recover", r.path, "-o", r.path+".pieces", "--partial")
}

// unwritten is about errors that are no damage.
func (r *recovery) unwritten(err error) error {
	if errors.Is(err, fs.ErrExist) {
		return &failure{exitUsage, errors.New(unprefixed(err)), ""}
	}
	return opening(r.path, err)
}

func (r *recovery) report(report persist.RecoverReport, saved bool) error {
	if r.json {
		return r.document(r.doc(report, saved))
	}
	for _, p := range report.Problems {
		r.Line("problem: %s", problemDocOf(p).Message)
	}
	if !saved {
		return nil
	}
	what := "saved"
	if report.Partial {
		what = "saved, NOT AS IT WAS"
	}
	r.Line("%s: tick %d, record %d%s", what, report.Tick, report.Seq, reachedFrom(report))
	r.missing(report)
	r.lost(report)
	if report.Ticks > 0 {
		r.Line("history: %s behind tick %d", term.Count(report.Ticks, "tick", "ticks"), report.From)
	}
	if len(report.Names) > 0 {
		r.Line("named snapshots: %s", strings.Join(report.Names, ", "))
	}
	r.left(report.DroppedTicks, report.DroppedNames)
	r.Line("written: %s", r.out)
	return nil
}

// missing prints what is not in a state that was put together.
func (r *recovery) missing(report persist.RecoverReport) {
	for _, m := range report.Missing {
		r.Line("missing: %d of %s of %s", m.Rows, term.Count(m.Of, "row", "rows"), m.Component)
	}
	if report.Entities > 0 {
		r.Line("missing: %s of which nothing is known", term.Count(report.Entities, "entity", "entities"))
	}
	if report.Retired > 0 {
		r.Line("missing: the generations of %s, never to be used again", term.Count(report.Retired, "index", "indices"))
	}
}

// lost prints what is lost.
func (r *recovery) lost(report persist.RecoverReport) {
	switch {
	case report.Lost == 1:
		r.Line("lost: record %d", report.LostFrom)
	case report.Lost > 1:
		r.Line("lost: records %d to %d", report.LostFrom, report.Wanted)
	}
	if report.More != nil {
		r.Line("lost: perhaps newer ticks, in %s", unprefixed(report.More))
	}
	for _, t := range report.Tips {
		r.Line("branch: record %d is at tick %d; --at seq:%d saves that instead", t.Seq, t.Tick, t.Seq)
	}
}

// left prints what was left out.
func (a *app) left(ticks int, names []string) {
	if ticks > 0 {
		a.Line("left out: %s", term.Count(ticks, "readable tick", "readable ticks"))
	}
	if len(names) > 0 {
		a.Line("left out: %s", strings.Join(prefixed("snap:", names), ", "))
	}
}

func prefixed(prefix string, names []string) (with []string) {
	for _, n := range names {
		with = append(with, prefix+n)
	}
	return with
}

func reachedFrom(report persist.RecoverReport) string {
	if report.Snapshot == "" {
		return ""
	}
	return fmt.Sprintf(", from %s and %s", report.Snapshot, term.Count(report.Replayed, "tick", "ticks"))
}

func (r *recovery) doc(report persist.RecoverReport, saved bool) recoverDoc {
	doc := recoverDoc{
		Complete: saved && report.Complete(), Tick: report.Tick, Seq: report.Seq, Wanted: report.Wanted, Lost: report.Lost, LostFrom: report.LostFrom,
		Snapshot: report.Snapshot, Replayed: report.Replayed, From: report.From, Ticks: report.Ticks,
		DroppedTicks: report.DroppedTicks, Names: append([]string{}, report.Names...),
		DroppedNames: append([]string{}, report.DroppedNames...), Tips: []tipDoc{}, Problems: []problemDoc{},
		Partial: report.Partial, Missing: []missingDoc{}, Entities: report.Entities, Retired: report.Retired,
	}
	for _, m := range report.Missing {
		doc.Missing = append(doc.Missing, missingDoc{m.Component, m.Rows, m.Of})
	}
	if saved {
		doc.Out = r.out
	}
	if report.More != nil {
		doc.More = unprefixed(report.More)
	}
	for _, t := range report.Tips {
		doc.Tips = append(doc.Tips, tipDoc{t.Tick, t.Seq})
	}
	for _, p := range report.Problems {
		doc.Problems = append(doc.Problems, problemDocOf(p))
	}
	return doc
}
