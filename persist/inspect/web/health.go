package web

import (
	"errors"
	"strconv"

	"github.com/stet-ecs/stet/persist"
)

// How a store fares is told at two prices: health from what opening found, and from whether the
// newest state can be reached; verify by reading everything, for which it has a view of its own.

// healthDoc says how a store fares.
type healthDoc struct {
	Opens   bool         `json:"opens"`             // persist.Open would go on from its newest state, or persist.Load would load it.
	Refused string       `json:"refused,omitempty"` // Why not.
	Helps   []string     `json:"helps"`             // Commands that may.
	InUse   bool         `json:"in_use"`
	Holder  string       `json:"holder,omitempty"` // What the lock says of who has it open, or had it.
	Clean   bool         `json:"clean"`            // The last program closed it.
	Damage  []problemDoc `json:"damage"`           // That opening found.
	Journal int64        `json:"journal"`          // Bytes.
	Records int          `json:"records"`
	Rewound int          `json:"rewound"` // Of them.
	Files   []snapDoc    `json:"snapshots"`
}

// A problemDoc is something that is damaged.
type problemDoc struct {
	Kind    string `json:"kind"` // corrupt, foreign, newer or missing.
	File    string `json:"file,omitempty"`
	Offset  *int64 `json:"offset,omitempty"`
	Length  *int64 `json:"length,omitempty"`
	Message string `json:"message"`
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
			Opens: true, Helps: []string{}, Clean: log.Clean, Records: len(log.Entries), Rewound: len(log.Entries) - len(d.line.path),
			Holder: cut(d.view.LockHolder(), 256), Damage: []problemDoc{}, Files: d.snapshots(h),
		}
		doc.InUse = d.view.InUse() && !log.Clean
		for _, s := range log.Segments {
			doc.Journal += s.Size
		}
		for _, err := range d.view.Damage() {
			doc.Damage = append(doc.Damage, h.problem(err))
		}
		refusal := d.view.Refusal(a.ctx)
		if a.ctx.Err() != nil {
			return nil, a.ctx.Err()
		}
		if refusal == nil && d.view.IsSave() && len(doc.Damage) > 0 {
			refusal = d.view.Damage()[0]
		}
		// While a program has the store, it does not open for another, and need not: files
		// may come and go while it is asked.
		if refusal != nil && !doc.InUse {
			doc.Opens, doc.Refused = false, h.describe(refusal).Error.Message
			doc.Helps = append(doc.Helps, h.command("recover", "-o", h.name+".recovered"))
		}
		if len(doc.Damage) > 0 {
			doc.Helps = append(doc.Helps, h.command("verify"))
		}
		return doc, nil
	})
}

// problem describes damage. Whatever is not known to be something else is damage.
func (h *shown) problem(err error) problemDoc {
	doc := problemDoc{Kind: "corrupt", Message: h.describe(err).Error.Message}
	switch {
	case errors.Is(err, persist.ErrNewer):
		doc.Kind = "newer"
	case errors.Is(err, persist.ErrForeign):
		doc.Kind = "foreign"
	case errors.Is(err, persist.ErrNotFound):
		doc.Kind = "missing"
	}
	if damage, ok := errors.AsType[*persist.DamageError](err); ok {
		doc.File = damage.File
		if damage.Offset >= 0 {
			doc.Offset, doc.Length = &damage.Offset, &damage.Length
		}
	}
	return doc
}

// verifyDoc is what checking everything found.
type verifyDoc struct {
	OK        bool         `json:"ok"`
	Snapshots int          `json:"snapshots"`
	Records   int          `json:"records"`
	Replayed  int          `json:"replayed"`
	Rewound   int          `json:"rewound"`
	Bytes     int64        `json:"bytes"`
	Problems  []problemDoc `json:"problems"`
	Notes     []string     `json:"notes"`
	Helps     []string     `json:"helps"`
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
		listed(r.Problems, h.problem), append([]string{}, r.Notes...), []string{},
	}
	if !doc.OK {
		doc.Helps = append(doc.Helps, h.command("recover", "-o", h.name+".recovered"))
	}
	return doc, nil
}

// quoted returns bytes as a string in Go, which shows all of them.
func quoted(b []byte) string {
	const shown = 256
	if len(b) > shown {
		return strconv.Quote(string(b[:shown])) + "…"
	}
	return strconv.Quote(string(b))
}
