package dump

import (
	"fmt"
	"math/big"
)

// A total gathers what an expression gives for many entities.
type total struct {
	kind  string // count, sum, min, max or avg.
	n     int    // Answers that are not nothing; for count, those that hold.
	whole big.Int
	float float64
	exact bool // All numbers were whole.
	best  answer
}

func newTotal(kind string) *total { return &total{kind: kind, exact: true} }

// add counts a. Nothing is left out.
func (t *total) add(a answer) error {
	v := pointedTo(a.v)
	if v == nil || v == false && t.kind == "count" {
		return nil
	}
	t.n++
	switch t.kind {
	case "min":
		t.pick(a, -1)
	case "max":
		t.pick(a, 1)
	case "sum", "avg":
		return t.sum(v)
	}
	return nil
}

func (t *total) pick(a answer, sign int) {
	if t.n == 1 || a.compare(t.best) == sign {
		t.best = a.frozen()
	}
}

func (t *total) sum(v any) error {
	switch v := v.(type) {
	case int:
		t.whole.Add(&t.whole, big.NewInt(int64(v)))
	case uint64:
		t.whole.Add(&t.whole, new(big.Int).SetUint64(v))
	case float64:
		t.float += v
		t.exact = false
	default:
		return fmt.Errorf("%v is no number", answer{v})
	}
	return nil
}

// result returns the total: nothing for the least, the greatest and the mean of no
// answers.
func (t *total) result() answer {
	switch {
	case t.kind == "count":
		return answer{t.n}
	case t.kind == "min" || t.kind == "max":
		return t.best
	case t.kind == "avg" && t.n == 0:
		return answer{nil}
	case t.kind == "avg":
		return answer{t.near() / float64(t.n)}
	case !t.exact:
		return answer{t.near()}
	case t.whole.IsInt64():
		return answer{int(t.whole.Int64())}
	case t.whole.IsUint64():
		return answer{t.whole.Uint64()}
	}
	return answer{t.whole}
}

// near returns the sum as a float.
func (t *total) near() float64 {
	whole, _ := new(big.Float).SetInt(&t.whole).Float64()
	return whole + t.float
}
