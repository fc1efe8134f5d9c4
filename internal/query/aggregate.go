package query

import (
	"fmt"
	"math"
	"math/big"
	"reflect"
	"strconv"
	"strings"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser"
	"github.com/expr-lang/expr/parser/lexer"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist/inspect"
)

// An aggregate combines the answers for all entities into one: sum(Health), any(Position.X > 10).
// The argument is compiled as a separate expression about one entity. A [Total] collects its
// answers.
//
// Sums are exact, so they do not depend on the order of entities. After a tick, an aggregate can
// remove the old answers of changed entities from its total, and add the new ones: see follow.go.

// An aggregateKind is a function over all entities.
type aggregateKind struct {
	want Want
	// of is the result type of the aggregate.
	of reflect.Type
}

// aggregateKinds has all aggregates except percentiles. The type any stands for several types. For
// example, sum returns an int, a uint64, a big.Int or a float64, and max of no answers returns nil.
var aggregateKinds = map[string]aggregateKind{
	"any":   {WantCondition, reflect.TypeFor[bool]()},
	"all":   {WantCondition, reflect.TypeFor[bool]()},
	"none":  {WantCondition, reflect.TypeFor[bool]()},
	"count": {WantCondition, reflect.TypeFor[int]()},
	"sum":   {WantNumber, reflect.TypeFor[any]()},
	"min":   {WantValue, reflect.TypeFor[any]()},
	"max":   {WantValue, reflect.TypeFor[any]()},
	"avg":   {WantNumber, reflect.TypeFor[any]()},

	"distinct": {WantValue, reflect.TypeFor[int]()},
}

// aggregateOf returns the aggregate with the given name. p0 to p100 are percentiles of numbers.
func aggregateOf(name string) (k aggregateKind, ok bool) {
	if _, ok := percent(name); ok {
		return aggregateKind{WantNumber, reflect.TypeFor[any]()}, true
	}
	k, ok = aggregateKinds[name]
	return k, ok
}

// isTruth reports whether the aggregate is any, all or none. Their results are true or false.
func isTruth(kind string) bool { return kind == "any" || kind == "all" || kind == "none" }

// percent returns the number of a percentile: 95 for "p95".
func percent(name string) (p int, ok bool) {
	digits, ok := strings.CutPrefix(name, "p")
	p, err := strconv.Atoi(digits)
	return p, ok && err == nil && p <= 100 && digits == strconv.Itoa(p)
}

// SplitTotal splits "KIND(EXPR)", such as sum(Health). It returns false for other text, such as
// sum(Health) + sum(Armor). The expression may be invalid.
func SplitTotal(text string) (kind, expr string, ok bool) {
	if tokens, err := lexer.Lex(file.NewSource(text)); err == nil && len(tokens) > 2 {
		// The last token is the end token, so the bracket must close at the token before it.
		if end, _ := argument(tokens, 1); end != len(tokens)-2 {
			return "", "", false
		}
	}
	kind, expr, _ = strings.Cut(strings.TrimSpace(text), "(")
	_, ok = aggregateOf(kind)
	expr, closed := strings.CutSuffix(expr, ")")
	return kind, strings.TrimSpace(expr), ok && closed && !isTruth(kind)
}

// WantOf returns the type that an aggregate requires of its argument.
func WantOf(kind string) Want {
	k, _ := aggregateOf(kind)
	return k.want
}

// markAggregates marks the name of each aggregate in text. Names such as any and count have two
// meanings. With one argument, they are aggregates over all entities. With two arguments, they are
// functions of package expr on a list and a condition. An aggregate inside another aggregate is not
// marked.
//
//	expression                            marked name
//	any(Waves, #.N > count(has(Foe)))     count, because any has two arguments here
//	any(count(Bag.Items, #.N > 1) > 2)    any, because count has two arguments here
func markAggregates(text []rune, tokens []lexer.Token) {
	for i := 0; i < len(tokens); i++ {
		_, known := aggregateOf(tokens[i].Value)
		if !known || tokens[i].Kind != lexer.Identifier || i+1 == len(tokens) || !tokens[i+1].Is(lexer.Bracket, "(") {
			continue
		}
		// After a dot, the name is a field. After a pipe, as in List | count(…), the first argument
		// is in front of the pipe.
		if i > 0 && tokens[i-1].Is(lexer.Operator, ".", "?.", "|", "::") {
			continue
		}
		end, single := argument(tokens, i+1)
		if single {
			text[tokens[i].From] = marker
			i = end
		}
	}
}

// argument returns the index of the token that closes the bracket at token i. The result single is
// true if there is one argument: no comma outside of inner brackets.
func argument(tokens []lexer.Token, i int) (end int, single bool) {
	single = true
	for n, depth := range depths(tokens[i:]) {
		if depth == 0 {
			return i + n, single
		}
		single = single && !(depth == 1 && tokens[i+n].Is(lexer.Operator, ","))
	}
	return len(tokens), false
}

// An aggregate is a call of an aggregate function in an expression.
type aggregate struct {
	kind string
	// of is the compiled argument, an expression about one entity.
	of *Expr
	// kept caches the answers of all entities. It is nil unless Follow is used.
	kept *answerCache
	// given is the result if a sweep has evaluated the entities. If given is nil, run() evaluates
	// the entities of the image.
	given *aggregateResult
}

// aggregateName returns the name of aggregate i in the compiled program. No user can write this
// name.
func aggregateName(i int) string { return "\x04" + string(rune('a'+i%26)) + strings.Repeat("'", i/26) }

// aggregate resolves a call of an aggregate. It compiles the argument as a separate expression
// about one entity, and replaces the call by a call without arguments.
func (r *resolver) aggregate(p *ast.Node, n *ast.CallNode, name string) {
	kind := unmarked(name)
	k, ok := aggregateOf(kind)
	if !ok || len(n.Arguments) != 1 {
		r.fail(n, "%s takes a condition on entities", kind)
		return
	}
	// text is the whole expression, not only the argument, so that errors have the right positions.
	a := &aggregate{kind: kind, of: &Expr{text: r.x.text, what: r.x.what, want: k.want, im: r.im}}
	inner := &resolver{im: r.im, x: a.of, wide: r.wide}
	tree := &parser.Tree{Node: n.Arguments[0], Source: file.NewSource(r.x.text)}
	if inner.node(&tree.Node); inner.err != nil {
		r.err = inner.err
		return
	}
	if r.err = a.of.finish(tree, inner, newConfig()); r.err != nil {
		return
	}
	r.aggregates = append(r.aggregates, a)
	*p = ownCall(n, aggregateName(len(r.aggregates)-1))
}

// signature returns the type of a as a function without arguments.
func (a *aggregate) signature() reflect.Type {
	k, _ := aggregateOf(a.kind)
	return reflect.FuncOf(nil, []reflect.Type{k.of}, false)
}

// run returns the result for the living entities of im, from the cache or by a loop. For any, none
// and all, the loop stops at the first entity that decides the result. So later entities cannot
// cause an error.
func (a *aggregate) run(im *inspect.Image) (any, error) {
	if a.given != nil {
		return a.given.value()
	}
	if a.kept != nil {
		if v, ok := a.kept.result(a); ok {
			return v.v, nil
		}
	}
	r := newAggregateResult(a)
	for _, e := range im.Entities() {
		if r.add(a.ask(a.of, e, a.of.imageRows(e))); r.decided() {
			break
		}
	}
	return r.value()
}

// An outcome is the answer or the error of an entity for the argument of an aggregate.
type outcome struct {
	Answer
	err error
}

// ask evaluates the argument of a for an entity. The expression x is a.of or a copy of it. For any,
// all and none, the answer is a boolean.
func (a *aggregate) ask(x *Expr, e ecs.Entity, rows Rows) (o outcome) {
	if isTruth(a.kind) {
		var holds bool
		holds, o.err = x.HoldsRows(e, rows)
		o.Answer = Answer{holds}
		return o
	}
	o.Answer, o.err = x.OfRows(e, rows)
	return o
}

// An aggregateResult collects the outcomes of one entity after the other.
type aggregateResult struct {
	*aggregate
	// total is nil for any, all and none.
	total *Total
	// found is true if an entity has decided the result of any, all or none.
	found bool
	// err is the error of the first entity that failed.
	err error
}

// newAggregateResult returns the result of a for no entities.
func newAggregateResult(a *aggregate) *aggregateResult {
	r := &aggregateResult{aggregate: a}
	if !isTruth(a.kind) {
		r.total = NewTotal(a.kind)
	}
	return r
}

// decided reports whether the result is final.
func (r *aggregateResult) decided() bool { return r.found || r.err != nil }

// add adds the outcome of the next entity.
func (r *aggregateResult) add(o outcome) {
	switch {
	case r.decided():
	case o.err != nil:
		r.err = o.err
	case r.total == nil:
		r.found = o.v == (r.kind != "all")
	default:
		if err := r.total.Add(o.Answer); err != nil {
			r.err = r.of.failed(err)
		}
	}
}

// value returns the result of the aggregate.
func (r *aggregateResult) value() (any, error) {
	switch {
	case r.err != nil:
		return nil, r.err
	case r.total != nil:
		return r.total.Result().v, nil
	case r.kind == "any":
		return r.found, nil
	}
	return !r.found, nil
}

// A Total combines the answers of an expression for many entities. Each row has kinds of totals and
// the fields that they use:
//
//	count         n
//	sum, avg      n; the sum is whole + small + float
//	min, max      n, best
//	p0 to p100    spread, percent
//	distinct      variety
type Total struct {
	// kind is the name of the aggregate, except any, all and none.
	kind string
	// n counts the answers that are not nil. For the kind count, it counts the true answers.
	n     int
	whole big.Int
	// small is the part of the integer sum that is not yet in whole.
	small int
	float *floatSum
	// floats is the number of answers that were added to float.
	floats int
	best   Answer

	spread  *spread // Used by percentiles.
	percent int
	variety *variety // Used by distinct.
}

// NewTotal returns an empty total. The kind is count, sum, min, max, avg, distinct, or p0 to p100.
func NewTotal(kind string) *Total { return NewTotals(kind)()[0] }

// NewTotals returns a function that makes empty totals, one for each of kinds. All of its
// percentiles share one memory limit.
func NewTotals(kinds ...string) func() []*Total {
	precisions := make([]precision, len(kinds))
	for i := range precisions {
		precisions[i].bits = wholeBits
	}
	return func() []*Total {
		totals := make([]*Total, len(kinds))
		for i, kind := range kinds {
			t := &Total{kind: kind}
			if p, ok := percent(kind); ok {
				t.spread, t.percent = precisions[i].spread(), p
			} else if kind == "distinct" {
				t.variety = newVariety()
			}
			totals[i] = t
		}
		return totals
	}
}

// Add adds an answer. It ignores nil answers. After an error, the total is unchanged.
func (t *Total) Add(a Answer) error {
	if a.v == nil || a.v == false && t.kind == "count" {
		return nil
	}
	switch {
	case t.spread != nil:
		if err := t.spread.add(a.v); err != nil {
			return err
		}
	case t.variety != nil:
		t.variety.add(a)
	case t.kind == "min":
		t.pick(a, -1)
	case t.kind == "max":
		t.pick(a, 1)
	case t.kind == "sum", t.kind == "avg":
		if err := t.sum(a.v, 1); err != nil {
			return err
		}
	}
	t.n++
	return nil
}

// Remove removes an answer that was added. It must not be called for min and max. It does nothing
// after answers were rounded or dropped, see forgot.
func (t *Total) Remove(a Answer) {
	if a.v == nil || a.v == false && t.kind == "count" || t.forgot() {
		return
	}
	t.n--
	switch {
	case t.spread != nil:
		t.spread.take(a.v)
	case t.variety != nil:
		t.variety.take(a)
	case t.kind != "count":
		// Add accepted this answer, so it is a number.
		_ = t.sum(a.v, -1)
	}
}

// Near reports whether the result is approximate, because not all values fit into memory.
func (t *Total) Near() bool {
	return t.spread != nil && t.spread.bits < wholeBits || t.variety != nil && t.variety.zeros > 0
}

// forgot reports whether the total has rounded or dropped answers. Then answers cannot be removed.
func (t *Total) forgot() bool {
	return t.Near() && !(t.variety != nil && t.variety.all)
}

// pick replaces best by a if a is better: less for the sign -1, greater for the sign 1. The first
// answer always becomes best.
func (t *Total) pick(a Answer, sign int) {
	if t.n == 0 || a.Compare(t.best) == sign {
		t.best = a
	}
}

// sum adds v if its second argument is 1, and subtracts v if that argument is -1. Integers and
// floats have separate exact sums.
func (t *Total) sum(v any, times int) error {
	switch v := v.(type) {
	case int:
		// -MinInt is no int, so use a big.Int.
		if v == math.MinInt {
			t.large(big.NewInt(int64(v)), times)
			return nil
		}
		v *= times
		sum := t.small + v
		// On overflow, add t.small to t.whole.
		if (sum < t.small) != (v < 0) {
			t.flush()
			sum = v
		}
		t.small = sum
	case uint64:
		t.large(new(big.Int).SetUint64(v), times)
	case float64:
		if t.float == nil {
			t.float = new(floatSum)
		}
		t.float.add(v, times)
		t.floats += times
	default:
		return fmt.Errorf("%v is not a number", Answer{v})
	}
	return nil
}

// large adds n if its second argument is 1, and subtracts n if that argument is -1. It may change
// n.
func (t *Total) large(n *big.Int, times int) {
	t.whole.Add(&t.whole, n.Mul(n, big.NewInt(int64(times))))
}

// flush adds t.small to t.whole, and sets t.small to 0.
func (t *Total) flush() {
	t.whole.Add(&t.whole, big.NewInt(int64(t.small)))
	t.small = 0
}

// Result returns the total of the answers so far; more answers may be added later. Without answers,
// min, max and avg are nil. A sum of integers is an int if it fits, otherwise a uint64 or a
// big.Int. A sum with a float is a float64.
func (t *Total) Result() Answer {
	t.flush()
	switch {
	case t.kind == "count":
		return Answer{t.n}
	case t.spread != nil:
		return t.spread.percentile(t.percent)
	case t.variety != nil:
		return Answer{t.variety.count()}
	case t.kind == "min" || t.kind == "max":
		return t.best
	case t.kind == "avg" && t.n == 0:
		return Answer{nil}
	case t.kind == "avg":
		return Answer{t.near() / float64(t.n)}
	case t.floats > 0:
		return Answer{t.near()}
	case t.whole.IsInt64():
		return Answer{int(t.whole.Int64())}
	case t.whole.IsUint64():
		return Answer{t.whole.Uint64()}
	}
	// Copy the sum, because a later Add changes it. An Answer must not be a pointer to a number.
	return Answer{*new(big.Int).Set(&t.whole)}
}

// near returns the sum as a float. The sums of integers and of floats are rounded separately.
func (t *Total) near() float64 {
	whole, _ := new(big.Float).SetInt(&t.whole).Float64()
	if t.floats == 0 {
		return whole
	}
	return whole + t.float.near()
}
