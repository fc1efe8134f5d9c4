package query

import (
	"container/heap"
	"math"

	"github.com/stet-ecs/stet/persist/inspect"
)

// A tally combines the answers for all entities, and can remove each answer again. For any, none
// and all, it counts the true and the false answers. For min and max, it has a heap. For all other
// aggregates, it has a total.
type tally struct {
	kind   string
	truths [2]int // Numbers of false and of true answers.
	total  *Total
	best   extreme
}

// newTally returns an empty tally.
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

// add adds the answer a of the entity with the given index. After an error, the tally is unchanged.
func (t *tally) add(a Answer, index uint32) error {
	switch {
	case isTruth(t.kind):
		t.truths[truth(a)]++
	case t.kind == "min" || t.kind == "max":
		t.best.add(a, index)
	default:
		return t.total.Add(a)
	}
	return nil
}

// take removes an answer that was added. It ignores a nil answer.
func (t *tally) take(a Answer) {
	switch {
	case a.v == nil:
	case isTruth(t.kind):
		t.truths[truth(a)]--
	case t.kind == "min" || t.kind == "max":
		t.best.take(a)
	default:
		t.total.Remove(a)
	}
}

// result returns the combined answers. The parameter k has the answers for the entities of im. The
// tally may not have the result: min of 1 and 1.0 depends on the order of entities, and a
// percentile may have been rounded. Then result adds all answers again.
func (t *tally) result(k *answerCache, im *inspect.Image) Answer {
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

// again adds all answers in k in the order of the registry.
func (t *tally) again(k *answerCache, im *inspect.Image) Answer {
	again := NewTotal(t.kind)
	for _, e := range im.Entities() {
		_ = again.Add(k.answers[e.Index()])
	}
	return again.Result()
}

// truth returns 1 for the answer true, otherwise 0.
func truth(a Answer) int {
	if a.v == true {
		return 1
	}
	return 0
}

// An extreme is the least or the greatest answer. It is a heap from which answers are removed late:
// an outdated element stays until it is at the top. An element is outdated if its entity now has
// another answer.
//
// If most elements are outdated, the heap is rebuilt.
type extreme struct {
	sign  int // 1 for the greatest answer, -1 for the least.
	heap  []ranked
	kinds [otherAnswer + 1]int // Number of answers by type.
	zeros int                  // Number of -0 answers.
}

// ranked is an element of the heap: an answer, with the index of its entity.
type ranked struct {
	Answer
	index uint32
}

// add adds the answer a of the entity with the given index.
func (x *extreme) add(a Answer, index uint32) {
	if x.count(a, 1) {
		heap.Push(x, ranked{a, index})
	}
}

// take removes the answer a. Its element may stay in the heap.
func (x *extreme) take(a Answer) { x.count(a, -1) }

// count adds n to the counts for a. It reports whether a belongs in the heap, see isRanked.
func (x *extreme) count(a Answer, n int) bool {
	kind := kindOf(a)
	x.kinds[kind] += n
	if f, ok := a.v.(float64); ok && f == 0 && math.Signbit(f) {
		x.zeros += n
	}
	return isRanked(kind)
}

// isRanked reports whether answers of the given type belong in the heap: numbers, booleans and
// texts.
func isRanked(kind int) bool { return kind != noAnswer && kind != otherAnswer }

// of returns the least or the greatest of the current answers. Some different answers compare as
// equal: 1 and 1.0, 0 and -0, or two lists. If there may be such answers, the first entity decides,
// and of returns false.
func (x *extreme) of(answers []Answer) (Answer, bool) {
	kinds, n := 0, 0
	for _, of := range x.kinds[noAnswer+1:] {
		if n += of; of > 0 {
			kinds++
		}
	}
	// Rebuild the heap if most of it is outdated. It was filled one answer at a time, so the cost
	// for each added answer is constant on average.
	if len(x.heap) > 2*n+64 {
		x.rebuild(answers)
	}
	switch {
	case kinds == 0:
		return Answer{}, true
	case kinds > 1 || x.kinds[otherAnswer] > 0:
		return Answer{}, false
	}
	// Pop outdated answers from the top. The loop ends, because the heap has every current answer.
	for !same(answers[x.heap[0].index], x.heap[0].Answer) {
		heap.Pop(x)
	}
	best := x.heap[0].Answer
	// The heap does not store whether 0 or -0 came first.
	return best, best.v != 0.0 || x.zeros == 0
}

// rebuild creates the heap from the current answers.
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

// same reports whether two answers are identical. 0 and -0 are different, and all NaNs are
// identical.
func same(a, b Answer) bool {
	x, ok := a.v.(float64)
	y, too := b.v.(float64)
	if ok && too {
		return math.Float64bits(x) == math.Float64bits(y) || math.IsNaN(x) && math.IsNaN(y)
	}
	return kindOf(a) == kindOf(b) && a == b
}
