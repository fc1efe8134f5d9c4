package query

import (
	"cmp"
	"encoding/binary"
	"iter"
	"math"
	"slices"
	"sync/atomic"

	"github.com/stet-ecs/stet/ecs"
)

// A Best keeps the first Limit of many entities, in the order of their keys. Entities with equal
// keys are ordered by index, and the key nil comes last. With a limit, a Best stores at most twice
// Limit entities.
//
// Best converts a key to a code: a number that sorts like the key. Most codes are exact: the key
// can be computed from the code. Then Best stores only the code and the entity, in the field plain.
// They take 16 bytes. Otherwise it stores the keys too, in the field full. Texts, very large
// integers and multiple keys have no exact code.
type Best struct {
	Desc  bool   // Descending order.
	Limit int    // Number of entities to store; 0 means all entities.
	After *Place // Keep only entities after this place in the order; nil means all.

	Total int // Number of added entities, including those that were dropped.

	plain [][]plainPlace
	full  []Place
	// worst is the place of entity number Limit, or nil if there are fewer entities.
	worst atomic.Pointer[Place]
}

// A Place is the position of an entity in the order: its keys and its index.
type Place struct {
	plainPlace
	keys []Answer // nil if the code is exact.
}

// A plainPlace is a place whose code represents the key exactly.
type plainPlace struct {
	code   uint64
	entity ecs.Entity
}

// Entity returns the entity at the place.
func (p plainPlace) Entity() ecs.Entity { return p.entity }

// runLength is the number of places in a run, if there is no limit. A run is an element of b.plain.
// Full runs are sorted.
const runLength = 1 << 16

// Codes of keys that are not numbers. Codes of numbers are between codeTrue and codeText.
const (
	codeFalse   = 1
	codeTrue    = 2
	codeText    = 0xfff1 << 48
	codeOther   = 0xfff8 << 48
	codeNaN     = 0xfffa << 48
	codeNothing = math.MaxUint64
)

// codeOf returns the code of a key. The second result reports whether the code is exact.
func (b *Best) codeOf(a Answer) (code uint64, all bool) {
	switch all = true; a.rank() {
	case 0:
		code = codeFalse
	case 1:
		code = codeTrue
	case 2:
		code, all = numberCode(a)
	case 3:
		text, _ := a.Text()
		var first [8]byte
		copy(first[2:], text)
		code, all = codeText|binary.BigEndian.Uint64(first[:]), false
	case 4:
		code, all = codeOther, false
	case 5:
		code = codeNaN
	default:
		return codeNothing, true
	}
	if b.Desc {
		code = ^code
	}
	return code, all
}

// numberCode returns the code of a number: the bits of the nearest float64, changed so that codes
// sort like numbers.
func numberCode(a Answer) (code uint64, all bool) {
	const most = 1 << 53
	var x float64
	switch v := a.v.(type) {
	case float64:
		x, all = v, true
	case int:
		x, all = float64(v), -most <= int64(v) && int64(v) <= most
	case uint8:
		x, all = float64(v), true
	default:
		x, _ = a.Float()
	}
	// Adding 0 turns -0 into 0.
	code = math.Float64bits(x + 0)
	if code>>63 == 1 {
		return ^code, all
	}
	return code | 1<<63, all
}

// keyOf returns the key of an exact code.
func (b *Best) keyOf(code uint64) Answer {
	if code == codeNothing {
		return Answer{}
	}
	if b.Desc {
		code = ^code
	}
	switch {
	case code <= codeTrue:
		return Answer{code == codeTrue}
	case code == codeNaN:
		return Answer{math.NaN()}
	case code>>63 == 0:
		return Answer{math.Float64frombits(^code)}
	}
	return Answer{math.Float64frombits(code &^ (1 << 63))}
}

// Part returns an empty Best for a goroutine, with the same order and limit. The goroutine adds
// entities to it, and the caller then joins it to b. Several goroutines may call Part, even during
// a Join.
func (b *Best) Part() *Best {
	part := &Best{Desc: b.Desc, Limit: b.Limit, After: b.After}
	part.worst.Store(b.worst.Load())
	return part
}

// compare compares two places.
func (b *Best) compare(x, y *Place) int {
	c := cmp.Compare(x.code, y.code)
	if c == 0 && (x.keys != nil || y.keys != nil) {
		c = slices.CompareFunc(b.keys(x), b.keys(y), b.order)
	}
	return cmp.Or(c, cmp.Compare(x.entity.Index(), y.entity.Index()))
}

// keys returns the keys of a place.
func (b *Best) keys(p *Place) []Answer {
	if p.keys != nil {
		return p.keys
	}
	return []Answer{b.keyOf(p.code)}
}

// order compares two keys. nil comes last in both directions.
func (b *Best) order(x, y Answer) int {
	c := x.Compare(y)
	if b.Desc && !x.Nothing() && !y.Nothing() {
		return -c
	}
	return c
}

// comparePlain compares two places with exact codes.
func comparePlain(x, y plainPlace) int {
	return cmp.Or(cmp.Compare(x.code, y.code), cmp.Compare(x.entity.Index(), y.entity.Index()))
}

// Add adds an entity with its keys. It copies the keys if it stores them.
func (b *Best) Add(e ecs.Entity, keys ...Answer) {
	b.Total++
	code, all := b.codeOf(keys[0])
	p := Place{plainPlace: plainPlace{code, e}}
	if all = all && len(keys) == 1; !all {
		p.keys = keys
	}
	switch {
	case b.leavesOut(&p):
	case all:
		b.keep(Place{plainPlace: p.plainPlace})
	default:
		b.keep(Place{p.plainPlace, slices.Clone(keys)})
	}
}

// leavesOut reports whether a place is beyond the limit, or not after b.After.
func (b *Best) leavesOut(p *Place) bool {
	worst := b.worst.Load()
	return worst != nil && b.compare(p, worst) > 0 || b.After != nil && b.compare(p, b.After) <= 0
}

// keep stores a place.
func (b *Best) keep(p Place) {
	if p.keys != nil {
		b.full = append(b.full, p)
	} else {
		b.keepPlain(p.plainPlace)
	}
	if b.Limit > 0 && b.kept() >= 2*b.Limit {
		b.trim()
	}
}

// keepPlain stores a place in the newest run. If the newest run is full, keepPlain begins another
// run.
func (b *Best) keepPlain(p plainPlace) {
	last := len(b.plain) - 1
	if last < 0 || b.Limit == 0 && len(b.plain[last]) == runLength {
		if last >= 0 {
			slices.SortFunc(b.plain[last], comparePlain)
		}
		b.plain = append(b.plain, nil)
		last++
	}
	b.plain[last] = append(b.plain[last], p)
}

// kept returns the number of stored places.
func (b *Best) kept() int {
	n := len(b.full)
	for _, run := range b.plain {
		n += len(run)
	}
	return n
}

// Join adds all entities of another Best with the same order and limit.
func (b *Best) Join(of *Best) {
	b.Total += of.Total
	join := func(p Place) {
		if !b.leavesOut(&p) {
			b.keep(p)
		}
	}
	for _, run := range of.plain {
		for _, p := range run {
			join(Place{plainPlace: p})
		}
	}
	for _, p := range of.full {
		join(p)
	}
}

// sort sorts the places that are not sorted yet: the last run, and the places of b.full.
func (b *Best) sort() {
	if last := len(b.plain) - 1; last >= 0 {
		slices.SortFunc(b.plain[last], comparePlain)
	}
	slices.SortFunc(b.full, func(x, y Place) int { return b.compare(&x, &y) })
}

// trim drops the places beyond the limit.
func (b *Best) trim() {
	b.sort()
	if b.Limit == 0 || b.kept() < b.Limit {
		return
	}
	plain, full := 0, 0
	var worst Place
	n := 0
	for p := range b.merged() {
		if p.keys != nil {
			full++
		} else {
			plain++
		}
		if n++; n == b.Limit {
			worst = p
			break
		}
	}
	if len(b.plain) > 0 {
		b.plain[0] = b.plain[0][:plain]
	}
	// Release the memory of the keys.
	clear(b.full[full:])
	b.full = b.full[:full]
	b.worst.Store(&worst)
}

// Sorted returns the stored places in order. Afterwards, Add and Join must not be called.
func (b *Best) Sorted() iter.Seq[Place] {
	b.trim()
	return b.merged()
}

// merged returns the places of all sorted runs in order.
func (b *Best) merged() iter.Seq[Place] {
	return func(yield func(Place) bool) {
		// The heap merges the runs. It is ordered by the first places of the runs. The places of
		// b.full are one more run.
		type run struct {
			first Place
			plain []plainPlace
			full  []Place
		}
		next := func(r *run) bool {
			switch {
			case len(r.plain) > 0:
				r.first, r.plain = Place{plainPlace: r.plain[0]}, r.plain[1:]
			case len(r.full) > 0:
				r.first, r.full = r.full[0], r.full[1:]
			default:
				return false
			}
			return true
		}
		var heap []*run
		for _, plain := range b.plain {
			heap = append(heap, &run{plain: plain})
		}
		heap = slices.DeleteFunc(append(heap, &run{full: b.full}), func(r *run) bool { return !next(r) })
		down := func(i int) {
			for {
				least := i
				for child := 2*i + 1; child <= 2*i+2 && child < len(heap); child++ {
					if b.compare(&heap[child].first, &heap[least].first) < 0 {
						least = child
					}
				}
				if least == i {
					return
				}
				heap[i], heap[least] = heap[least], heap[i]
				i = least
			}
		}
		for i := len(heap)/2 - 1; i >= 0; i-- {
			down(i)
		}
		for len(heap) > 0 {
			if !yield(heap[0].first) {
				return
			}
			if !next(heap[0]) {
				heap[0] = heap[len(heap)-1]
				heap = heap[:len(heap)-1]
			}
			down(0)
		}
	}
}
