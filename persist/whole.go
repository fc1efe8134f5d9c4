package persist

import (
	"bytes"
	"encoding/binary"
	"iter"
	"math"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/persist/internal/format"
	"github.com/stet-ecs/stet/persist/internal/image"
)

// A wholeStorage is a storage that a tick may have to write in full, even if it did not change.
// That is so if the parent's state lacks the storage, or has other values of it:
//
//   - A NoRewind storage after a rewind. In the world it keeps its newest values, but the parent's
//     state has older ones.
//   - A resource that was registered late. It gets its first value when it is registered, so no
//     tick has this value as a change.
type wholeStorage struct {
	raw.Storage
	// seq is a record that wrote the storage in full: the first one for a resource, the last one
	// for a NoRewind storage. A tick that continues an older record must write the storage in full.
	seq uint64
	// kept is true after a [Store.Goto] if the world kept NoRewind values that differ from those on
	// the disk.
	kept bool
}

// neverGiven is the seq of a storage that no record has written.
const neverGiven = math.MaxUint64

// pending reports whether a tick that continues the record with seq parent must write w in full.
func (w *wholeStorage) pending(parent uint64) bool { return w.seq > parent }

// written updates w after a record that contains w in full. seq is that record, and parent is its
// parent.
func (w *wholeStorage) written(seq, parent uint64) {
	if w.pending(parent) || !w.Rewinds() {
		w.seq, w.kept = seq, false
	}
}

// change returns a change that holds all rows of w. before is the number of rows before the change.
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

// A wholeList holds the persistent resources of a world and its persistent NoRewind storages.
type wholeList []wholeStorage

// add adds the storage st to the list if st is a persistent resource or a persistent NoRewind
// storage. seq is the record that wrote the storage.
func (l *wholeList) add(st raw.Storage, seq uint64) {
	if st.Persistent() && (st.IsResource() || !st.Rewinds()) {
		*l = append(*l, wholeStorage{Storage: st, seq: seq})
	}
}

// find returns the entry of st in the list, or nil.
func (l wholeList) find(st raw.Storage) *wholeStorage {
	for i := range l {
		if l[i].Storage == st {
			return &l[i]
		}
	}
	return nil
}

// complete returns the change to write in record seq, which continues the record with seq parent.
// If the record must write the whole storage, complete returns a change with all rows, and
// otherwise c.
func (l *wholeList) complete(c raw.StorageChange, s *format.Schema, seq, parent uint64) raw.StorageChange {
	if _, numbered := s.Numbers[c.Storage.Name()]; !numbered {
		l.add(c.Storage, neverGiven)
	}
	if w := l.find(c.Storage); w != nil {
		if w.pending(parent) {
			c = w.change(c.Before)
		}
		w.written(seq, parent)
	}
	return c
}

// gives reports whether a tick must write the storage st in full. parent is the seq of the tick's
// parent record.
func (l wholeList) gives(st raw.Storage, s *format.Schema, parent uint64) bool {
	if w := l.find(st); w != nil {
		return !st.Rewinds() || w.pending(parent)
	}
	_, numbered := s.Numbers[st.Name()]
	return !numbered || !st.Rewinds()
}

// valuesOf records that all NoRewind storages now have their values of the state after record seq.
func (l wholeList) valuesOf(seq uint64) {
	for i := range l {
		if w := &l[i]; !w.Rewinds() && w.seq != neverGiven {
			w.seq = seq
		}
	}
}

// stayed updates l after the world went to another state, but kept its NoRewind values. The map
// stored has the NoRewind values of the other state, see [exemptRows].
func (l wholeList) stayed(stored map[string][]byte) {
	for i := range l {
		if w := &l[i]; !w.Rewinds() {
			w.seq, w.kept = neverGiven, !bytes.Equal(stored[w.Name()], rowsOf(w.Storage))
		}
	}
}

// resourcesPending reports whether a record that continues the record with seq parent must write a
// resource in full. Resources with NoRewind do not count.
func (l wholeList) resourcesPending(parent uint64) bool {
	for i := range l {
		if w := &l[i]; w.Rewinds() && w.pending(parent) {
			return true
		}
	}
	return false
}

// different reports whether the values of NoRewind storages differ from those after record seq.
// Changes after the last commit do not count.
func (l wholeList) different(seq uint64) bool {
	for i := range l {
		if w := &l[i]; !w.Rewinds() && (w.kept || w.seq != neverGiven && w.pending(seq)) {
			return true
		}
	}
	return false
}

// exemptRows maps the names of the world's NoRewind storages to their rows in im, in the format of
// [rowsOf].
func exemptRows(im *image.Image, w *ecs.World) map[string][]byte {
	rows := map[string][]byte{}
	for _, st := range w.Raw().Storages() {
		if st.Rewinds() || !st.Persistent() {
			continue
		}
		if n, ok := image.NumberOf(im.Stored(), st); ok {
			c := im.Components[n]
			rows[st.Name()] = c.AppendRows(entityBytes(raw.As[uint64](c.Entities)), 0, c.N)
		}
	}
	return rows
}

// rowsOf returns the entities and rows of st. It returns nil if there are none.
func rowsOf(st raw.Storage) []byte {
	return st.AppendRows(entityBytes(st.Entities()), 0, st.Rows())
}

func entityBytes(entities []uint64) (b []byte) {
	for _, e := range entities {
		b = binary.LittleEndian.AppendUint64(b, e)
	}
	return b
}

// rest iterates over the unchanged storages that record seq must write.
func (l wholeList) rest(seq, parent uint64) iter.Seq[raw.StorageChange] {
	return func(yield func(raw.StorageChange) bool) {
		for i := range l {
			w := &l[i]
			if w.seq == seq || !w.pending(parent) {
				continue
			}
			if !yield(w.change(0)) {
				return
			}
			w.written(seq, parent)
		}
	}
}

// has reports whether the state after record seq has st. It returns false for a resource that was
// registered later. Every state has all NoRewind storages.
func (l wholeList) has(st raw.Storage, seq uint64) bool {
	w := l.find(st)
	return w == nil || !st.Rewinds() || !w.pending(seq)
}
