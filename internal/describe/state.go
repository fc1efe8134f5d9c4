package describe

import (
	"fmt"
	"iter"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist/inspect"
)

// A StateDoc names the state that a document describes.
type StateDoc struct {
	Tick uint64 `json:"tick"`
	Seq  uint64 `json:"record"` // The record of the state; 0 if it has none.
}

// State returns the document of a state.
func State(tick, seq uint64) StateDoc { return StateDoc{tick, seq} }

// StateOf returns the document of the state after record seq. If the journal no longer has the
// record, a snapshot of the state provides the tick. The tick is 0 if it is unknown.
func StateOf(v *inspect.View, seq uint64) StateDoc {
	if e, ok := v.Log().Known(seq); ok {
		return State(e.Tick, seq)
	}
	if s := SnapshotOf(v, seq); s != nil {
		return State(s.Tick, seq)
	}
	return State(0, seq)
}

// Place returns the state as text.
func (d StateDoc) Place() string { return fmt.Sprintf("tick %d, record %d", d.Tick, d.Seq) }

// SnapshotOf returns a readable snapshot with the given record number, or nil.
func SnapshotOf(v *inspect.View, seq uint64) *inspect.SnapshotInfo {
	for _, s := range v.Snapshots() {
		if s.Err == nil && s.ID.Seq == seq {
			return &s
		}
	}
	return nil
}

// ComponentsOf iterates over the components that entity e has in st, with their rows and values.
func ComponentsOf(st *inspect.State, e ecs.Entity) iter.Seq2[inspect.EntityComponent, error] {
	return func(yield func(inspect.EntityComponent, error) bool) {
		for _, c := range st.Outline().Components {
			row, err := st.Find(c, e)
			of := inspect.EntityComponent{Name: c.Name, Layout: c.Layout, Resource: c.Resource, Row: row}
			if err == nil && row >= 0 {
				of.Value, err = st.Value(c, row)
			}
			if (err != nil || row >= 0) && !yield(of, err) {
				return
			}
		}
	}
}
