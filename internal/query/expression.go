// Package query has expressions over the entities of a world: they are compiled for the
// layouts of its components and evaluated for one entity after the other.
//
// The language is that of package expr, whose parts are called one by one, with passes of ours
// between them:
//
//	text ── prepare ──▶ parser ──▶ resolver ──▶ checker ──▶ guarder ──▶ exactly ──▶ compiler
//
//	prepare    hides from the parser what it would refuse       names.go
//	resolver   finds components and fields by their layouts     names.go
//	           and the numbers that have names                  numbers.go
//	           and components of other entities                 refer.go
//	           and makes any(…) and the like loops              aggregate.go
//	guarder    makes a condition on what is not there false     guard.go
//	exactly    compares exactly what may be a uint64, or nil    exact.go
//
// Along ticks, what all entities gave is kept and changed by the rows that a tick changed: follow.go.
//
// A [column] loads what a component has into the variables of the program; what this gives is an
// [Answer].
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
	maxExpression = 16 << 10 // Bytes of an expression: the parser recurses.
	maxNodes      = 10_000   // Operators, names and constants of one.
	memoryBudget  = 1e6      // Values that one evaluation may make: 1..1e9 is a short text.
)

// A Want says what an expression is for.
type Want int

// What an expression may be asked to give.
const (
	WantValue     Want = iota // Of an entity: anything.
	WantNumber                // Of an entity.
	WantCondition             // On an entity.
	WantWorld                 // A condition on the whole world.
	WantTotal                 // Of the whole world: anything.
)

// An Expr is a program over the components of an entity, or over a world.
// It is compiled for the layouts of a state, so that a wrong name or type is found
// before anything runs, and reads only the components that it names.
//
// It is evaluated in one of two ways, which give the same:
//
//	by the machine   columns ──load──▶ env ──▶ vm runs program     whatever the expression is
//	directly         rows ──▶ direct, on the bytes of the row      simple ones, see direct.go
//
// Evaluation writes to env, vm, columns and reading, so it is for one goroutine at a time.
//
// A component that an entity lacks is nothing: a comparison with it is false, and
// so is any other condition that reads it; a value that needs it is nil. Tags are
// booleans.
type Expr struct {
	text string
	what string // Which argument it is, for errors: "--where".
	want Want

	Number bool // All that it gives are numbers or nothing.

	layout     *layout.Type // Of the field that it is, or unnamed.
	columns    []*column    // Read of the entity at hand, each component once.
	referred   []*column    // Read of other entities, one for each place that reads one.
	aggregates []*aggregate // Of an expression on the world, in the order of the text.
	program    *vm.Program  // nil: not compiled, or it does not compile.
	vm         vm.VM
	env        map[string]any        // The variables of the program, set anew for each entity.
	im         *inspect.Image        // Bound to.
	alive      func(ecs.Entity) bool // nil: the image knows.
	direct     func(*reading) any    // What the program does, without it; nil: only the program does.
	reading    reading
	needs      dependence
	asking     func(ecs.Entity) // Called with whom it asks whether they are alive; may be nil.
}

// Compile compiles text, which the argument called what holds, for the components of
// im. Errors are of type [*Error].
func Compile(im *inspect.Image, what, text string, w Want) (*Expr, error) {
	x := &Expr{text: text, what: what, want: w}
	if err := x.Bind(im); err != nil {
		return nil, err
	}
	return x, nil
}

// Bind makes x read im. It compiles x again if the layouts are not those that it
// was compiled for.
func (x *Expr) Bind(im *inspect.Image) error {
	if x.program != nil && x.fits(im) {
		return nil
	}
	x.im, x.program = im, nil // If it does not compile, neither do the next states of these layouts.
	return x.build()
}

// fits points the columns of x to the components of im, and reports whether these have the
// layouts that x was compiled for. A component that im does not have yet fits: no entity
// has it.
func (x *Expr) fits(im *inspect.Image) bool {
	x.im = im
	for _, col := range slices.Concat(x.columns, x.referred) {
		c := im.Find(col.name)
		// Images of one schema share their layouts, so mostly the pointers are equal.
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

// build parses and compiles x: its names are resolved, the checker of package expr finds what
// does not fit together, and then the tree is guarded and made exact. These passes rely on the
// types that the checker noted, and leave nodes without any, so it comes again behind each.
// Whatever the text is, build does not panic.
func (x *Expr) build() (err error) {
	defer func() { // Texts come from anybody; package expr panics on some.
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

// finish compiles a tree whose names are resolved.
func (x *Expr) finish(tree *parser.Tree, r *resolver, config *conf.Config) error {
	x.columns, x.referred, x.aggregates = r.columns, r.referred, r.aggregates
	// What x gives is looked at before it is guarded: a guarded value is a conditional, which is no
	// field any more and of no one type.
	x.layout = cmp.Or(r.layoutOf(tree.Node), unnamed)
	x.declare(config)
	if _, err := checker.Check(tree, config); err != nil {
		return x.failed(err)
	}
	if err := x.fitting(tree.Node.Nature(), config); err != nil {
		return x.failed(err)
	}
	x.Number = tree.Node.Nature().IsNumber()
	// First guarded, then made exact: what guard adds has comparisons with nil, which exactly
	// leaves alone, and what exactly makes of a comparison is a call, which guard would not take for a
	// condition.
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

// disabled is the function of package expr that expressions do not have: what they
// give depends on the store, not on the clock of this machine.
const disabled = "now"

// fitting returns an error if n is not what is wanted of x. What the checker knows nothing of, as an
// element of a mixed list, passes: condition and Total.Add look at the answers.
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
	return &file.Error{Message: fmt.Sprintf("it is no %s: it gives %s", wanted, article(plainType(n.String())))}
}

func (x *Expr) isCondition() bool { return x.want == WantCondition || x.want == WantWorld }

// isWorldly reports whether x is of the whole world, so that it names no component but in
// aggregates.
func (x *Expr) isWorldly() bool { return x.want == WantWorld || x.want == WantTotal }

// newConfig returns a configuration with the functions that expressions have.
func newConfig() *conf.Config {
	c := conf.CreateNew()
	c.Optimize, c.MaxNodes = false, maxNodes
	c.Disabled[disabled] = true
	delete(c.Builtins, disabled)
	return c
}

// declare tells the checker the types of the names in x, and gives the program the functions that
// it calls. These read x.im when they are called, so after a Bind they are of the new state.
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

// function gives the program a function. Those of package expr itself are left alone.
func (x *Expr) function(config *conf.Config, name string, f func(...any) (any, error), t reflect.Type) {
	config.Functions[name] = &builtin.Function{Name: name, Func: f, Types: []reflect.Type{t}}
}

// exists reports whether an entity, given as text, is alive. A nil pointer leads to none.
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

// isThere reports whether e is alive, as an expression asks.
func (x *Expr) isThere(e ecs.Entity) bool {
	if x.asking != nil {
		x.asking(e)
	}
	return x.isAlive(e)
}

// isAlive reports whether e is alive.
func (x *Expr) isAlive(e ecs.Entity) bool {
	if x.alive != nil {
		return x.alive(e)
	}
	return x.im.IsAlive(e)
}

// Of evaluates x for entity e, which is alive; or [ecs.Vacant], if x is of the whole world. What it
// loads and answers is of the image that x is bound to.
func (x *Expr) Of(e ecs.Entity) (Answer, error) {
	for _, col := range x.columns {
		if err := col.load(x.env, e); err != nil {
			return Answer{}, err
		}
	}
	return x.run(e)
}

// run evaluates x for entity e, whose components are loaded.
func (x *Expr) run(e ecs.Entity) (Answer, error) {
	x.env["entity"], x.env["index"], x.env["generation"] = e.String(), int(e.Index()), int(e.Generation())
	x.env["tick"], x.env["alive"] = int(x.im.Tick), x.im.Alive
	v, err := x.vm.Run(x.program, x.env)
	if err == nil {
		return Answer{followed(v)}, nil
	}
	failed := x.failed(err)
	if failed.Entity == "" && !x.isWorldly() { // An aggregate has noted whom it asked.
		failed.Entity = e.String()
	}
	return Answer{}, failed
}

// Holds reports whether condition x holds for e, which is [ecs.Vacant] for a condition on
// the world: it names no components but in aggregates.
func (x *Expr) Holds(e ecs.Entity) (bool, error) {
	a, err := x.Of(e)
	if err != nil {
		return false, err
	}
	return x.condition(a)
}

// condition returns a as the answer of a condition.
func (x *Expr) condition(a Answer) (bool, error) {
	switch v := a.v.(type) {
	case bool:
		return v, nil
	case nil:
		return false, nil
	}
	return false, x.failed(&file.Error{Message: fmt.Sprintf("it is no condition: it gives %v", a)})
}

// Text is [Answer.String] for an answer of x, or if total is the name of one, for that of answers
// of x. If x is a field, its constants and durations have names; what is added up is none of
// the constants.
func (x *Expr) Text(total string, a Answer) string {
	t := behind(x.layout)
	switch v := a.v.(type) {
	case nil, string:
		return a.String()
	case float64: // The mean of durations is told as one, to the nanosecond.
		if total == "avg" && t.Named() && len(t.Constants) == 0 {
			a.v = int(math.Round(v))
		}
	}
	if total == "count" || total == "distinct" || len(t.Constants) > 0 && (total == "sum" || total == "avg") {
		t = unnamed
	}
	return goText(reflect.ValueOf(a.v), t)
}
