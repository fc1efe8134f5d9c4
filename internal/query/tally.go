package query

import (
	"container/heap"
	"math"

	"github.com/stet-ecs/stet/persist/inspect"
)

// A tally is what the answers of all entities come to, of which each can be taken out again.
//
//	any, none, all    how many are true and false
//	min, max          a heap
//	others            a total
type tally struct {
	kind   string
	truths [2]int // How many answers are false, and true.
	total  *Total
	best   extreme
}

// newTally returns a tally of nothing. It keeps all hashes of a variety, to take them out again.
func newTally(kind string) tally {
	t := tally{kind: kind, total: NewTotal(kind)}
	if t.total.variety != nil {
		t.total.variety.all = true
	}
	if t.best.sign = 1; kind == "min" {
		t.best.sign = -1
	}
	return t
}

// add adds what the entity with an index gave. After an error it is as if it was not called.
func (t *tally) add(a Answer, index uint32) error {
	switch t.kind {
	case "any", "none", "all":
		t.truths[truth(a)]++
	case "min", "max":
		t.best.add(a, index)
	default:
		return t.total.Add(a)
	}
	return nil
}

// take takes out an answer that was added; nothing leaves t as it is.
func (t *tally) take(a Answer) {
	switch {
	case a.v == nil:
	case t.kind == "any" || t.kind == "none" || t.kind == "all":
		t.truths[truth(a)]--
	case t.kind == "min" || t.kind == "max":
		t.best.take(a)
	default:
		t.total.Remove(a)
	}
}

// result returns what the answers come to, which k keeps of im. What can no longer be told from what was
// counted is added up again, in the order in which entities would have been asked: so the result is the
// one of an aggregate that follows nothing.
func (t *tally) result(k *kept, im *inspect.Image) Answer {
	switch t.kind {
	case "any":
		return Answer{t.truths[1] > 0}
	case "none":
		return Answer{t.truths[1] == 0}
	case "all":
		return Answer{t.truths[0] == 0}
	case "min", "max":
		if best, ok := t.best.of(k.answers); ok {
			return best
		}
		return t.again(k, im)
	}
	if t.total.forgot() {
		return t.again(k, im)
	}
	return t.total.Result()
}

// again adds up all answers that k keeps, of which none is wrong, in the order of entities: it costs
// all of them, but evaluates none.
func (t *tally) again(k *kept, im *inspect.Image) Answer {
	again := NewTotal(t.kind)
	for _, e := range im.Registry[:im.Alive] {
		_ = again.Add(k.answers[e.Index()])
	}
	return again.Result()
}

// truth returns 1 for an answer that is true.
func truth(a Answer) int {
	if a.v == true {
		return 1
	}
	return 0
}

// An extreme is the least or the greatest of answers. It is a heap, in which those that were taken
// out stay until they come up: what the entity gives now is something else.
//
//	answers   entity 1: 7   entity 2: 9   entity 3: 4
//	heap      12 of entity 2   ── it gives 9 now: popped
//	          9 of entity 2    ── the greatest
//
// When most of it was taken out, it is made anew, so it has at most about twice as many as there are
// answers.
type extreme struct {
	sign  int // 1: the greatest; -1: the least.
	heap  []ranked
	kinds [otherAnswer + 1]int // How many answers are of a kind.
	zeros int                  // How many are -0.
}

// A ranked is an answer in the heap, and whose it was.
type ranked struct {
	Answer
	index uint32
}

// add adds what the entity with an index gave.
func (x *extreme) add(a Answer, index uint32) {
	if x.count(a, 1) {
		heap.Push(x, ranked{a, index})
	}
}

// take takes out an answer.
func (x *extreme) take(a Answer) { x.count(a, -1) }

// count counts a, and reports whether it is one that a heap takes.
func (x *extreme) count(a Answer, n int) bool {
	kind := kindOf(a)
	x.kinds[kind] += n
	if f, ok := a.v.(float64); ok && f == 0 && math.Signbit(f) {
		x.zeros += n
	}
	return isRanked(kind)
}

// isRanked reports whether answers of a kind are in the heap.
func isRanked(kind int) bool { return kind != noAnswer && kind != otherAnswer }

// of returns the extreme of answers, which are what was added and not taken out. It is false where
// several are equal that are not the same, so that the order of entities says which one it is: an
// integer and a float, 0 and -0, lists.
func (x *extreme) of(answers []Answer) (Answer, bool) {
	kinds, n := 0, 0
	for _, of := range x.kinds[noAnswer+1:] {
		if n += of; of > 0 {
			kinds++
		}
	}
	if len(x.heap) > 2*n+64 { // Mostly of what was taken out: O(1) for each that was added since.
		x.rebuild(answers)
	}
	switch {
	case kinds == 0:
		return Answer{}, true
	case kinds > 1 || x.kinds[otherAnswer] > 0:
		return Answer{}, false
	}
	// What is on top may have been taken out since: then its entity gives something else by now. If
	// it gives the same again, it was added twice, and either copy is right.
	// All are of one kind, and each of them was pushed, so one is found before the heap is empty.
	for !same(answers[x.heap[0].index], x.heap[0].Answer) {
		heap.Pop(x)
	}
	best := x.heap[0].Answer
	return best, best.v != 0.0 || x.zeros == 0 // With a -0 among them, a 0 may be either.
}

// rebuild leaves out what was taken out.
func (x *extreme) rebuild(answers []Answer) {
	x.heap = x.heap[:0]
	for index, a := range answers {
		if isRanked(kindOf(a)) {
			x.heap = append(x.heap, ranked{a, uint32(index)})
		}
	}
	heap.Init(x)
}

// Len, Less, Swap, Push and Pop implement heap.Interface.
func (x *extreme) Len() int           { return len(x.heap) }
func (x *extreme) Less(i, j int) bool { return x.heap[i].Compare(x.heap[j].Answer) == x.sign }
func (x *extreme) Swap(i, j int)      { x.heap[i], x.heap[j] = x.heap[j], x.heap[i] }
func (x *extreme) Push(a any)         { x.heap = append(x.heap, a.(ranked)) }
func (x *extreme) Pop() any {
	last := x.heap[len(x.heap)-1]
	x.heap = x.heap[:len(x.heap)-1]
	return last
}

// same reports whether two answers that a heap takes are the same; 0 and -0 are not.
func same(a, b Answer) bool {
	x, ok := a.v.(float64)
	y, too := b.v.(float64)
	if ok && too {
		return math.Float64bits(x) == math.Float64bits(y) || math.IsNaN(x) && math.IsNaN(y)
	}
	return kindOf(a) == kindOf(b) && a == b
}
