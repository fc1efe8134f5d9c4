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

// Aggregates make one answer of those of all entities: sum(Health), any(Position.X > 10). The
// argument is an expression of its own, about one entity, and what is around it one about the
// world. A Total gathers the answers, for aggregates and for commands. A sum does not depend on the
// order in which they come: it is exact until it is told. Most answers can be taken out again, by
// which an aggregate follows a world from tick to tick (follow.go).

// An aggregateKind is a function of a condition on the world that asks all entities.
type aggregateKind struct {
	want Want
	of   reflect.Type // Of its result.
}

// boolType is the type of any, all and none.
var boolType = reflect.TypeFor[bool]()

// aggregateKinds has no type for what sum, min, max and avg give: that may be an integer, a
// float, one beyond 64 bits, or nothing, and is compared exactly for all of these.
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

// aggregateOf returns the aggregate of that name: p0 to p100 are percentiles, of numbers.
func aggregateOf(name string) (k aggregateKind, ok bool) {
	if _, ok := percent(name); ok {
		return aggregateKind{WantNumber, reflect.TypeFor[any]()}, true
	}
	k, ok = aggregateKinds[name]
	return k, ok
}

// percent returns 95 for p95.
func percent(name string) (p int, ok bool) {
	digits, ok := strings.CutPrefix(name, "p")
	p, err := strconv.Atoi(digits)
	return p, ok && err == nil && p <= 100 && digits == strconv.Itoa(p)
}

// SplitTotal splits "KIND(EXPR)", as sum(Health) and p95(Health) are. It is false for what is no total,
// as sum(Health) + sum(Armor) is not: its first bracket is closed before the end. Text that is no list of
// words is left to the compiler.
func SplitTotal(text string) (kind, expr string, ok bool) {
	if tokens, err := lexer.Lex(file.NewSource(text)); err == nil && len(tokens) > 2 {
		if end, _ := argument(tokens, 1); end != len(tokens)-2 { // Behind it is the end of the text.
			return "", "", false
		}
	}
	kind, expr, _ = strings.Cut(strings.TrimSpace(text), "(")
	k, ok := aggregateOf(kind)
	expr, closed := strings.CutSuffix(expr, ")")
	return kind, strings.TrimSpace(expr), ok && closed && k.of != boolType
}

// WantOf returns what the argument of an aggregate must be.
func WantOf(kind string) Want {
	k, _ := aggregateOf(kind)
	return k.want
}

// markAggregates marks the aggregates in the text of tokens: those with one
// argument, which are inside no other. With two, package expr has functions of the same
// names for slices, and its parser refuses them with one.
//
//	any(Waves, #.N > count(has(Foe)))     two arguments: goes on inside, where count is marked
//	any(count(Bag.Items, #.N > 1) > 2)    one: any is marked, and what is in its brackets skipped
func markAggregates(text []rune, tokens []lexer.Token) {
	for i := 0; i < len(tokens); i++ {
		_, known := aggregateOf(tokens[i].Value)
		if !known || tokens[i].Kind != lexer.Identifier || i+1 == len(tokens) || !tokens[i+1].Is(lexer.Bracket, "(") {
			continue
		}
		if i > 0 && tokens[i-1].Is(lexer.Operator, ".", "?.", "|", "::") { // A field, or piped an argument.
			continue
		}
		end, single := argument(tokens, i+1)
		if single {
			text[tokens[i].From] = marker
			i = end
		}
	}
}

// argument returns the token that closes the bracket at i, and whether there is no
// comma between at the top level. Depth is that behind a token: 0 behind the closing one, 1 behind
// a comma that is in no other brackets.
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

// An aggregate is a call of such a function.
type aggregate struct {
	kind  string
	of    *Expr               // Of an entity.
	kept  *kept               // What it is put together from, if it is followed from tick to tick.
	given func() (any, error) // What a sweep of the state has found; nil: entities are asked in the image.
}

// aggregateName returns what the compiled program calls aggregate i: no expression can
// contain it.
func aggregateName(i int) string { return "\x04" + string(rune('a'+i%26)) + strings.Repeat("'", i/26) }

// aggregate resolves a call: its argument becomes an expression of its own, which is about one
// entity. The tree around it keeps a call without arguments, whose answer is that of a loop over
// all entities.
func (r *resolver) aggregate(p *ast.Node, n *ast.CallNode, name string) {
	kind := unmarked(name)
	k, ok := aggregateOf(kind)
	if !ok || len(n.Arguments) != 1 {
		r.fail(n, "%s takes a condition on entities", kind)
		return
	}
	// It has the whole text for its own, so that errors in it point to places in that.
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

// signature returns the type of a as a function without arguments: what it asks is compiled
// already.
func (a *aggregate) signature() reflect.Type {
	k, _ := aggregateOf(a.kind)
	return reflect.FuncOf(nil, []reflect.Type{k.of}, false)
}

// run returns what the entities alive in im give: as it was kept, or by asking all of them, as
// they lie: any and none up to the first for whom it holds, all up to the first for whom it does not. So
// an error of somebody behind may not show; kept.result leaves it to this loop which one does.
func (a *aggregate) run(im *inspect.Image) (any, error) {
	if a.given != nil {
		return a.given()
	}
	entities := im.Registry[:im.Alive]
	if a.kept != nil {
		if v, ok := a.kept.result(a); ok {
			return v.v, nil
		}
	}
	switch a.kind {
	case "any", "none":
		found, err := a.find(entities, true)
		return found == (a.kind == "any"), err
	case "all":
		found, err := a.find(entities, false)
		return !found, err
	}
	t := NewTotals(a.kind)()[0]
	for _, e := range entities {
		v, err := a.of.Of(e)
		if err != nil {
			return nil, err
		}
		if err := t.Add(v); err != nil {
			return nil, a.of.failed(err)
		}
	}
	return t.Result().v, nil
}

// find reports whether the condition is like that for any of entities: true, or false.
func (a *aggregate) find(entities []ecs.Entity, like bool) (bool, error) {
	for _, e := range entities {
		holds, err := a.of.Holds(e)
		if err != nil || holds == like {
			return holds == like, err
		}
	}
	return false, nil
}

// A Total gathers what an expression gives for many entities. By its kind it uses some of its
// members:
//
//	count               n
//	sum, avg            whole + small + float, and n
//	min, max            best, and n
//	p0 to p100          spread, percent
//	distinct            variety
type Total struct {
	kind   string // Of an aggregate that gives no truth.
	n      int    // Answers that are not nothing; for count, those that hold.
	whole  big.Int
	small  int // To be added to whole.
	float  *floatSum
	floats int // In it.
	best   Answer

	spread  *spread // Of a percentile.
	percent int
	variety *variety // Of distinct.
}

// NewTotal returns a total of nothing: count, sum, min, max, avg, distinct, p0 to p100.
func NewTotal(kind string) *Total { return NewTotals(kind)()[0] }

// NewTotals returns a function that makes totals of nothing, one of each of kinds. All
// that it makes share the memory of percentiles.
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

// Add counts a. Nothing is left out, and so is what gives an error.
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

// Remove takes out an answer that was added, of all but the least and the greatest. It is without
// effect once the total forgot some.
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
		_ = t.sum(a.v, -1) // It was added.
	}
}

// Near reports whether the result is near the total rather than the total itself: more values were
// added than are kept.
func (t *Total) Near() bool {
	return t.spread != nil && t.spread.bits < wholeBits || t.variety != nil && t.variety.zeros > 0
}

// forgot reports whether answers were added that cannot be taken out.
func (t *Total) forgot() bool {
	return t.Near() && !(t.variety != nil && t.variety.all)
}

// pick keeps a if it is the first, or compares with the best so far as sign says.
func (t *Total) pick(a Answer, sign int) {
	if t.n == 0 || a.Compare(t.best) == sign {
		t.best = a
	}
}

// sum adds v as often as times says, which is 1 or -1. Integers are added without bounds and
// floats apart from them with all their digits, so that no order of entities changes a sum.
func (t *Total) sum(v any, times int) error {
	switch v := v.(type) {
	case int:
		if v == math.MinInt { // Its negative is no int.
			t.large(big.NewInt(int64(v)), times)
			return nil
		}
		v *= times
		sum := t.small + v
		if (sum < t.small) != (v < 0) { // It is beyond an int, and wrapped around.
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
		return fmt.Errorf("%v is no number", Answer{v})
	}
	return nil
}

// large adds n, which it may change.
func (t *Total) large(n *big.Int, times int) {
	t.whole.Add(&t.whole, n.Mul(n, big.NewInt(int64(times))))
}

// flush adds what was kept beside whole, for which one int is enough most of the time.
func (t *Total) flush() {
	t.whole.Add(&t.whole, big.NewInt(int64(t.small)))
	t.small = 0
}

// Result returns the total: nothing for the least, the greatest and the mean of no
// answers. A sum is of the smallest type that holds it exactly: int, uint64, then any size; with a
// float among its parts, it is one. More may be added after it.
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
	return Answer{*new(big.Int).Set(&t.whole)} // A copy by value: t goes on, and pointers are followed.
}

// near returns the sum as a float. Integers and floats are rounded once each, and then their sum.
func (t *Total) near() float64 {
	whole, _ := new(big.Float).SetInt(&t.whole).Float64()
	if t.floats == 0 {
		return whole
	}
	return whole + t.float.near()
}
