package dump

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/stet-ecs/stet/internal/describe"
	"github.com/stet-ecs/stet/internal/term"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
	"github.com/stet-ecs/stet/persist/repair"
)

// The command verify prints a report in every case, even of a store that cannot be opened. Package
// inspect checks the bytes. If the report has both damage and data of a newer program, the exit
// status is that for damage.

// verifyDoc is what verify --json prints.
type verifyDoc struct {
	OK        bool `json:"ok"`
	Snapshots int  `json:"snapshots"` // Number of checked snapshot files.
	Records   int  `json:"records"`   // Number of checked records.
	// Number of replayed records on the path from the oldest snapshot to the newest state.
	Replayed int          `json:"replayed"`
	Problems []problemDoc `json:"problems"`
	Notes    []string     `json:"notes"`   // Findings that are not problems.
	Rewound  int          `json:"rewound"` // Number of replayed records on other branches.
	Bytes    int64        `json:"bytes"`   // Number of bytes read from files and records.
}

type problemDoc = describe.ProblemDoc

var verifyCommand = command{
	use: "verify STORE",
	doc: `Check everything: checksums, formats and replay

Verify reads everything. It checks the checksums, the formats and the invariants of
every array. It also replays the ticks of all branches, and compares the result with the
digest of every snapshot. With --quick, it checks only the checksums.`,
	example: `  ecsdump verify D
  ecsdump verify game1.save --quick`,
	run: func(f flags) action {
		quick := false
		f.BoolVar(&quick, "quick", false, "check only the checksums")
		return func(c *call) error {
			v, err := c.open(c.ctx, c.args[0])
			if err != nil {
				return c.reportUnopened(c.args[0], err)
			}
			defer v.Close()
			verify := v.Verify
			if quick {
				verify = v.VerifyChecksums
			}
			r, err := verify(c.ctx)
			if err != nil {
				return classify(c.args[0], err)
			}
			return c.reportProblems(c.args[0], r, func(ctx context.Context) (repair.RecoverReport, error) { return repair.Recoverable(ctx, v) })
		}
	},
}

// reportUnopened reports why a store or save cannot be opened. Damage is printed as a report with
// one problem.
func (c *call) reportUnopened(path string, err error) error {
	f := classifyOpen(path, err)
	recoverable := func(ctx context.Context) (repair.RecoverReport, error) {
		files, name, err := c.findFiles(ctx, path)
		if err != nil {
			return repair.RecoverReport{}, err
		}
		return repair.Recover(ctx, name, "", repair.RecoverOptions{Files: files})
	}
	if errors.Is(f, persist.ErrCorrupt) || errors.Is(f, persist.ErrForeign) || errors.Is(f, persist.ErrNewer) {
		return c.reportProblems(path, inspect.VerifyReport{Problems: []error{err}}, recoverable)
	}
	if f.next != "" { // The file may be a damaged save.
		r, err := recoverable(c.ctx)
		f.next = describe.RecoverCommand(path, &r, err)
	}
	return f
}

// A recoverFunc returns the report that the command recover would print. It writes nothing, like
// [repair.Recoverable].
type recoverFunc func(ctx context.Context) (repair.RecoverReport, error)

// reportProblems prints r, and returns a failure if it has problems. It suggests recover only if
// recover would save something.
func (c *call) reportProblems(path string, r inspect.VerifyReport, recoverable recoverFunc) error {
	doc := &verifyDoc{len(r.Problems) == 0, r.Snapshots, r.Records, r.Replayed, describe.Listed(r.Problems, describe.ProblemOf), append([]string{}, r.Notes...), r.Rewound, r.Bytes}
	code := exitProblem // Data of a newer program is not damage.
	if slices.ContainsFunc(r.Problems, func(p error) bool { return !errors.Is(p, persist.ErrNewer) }) {
		code = exitCorrupt
	}
	if err := c.printReport(doc); err != nil || doc.OK {
		return err
	}
	next, hopeless := "", ""
	if code == exitCorrupt {
		report, err := recoverable(c.ctx)
		if c.ctx.Err() != nil {
			return classify(path, c.ctx.Err())
		}
		if next = describe.RecoverCommand(path, &report, err); next == "" {
			hopeless = "; recover cannot save anything"
		}
	}
	return fail(code, next, "%s: %s found%s", path, term.Count(len(r.Problems), "problem", "problems"), hopeless)
}

// print prints the problems before the totals.
func (d *verifyDoc) print(a *app) {
	for _, p := range d.Problems {
		a.StyledLine(term.Removed, "problem: %s", p.Message)
	}
	for _, n := range d.Notes {
		a.Line("note: %s", n)
	}
	rewound := ""
	if d.Rewound > 0 {
		rewound = fmt.Sprintf(" and %d of rewound branches", d.Rewound)
	}
	a.Line("checked: %s, %s, %d of them replayed%s", term.Count(d.Snapshots, "snapshot", "snapshots"), term.Count(d.Records, "record", "records"), d.Replayed, rewound)
	if d.OK {
		a.StyledLine(term.Added, "ok")
	}
}
