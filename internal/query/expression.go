// Package query compiles and evaluates expressions about the entities of a world. An expression is
// compiled for the layouts of the components, and evaluated for one entity after the other.
//
// The language is that of package expr. Package expr has a parser, a checker and a compiler. The
// passes of this package run in between, in this order: prepare, parser, resolver, checker,
// guarder, exactly, compiler. Each row has a file and what its pass does:
//
//	names.go       prepare hides text that the parser would reject.
//	names.go       The resolver finds components and fields by their layouts.
//	numbers.go     The resolver finds numbers that have names.
//	refer.go       The resolver finds components of other entities.
//	aggregate.go   The resolver turns aggregates such as any(…) into loops.
//	guard.go       The guarder makes conditions on missing components false.
//	exact.go       exactly compares uint64 and nil values exactly.
//
// A [column] loads the value of a component into a variable of the program. The result of the
// program is an [Answer].
package query

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"slices"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/builtin"
	"github.com/expr-lang/expr/checker"
	"github.com/expr-lang/expr/checker/nature"
	"github.com/expr-lang/expr/compiler"
	"github.com/expr-lang/expr/conf"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser"
	"github.com/expr-lang/expr/types"
	"github.com/expr-lang/expr/vm"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/persist/inspect"
)

const (
	// maxExpression is the maximum size of an expression in bytes. It bounds the recursion of the
	// parser.
	maxExpression = 16 << 10
	// maxNodes is the maximum number of operators, names and constants in an expression.
	maxNodes = 10_000
	// memoryBudget is the maximum number of values that one evaluation may create, as in 1..1e9.
	memoryBudget = 1e6
)

// A Want is the required kind of result of an expression.
type Want int

// The possible results of an expression.
const (
	WantValue     Want = iota // A value of any type for each entity.
	WantNumber                // A number for each entity.
	WantCondition             // True or false for each entity.
	WantWorld                 // True or false for the whole world.
	WantTotal                 // A value of any type for the whole world.
)

// An Expr is an expression about an entity, or about a world. It is compiled for the layouts of a
// state. It is evaluated in one of two ways, with the same result:
//
//   - The virtual machine of package expr evaluates any expression. Columns load the values into
//     variables first.
//   - A simple expression is evaluated directly on the bytes of rows, see direct.go.
//
// Only one goroutine may evaluate an Expr.
//
// If an entity lacks a component, a condition that reads the component is false, and any other
// value is nil. Tags are booleans.
type Expr struct {
	text string
	// what: the name of the argument that contains the expression, for errors, such as "--where".
	what string
	want Want

	// Number is true if all results are numbers or nil.
	Number bool

	// layout is the type of the expression if it is a field. Otherwise it is unnamed.
	layout *layout.Type
	// columns are the components of the current entity that the expression reads, each once.
	columns []*column
	// referred are the components of other entities, one for each reference in the text.
	referred []*column
	// aggregates are the aggregates of an expression on the world, in the order of the text.
	aggregates []*aggregate
	// program is nil if the expression does not compile.
	program *vm.Program
	vm      vm.VM
	// env has the variables of the program, which are set for each entity.
	env map[string]any
	// im is the image that the expression is bound to.
	im *inspect.Image
	// alive reports whether an entity is alive. If alive is nil, the image decides.
	alive func(ecs.Entity) bool
	// direct evaluates a simple expression without the program; nil for other expressions.
	direct  func(*reading) any
	reading reading
	needs   dependence
	// asking is called with each entity that exists(…) checks, see answerCache.asks. It may be nil.
	asking func(ecs.Entity)
}

// Compile compiles an expression for the components of im. The second argument is for errors: it
// names the argument that contains the expression, such as "--where". Errors have type [*Error].
func Compile(im *inspect.Image, what, text string, w Want) (*Expr, error) {
	x := &Expr{text: text, what: what, want: w}
	if err := x.Bind(im); err != nil {
		return nil, err
	}
	return x, nil
}

// Bind binds x to im. It compiles x again if the layouts have changed.
func (x *Expr) Bind(im *inspect.Image) error {
	if x.program != nil && x.fits(im) {
		return nil
	}
	// If x does not compile now, Bind tries again at the next state.
	x.im, x.program = im, nil
	return x.build()
}

// fits binds the columns of x to the components of im. It reports whether x was compiled for the
// same layouts. im may lack a component.
func (x *Expr) fits(im *inspect.Image) bool {
	x.im = im
	for _, col := range slices.Concat(x.columns, x.referred) {
		c := im.Find(col.name)
		// Compare pointers first: images with the same schema share their layouts.
		if c != nil && (c.Layout != col.layout && !c.Layout.Equal(col.layout) || c.Resource != col.resource) {
			return false
		}
		col.component = c
	}
	for _, a := range x.aggregates {
		if !a.of.fits(im) {
			return false
		}
	}
	return true
}

// build parses and compiles x. It does not panic, for any text.
func (x *Expr) build() (err error) {
	// Package expr panics on some texts.
	defer func() {
		if r := recover(); r != nil {
			err = x.uncompiled()
		}
	}()
	if len(x.text) > maxExpression {
		return x.error("%d bytes are too long for an expression; at most %d", len(x.text), maxExpression)
	}
	source, r := prepare(x)
	config := newConfig()
	tree, err := parser.ParseWithConfig(source, config)
	if err != nil {
		return x.failed(err)
	}
	if r.node(&tree.Node); r.err != nil {
		return x.failed(r.err)
	}
	return x.finish(tree, r, config)
}

// finish compiles a tree with resolved names. The guarder and exactly need the type of each node,
// which the checker sets. They also create nodes without types. So the checker runs before and
// after each of them.
func (x *Expr) finish(tree *parser.Tree, r *resolver, config *conf.Config) error {
	x.columns, x.referred, x.aggregates = r.columns, r.referred, r.aggregates
	// Get the layout now, because the guarder replaces a field by a conditional.
	x.layout = cmp.Or(r.layoutOf(tree.Node), unnamed)
	x.declare(config)
	if _, err := checker.Check(tree, config); err != nil {
		return x.failed(err)
	}
	if err := x.fitting(tree.Node.Nature(), config); err != nil {
		return x.failed(err)
	}
	x.Number = tree.Node.Nature().IsNumber()
	// The guarder recognizes a condition by its operator. So it must run before exactly, which
	// replaces operators by calls. exactly does not replace the operators of guards.
	for _, pass := range []func(*ast.Node){guarder{r}.guard, exactly} {
		pass(&tree.Node)
		if _, err := checker.Check(tree, config); err != nil {
			return x.failed(err)
		}
	}
	program, err := compiler.Compile(tree, config)
	if err != nil {
		return x.uncompiled()
	}
	x.program, x.env = program, map[string]any{}
	x.directly(tree.Node)
	x.needs = x.dependenceOf(tree.Node)
	x.reading = x.newReading()
	x.vm.MemoryBudget = memoryBudget
	return nil
}

// disabled is a function of package expr that returns the current time. Expressions must not call
// it, because answers must depend only on the store.
const disabled = "now"

// fitting returns an error if n does not have the wanted type. It accepts an unknown type. In this
// case, the types of the answers are checked during evaluation.
func (x *Expr) fitting(n *nature.Nature, config *conf.Config) error {
	wanted := "condition"
	switch {
	case n.IsUnknown(&config.NtCache), x.want == WantValue, x.want == WantTotal:
		return nil
	case x.want == WantNumber && n.IsNumber(), x.isCondition() && n.IsBool():
		return nil
	case x.want == WantNumber:
		wanted = "number"
	}
	return &file.Error{Message: fmt.Sprintf("it is not a %s: it returns %s", wanted, article(plainType(n.String())))}
}

func (x *Expr) isCondition() bool { return x.want == WantCondition || x.want == WantWorld }

// isWorldly reports whether x is about the whole world. It then names components of entities only
// in aggregates.
func (x *Expr) isWorldly() bool { return x.want == WantWorld || x.want == WantTotal }

// newConfig returns a configuration with the functions for expressions.
func newConfig() *conf.Config {
	c := conf.CreateNew()
	c.Optimize, c.MaxNodes = false, maxNodes
	c.Disabled[disabled] = true
	delete(c.Builtins, disabled)
	return c
}

// declare declares the types of the variables, and the functions that the program calls.
func (x *Expr) declare(config *conf.Config) {
	env := types.Map{
		"entity": types.String, "index": types.Int, "generation": types.Int,
		"tick": types.Int, "alive": types.Int,
	}
	for _, col := range x.columns {
		env[col.flag] = types.Bool
		if col.typ != nil {
			env[col.key] = types.TypeOf(reflect.Zero(col.typ).Interface())
		}
	}
	config.WithEnv(env)
	x.function(config, existsName, func(args ...any) (any, error) { return x.exists(args[0]) }, reflect.TypeFor[func(string) bool]())
	x.function(config, compareName, compareCall, reflect.TypeFor[func(string, any, any) bool]())
	x.function(config, narrowName, narrowCall, reflect.TypeFor[func(any) int]())
	for i, col := range x.referred {
		x.function(config, referName(i), func(args ...any) (any, error) { return x.referredOf(col, args[0]) }, col.signature())
	}
	for i, a := range x.aggregates {
		x.function(config, aggregateName(i), func(...any) (any, error) { return a.run(x.im) }, a.signature())
	}
}

// function adds a function to the program.
func (x *Expr) function(config *conf.Config, name string, f func(...any) (any, error), t reflect.Type) {
	config.Functions[name] = &builtin.Function{Name: name, Func: f, Types: []reflect.Type{t}}
}

// exists reports whether the entity with the name text is alive. It returns false for nil.
func (x *Expr) exists(text any) (bool, error) {
	if text == nil {
		return false, nil
	}
	e, err := ecs.ParseEntity(text.(string))
	if err != nil {
		return false, fmt.Errorf("%q is not an entity", text)
	}
	return x.isThere(e), nil
}

// isThere reports whether e is alive. It calls x.asking() first.
func (x *Expr) isThere(e ecs.Entity) bool {
	if x.asking != nil {
		x.asking(e)
	}
	return x.isAlive(e)
}

// isAlive reports whether e is alive in the state that x is bound to.
func (x *Expr) isAlive(e ecs.Entity) bool {
	if x.alive != nil {
		return x.alive(e)
	}
	return x.im.IsAlive(e)
}

// Of evaluates x for the living entity e, in the image of x. If x is about the whole world, e is
// [ecs.Vacant].
func (x *Expr) Of(e ecs.Entity) (Answer, error) { return x.OfRows(e, x.imageRows(e)) }

// imageRows returns the rows of e in the image of x.
func (x *Expr) imageRows(e ecs.Entity) Rows {
	return func(n int) ([]byte, bool, error) {
		row, has := x.columns[n].row(e)
		return row, has, nil
	}
}

// run runs the program for entity e, whose components are loaded.
func (x *Expr) run(e ecs.Entity) (Answer, error) {
	x.env["entity"], x.env["index"], x.env["generation"] = e.String(), int(e.Index()), int(e.Generation())
	x.env["tick"], x.env["alive"] = int(x.im.Tick), x.im.Living
	v, err := x.vm.Run(x.program, x.env)
	if err == nil {
		return Answer{dereferenced(v)}, nil
	}
	failed := x.failed(err)
	// An aggregate fails for one of its entities, and its error names this entity already.
	if failed.Entity == "" && !x.isWorldly() {
		failed.Entity = e.String()
	}
	return Answer{}, failed
}

// Holds reports whether condition x holds for e. For a condition on the world, e is [ecs.Vacant].
func (x *Expr) Holds(e ecs.Entity) (bool, error) { return x.HoldsRows(e, x.imageRows(e)) }

// condition converts an answer to the result of a condition.
func (x *Expr) condition(a Answer) (bool, error) {
	switch v := a.v.(type) {
	case bool:
		return v, nil
	case nil:
		return false, nil
	}
	return false, x.failed(&file.Error{Message: fmt.Sprintf("it is not a condition: it returns %v", a)})
}

// Text returns a as text, like [Answer.String], but writes constants and durations by name. The
// answer a is either an answer of x, or a total of such answers. The argument total is the kind of
// the total, such as "sum", or "" for an answer of x.
func (x *Expr) Text(total string, a Answer) string {
	t := pointee(x.layout)
	switch v := a.v.(type) {
	case nil, string:
		return a.String()
	// The mean of durations is a float. Round it to nanoseconds.
	case float64:
		if total == "avg" && t.Named() && len(t.Constants) == 0 {
			a.v = int(math.Round(v))
		}
	}
	if total == "count" || total == "distinct" || len(t.Constants) > 0 && (total == "sum" || total == "avg") {
		t = unnamed
	}
	return goText(reflect.ValueOf(a.v), t)
}
