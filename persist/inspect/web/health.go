package web

import (
	"context"
	"strconv"
	"time"

	"github.com/stet-ecs/stet/internal/describe"
	"github.com/stet-ecs/stet/persist/inspect"
)

// How a store fares is told at two prices: health from what opening found, and from whether the
// newest state can be reached; verify by reading everything, for which it has a view of its own. Both
// name the commands that help, with the name of the store in them. So does what a page of one store cannot
// do, to compare it with another.

// healthDoc says how a store fares.
type healthDoc struct {
	Opens   bool                  `json:"opens"`             // persist.Open would go on from its newest state, or persist.Load would load it.
	Refused string                `json:"refused,omitempty"` // Why not.
	Helps   []string              `json:"helps"`             // Commands that may.
	InUse   bool                  `json:"in_use"`
	Holder  string                `json:"holder,omitempty"` // What the lock says of who has it open, or had it.
	Clean   bool                  `json:"clean"`            // The last program closed it.
	Damage  []describe.ProblemDoc `json:"damage"`           // That opening found.
	Journal int64                 `json:"journal"`          // Bytes.
	Records int                   `json:"records"`
	Rewound int                   `json:"rewound"` // Of them.
	Files   []snapDoc             `json:"snapshots"`
	Compare string                `json:"compare"` // The command that tells how another store of the same run differs.
}

// health tells whether the store opens, and what helps if not.
func (h *shown) health(a *ask) (any, error) {
	return answer(a, h.far, func() (*healthDoc, error) {
		d := h.far
		if err := d.refresh(a.ctx); err != nil && !d.view.IsSave() {
			return nil, err
		}
		log := d.view.Log()
		doc := &healthDoc{
			Opens: true, Helps: []string{}, Clean: log.Clean, Records: len(log.Entries), Rewound: d.line.rewound(log),
			Holder: cut(d.view.LockHolder(), 256), Damage: describe.Listed(d.view.Damage(), describe.ProblemOf), Files: d.snapshots(h),
		}
		doc.Compare = h.command("diff", "OTHER")
		if !d.view.IsSave() {
			doc.Compare = h.command("diff", "OTHER", "--first")
		}
		doc.InUse = d.view.InUseNow()
		for _, s := range log.Segments {
			doc.Journal += s.Size
		}
		refusal := d.view.Refusal(a.ctx)
		if a.ctx.Err() != nil { // Then it says nothing of the store.
			return nil, a.ctx.Err()
		}
		if refusal == nil && d.view.IsSave() && len(doc.Damage) > 0 { // Refusal is of stores only.
			refusal = d.view.Damage()[0]
		}
		// While a program has the store, it does not open for another, and need not: files
		// may come and go while it is asked.
		if refusal != nil && !doc.InUse {
			doc.Opens, doc.Refused = false, h.describe(refusal).Error.Message
			doc.Helps = append(doc.Helps, h.recovering(a.ctx, d.view)...)
		}
		if len(doc.Damage) > 0 {
			doc.Helps = append(doc.Helps, h.command("verify"))
		}
		return doc, nil
	})
}

// verifyDoc is what checking everything found.
type verifyDoc struct {
	OK        bool                  `json:"ok"`
	Snapshots int                   `json:"snapshots"`
	Records   int                   `json:"records"`
	Replayed  int                   `json:"replayed"`
	Rewound   int                   `json:"rewound"`
	Bytes     int64                 `json:"bytes"`
	Problems  []describe.ProblemDoc `json:"problems"`
	Notes     []string              `json:"notes"`
	Helps     []string              `json:"helps"`
}

// verify checks everything, as ecsdump verify does. It has a view of its own, for which nobody
// waits, but is done once at a time.
func (h *shown) verify(a *ask) (any, error) {
	if !h.verifying.TryLock() {
		return nil, fail(codeProblem, "it is being verified already")
	}
	defer h.verifying.Unlock()
	v, err := h.open(a.ctx)
	if err != nil {
		return nil, err
	}
	defer v.Close()
	r, err := v.Verify(a.ctx)
	if err != nil {
		return nil, err
	}
	doc := &verifyDoc{
		len(r.Problems) == 0, r.Snapshots, r.Records, r.Replayed, r.Rewound, r.Bytes,
		describe.Listed(r.Problems, describe.ProblemOf), append([]string{}, r.Notes...), []string{},
	}
	if !doc.OK {
		doc.Helps = append(doc.Helps, h.recovering(a.ctx, v)...)
	}
	return doc, a.ctx.Err()
}

// maxRecovering is how long is tried what recover would save.
const maxRecovering = 10 * time.Second

// recovering returns the command that would save something of a damaged store or save; none, if nothing
// can be saved, or that takes too long to find out. It costs what opening a store does, and for a damaged
// save the memory for its world.
func (s speaker) recovering(ctx context.Context, v *inspect.View) []string {
	ctx, cancel := context.WithTimeout(ctx, maxRecovering)
	defer cancel()
	r, err := v.Recover(ctx, "", inspect.RecoverOptions{})
	switch {
	case err == nil:
		return []string{s.command("recover", "-o", s.name+".recovered")}
	case r.Pieces:
		return []string{s.command("recover", "-o", s.name+".pieces", "--partial")}
	}
	return nil
}

// quoted returns bytes as a string in Go, which shows all of them.
func quoted(b []byte) string {
	const shown = 256
	if len(b) > shown {
		return strconv.Quote(string(b[:shown])) + "…"
	}
	return strconv.Quote(string(b))
}
