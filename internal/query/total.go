package query

import (
	"fmt"
	"math/big"
)

// A Total gathers what an expression gives for many entities.
type Total struct {
	kind  string // count, sum, min, max or avg.
	n     int    // Answers that are not nothing; for count, those that hold.
	whole big.Int
	float float64
	exact bool // All numbers were whole.
	best  Answer
}

// NewTotal returns a total of nothing: count, sum, min, max or avg.
func NewTotal(kind string) *Total { return &Total{kind: kind, exact: true} }

// Add counts a. Nothing is left out.
func (t *Total) Add(a Answer) error {
	if a.v == nil || a.v == false && t.kind == "count" {
		return nil
	}
	t.n++
	switch t.kind {
	case "min":
		t.pick(a, -1)
	case "max":
		t.pick(a, 1)
	case "sum", "avg":
		return t.sum(a.v)
	}
	return nil
}

func (t *Total) pick(a Answer, sign int) {
	if t.n == 1 || a.Compare(t.best) == sign {
		t.best = a
	}
}

// sum adds v. Integers are added without bounds and floats apart from them, so that no order
// of entities changes an exact sum.
func (t *Total) sum(v any) error {
	switch v := v.(type) {
	case int:
		t.whole.Add(&t.whole, big.NewInt(int64(v)))
	case uint64:
		t.whole.Add(&t.whole, new(big.Int).SetUint64(v))
	case float64:
		t.float += v
		t.exact = false
	default:
		return fmt.Errorf("%v is no number", Answer{v})
	}
	return nil
}

// Result returns the total: nothing for the least, the greatest and the mean of no
// answers.
func (t *Total) Result() Answer {
	switch {
	case t.kind == "count":
		return Answer{t.n}
	case t.kind == "min" || t.kind == "max":
		return t.best
	case t.kind == "avg" && t.n == 0:
		return Answer{nil}
	case t.kind == "avg":
		return Answer{t.near() / float64(t.n)}
	case !t.exact:
		return Answer{t.near()}
	case t.whole.IsInt64():
		return Answer{int(t.whole.Int64())}
	case t.whole.IsUint64():
		return Answer{t.whole.Uint64()}
	}
	return Answer{t.whole}
}

// near returns the sum as a float.
func (t *Total) near() float64 {
	whole, _ := new(big.Float).SetInt(&t.whole).Float64()
	return whole + t.float
}
