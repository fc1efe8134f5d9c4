package persist

import (
	"iter"
	"math"

	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/persist/internal/format"
)

// A wholeStorage is a storage that a tick must give whole, changed or not, if its
// parent's state has another or none of it:
//
//   - what does not rewind, after a rewind: the parent's state has what was given
//     on the way to it, the world has what it had before the rewind;
//   - a resource that was registered when the store had states already: its first
//     value is nowhere among the changes.
type wholeStorage struct {
	raw.Storage
	seq uint64 // The record that gave it: the first for a resource, else the last.
}

// neverGiven is the seq of what no record has.
const neverGiven = math.MaxUint64

// owed reports whether a tick that continues record parent must give it.
func (w *wholeStorage) owed(parent uint64) bool { return w.seq > parent }

// gave notes that record seq, which continues parent, has it whole.
func (w *wholeStorage) gave(seq, parent uint64) {
	if w.owed(parent) || !w.Rewinds() {
		w.seq = seq
	}
}

// change is all of it.
func (w *wholeStorage) change(before int) raw.StorageChange {
	c := raw.StorageChange{Storage: w.Storage, Before: before}
	if n := w.Rows(); n > 0 {
		c.Values = []raw.Range{{First: 0, N: n}}
		if !w.IsResource() {
			c.Entities = c.Values
		}
	}
	return c
}

// A wholeList holds the resources of a world and its storages that do not
// rewind, as far as they are saved.
type wholeList []wholeStorage

// add adds st, which record seq gave, if it belongs into the list.
func (l *wholeList) add(st raw.Storage, seq uint64) {
	if st.Persistent() && (st.IsResource() || !st.Rewinds()) {
		*l = append(*l, wholeStorage{st, seq})
	}
}

// find returns the place of st in the list, or nil.
func (l wholeList) find(st raw.Storage) *wholeStorage {
	for i := range l {
		if l[i].Storage == st {
			return &l[i]
		}
	}
	return nil
}

// complete returns c, or all of the storage if record seq, which continues parent,
// must give it whole.
func (l *wholeList) complete(c raw.StorageChange, s *format.Schema, seq, parent uint64) raw.StorageChange {
	if _, numbered := s.Numbers[c.Storage.Name()]; !numbered {
		l.add(c.Storage, neverGiven)
	}
	if w := l.find(c.Storage); w != nil {
		if w.owed(parent) {
			c = w.change(c.Before)
		}
		w.gave(seq, parent)
	}
	return c
}

// gives reports whether a tick that continues parent must give st whole.
func (l wholeList) gives(st raw.Storage, s *format.Schema, parent uint64) bool {
	if w := l.find(st); w != nil {
		return !st.Rewinds() || w.owed(parent)
	}
	_, numbered := s.Numbers[st.Name()]
	return !numbered || !st.Rewinds()
}

// stayed notes that the world went to a state of another time, and what does not rewind
// stayed as it was.
func (l wholeList) stayed() {
	for i := range l {
		if !l[i].Rewinds() {
			l[i].seq = neverGiven
		}
	}
}

// rest iterates over what record seq must give though it did not change.
func (l wholeList) rest(seq, parent uint64) iter.Seq[raw.StorageChange] {
	return func(yield func(raw.StorageChange) bool) {
		for i := range l {
			w := &l[i]
			if w.seq == seq || !w.owed(parent) {
				continue
			}
			if !yield(w.change(0)) {
				return
			}
			w.gave(seq, parent)
		}
	}
}

// has reports whether the state after record seq has st. What does not rewind
// belongs to no record and to all.
func (l wholeList) has(st raw.Storage, seq uint64) bool {
	w := l.find(st)
	return w == nil || !st.Rewinds() || !w.owed(seq)
}
