package persist

import (
	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/persist/internal/format"
)

// edits lists the large rows of which a tick writes only the changed bytes. The recorder finds
// these rows before it encodes the tick. A tick without such rows is encoded in an older format.
type edits struct {
	found []storageEdits
	n     int // The first n entries of found belong to this tick.
}

type storageEdits struct {
	storage raw.Storage
	format.EditedRows
}

// any reports whether the tick has edits.
func (e *edits) any() bool { return e.n > 0 }

// of returns the edited rows of st; nil means none.
func (e *edits) of(st raw.Storage) *format.EditedRows {
	for i := range e.found[:e.n] {
		if e.found[i].storage == st {
			return &e.found[i].EditedRows
		}
	}
	return nil
}

// next returns a cleared entry for the edits of st. To keep the entry in the tick, the caller
// increments n.
func (e *edits) next(st raw.Storage) *format.EditedRows {
	if e.n == len(e.found) {
		e.found = append(e.found, storageEdits{})
	}
	rows := &e.found[e.n]
	rows.storage = st
	rows.Begin()
	return &rows.EditedRows
}
