package web

import (
	"context"
	"strconv"
	"time"

	"github.com/stet-ecs/stet/internal/describe"
	"github.com/stet-ecs/stet/persist/inspect"
	"github.com/stet-ecs/stet/persist/repair"
)

// The health of a store is reported in two ways. health() reports the damage that opening the store
// found, and whether the newest state can be reached. verify() reads the whole store, with a
// separate view. Both suggest commands that contain the name of the store. health() also suggests
// the command that compares the store with another store.

// healthDoc describes the health of a store.
type healthDoc struct {
	// Opens says that persist.Open or persist.Load would accept the newest state.
	Opens   bool     `json:"opens"`
	Refused string   `json:"refused,omitempty"` // The reason if Opens is false.
	Helps   []string `json:"helps"`             // Commands that may help.
	InUse   bool     `json:"in_use"`
	// Holder is the description of the current or last program in the lock file.
	Holder  string                `json:"holder,omitempty"`
	Clean   bool                  `json:"clean"`   // The last program closed the store.
	Damage  []describe.ProblemDoc `json:"damage"`  // Damage found while opening.
	Journal int64                 `json:"journal"` // Size in bytes.
	Records int                   `json:"records"`
	Rewound int                   `json:"rewound"` // Number of rewound records.
	Files   []snapDoc             `json:"snapshots"`
	// Compare is the command that compares this store with another recording of the same game, such
	// as that of another player.
	Compare string `json:"compare"`
}

// health reports whether the store opens. If the store does not open, the document has commands
// that may help.
func (h *server) health(a *params) (any, error) {
	return answer(a, h.slow, func() (*healthDoc, error) {
		d := h.slow
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
		// If ctx has ended, the error is not about the store.
		if a.ctx.Err() != nil {
			return nil, a.ctx.Err()
		}
		// Refusal does not check a save, so report the damage found by opening it.
		if refusal == nil && d.view.IsSave() && len(doc.Damage) > 0 {
			refusal = d.view.Damage()[0]
		}
		// If a program uses the store, no other program can open it anyway. Its files may also
		// change during the check. So ignore the result.
		if refusal != nil && !doc.InUse {
			doc.Opens, doc.Refused = false, h.describe(refusal).Message
			doc.Helps = append(doc.Helps, h.recovering(a.ctx, d.view)...)
		}
		if len(doc.Damage) > 0 {
			doc.Helps = append(doc.Helps, h.command("verify"))
		}
		return doc, nil
	})
}

// verifyDoc is the result of a full check.
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

// verify checks the whole store, like ecsdump verify. It uses a separate view, so other requests
// do not wait for it. Only one verification runs at a time.
func (h *server) verify(a *params) (any, error) {
	if !h.verifying.TryLock() {
		return nil, fail(codeProblem, "the store is already being verified")
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

// maxRecovering limits the time to check what recover would save.
const maxRecovering = 10 * time.Second

// recovering returns the command that recovers the readable data of a damaged store or save. It
// returns nil if no data can be recovered, or if the check takes too long. The check costs as
// much as opening the store. For a damaged save, it also needs memory for the whole world.
func (s errorWriter) recovering(ctx context.Context, v *inspect.View) []string {
	ctx, cancel := context.WithTimeout(ctx, maxRecovering)
	defer cancel()
	r, err := repair.Recoverable(ctx, v)
	if try := describe.RecoverCommand(s.name, &r, err); try != "" {
		return []string{try}
	}
	return nil
}

// quoted returns bytes as a Go string literal.
func quoted(b []byte) string {
	const shown = 256
	if len(b) > shown {
		return strconv.Quote(string(b[:shown])) + "…"
	}
	return strconv.Quote(string(b))
}
