package dump

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"

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
	"github.com/stet-ecs/stet/internal/term"
	"github.com/stet-ecs/stet/persist"
)

const (
	maxExpression = 16 << 10 // Bytes of an expression: the parser recurses.
	maxNodes      = 10_000   // Operators, names and constants of one.
	memoryBudget  = 1e6      // Values that one evaluation may make.
)

// expressionHelp is what the help of a command says of expressions.
const expressionHelp = `An expression names components and their fields: Position.X > 3 && Health < 10.
A tag is true or false; has(C) says whether the entity has component C. What needs
a component that the entity lacks is nothing, and a condition on nothing is false:
write not (Health > 3), or (Health ?? 0) > 3, to take in entities without Health.

  entity, index, generation    of the entity; an entity is text: Target.Of == "12v3"
  exists(Target.Of)            it is alive
  component("a-b"), score      a component of any name; a resource
  ==  !=  <  <=  >  >=  in  contains  startsWith  endsWith  matches
  and  or  not  +  -  *  /  %  **  ??  ?:  len()  abs()  lower()  any(Bag.Items, .N > 1)

The language is that of expr-lang.org.`

// A want says what an expression is for.
type want int

const (
	wantValue     want = iota // Of an entity: anything.
	wantNumber                // Of an entity.
	wantCondition             // On an entity.
	wantWorld                 // A condition on the whole world.
)

// An expression is a program over the components of an entity, or over a world.
// It is compiled for the layouts of a state, so that a wrong name or type is found
// before anything runs, and reads only the components that it names.
//
// A component that an entity lacks is nothing: a comparison with it is false, and
// so is any other condition that reads it; a value that needs it is nil. Tags are
// booleans.
type expression struct {
	text string
	what string // Which argument it is, for errors: "--where".
	want want

	columns    []*column
	aggregates []*aggregate
	number     bool // All that it gives are numbers or nothing.
	program    *vm.Program
	vm         vm.VM
	env        map[string]any
	im         *persist.Image
}

// compile compiles text, which the argument called what holds, for the
// components of im.
func (s *source) compile(im *persist.Image, what, text string, w want) (*expression, error) {
	x := &expression{text: text, what: what, want: w}
	if err := x.bind(im); err != nil {
		return nil, &failure{exitUsage, err, command("schema", s.path)}
	}
	return x, nil
}

// bind makes x read im. It compiles x again if the layouts are not those that it
// was compiled for.
func (x *expression) bind(im *persist.Image) error {
	if x.program != nil && x.fits(im) {
		return nil
	}
	x.im = im
	return x.build()
}

// fits finds the components in im and reports whether they are as they were. One
// that im does not have yet is lacking.
func (x *expression) fits(im *persist.Image) bool {
	x.im = im
	for _, col := range x.columns {
		c := im.Find(col.name)
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

// build parses and compiles x. Whatever the text is, it does not panic.
func (x *expression) build() (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%s: %s cannot be compiled", x.what, shortened(x.text))
		}
	}()
	if len(x.text) > maxExpression {
		return fmt.Errorf("%s: %d bytes are too long for an expression; at most %d", x.what, len(x.text), maxExpression)
	}
	source, r := prepare(x)
	config := newConfig()
	tree, err := parser.ParseWithConfig(source, config)
	if err != nil {
		return x.failed(err)
	}
	if err := r.resolve(&tree.Node); err != nil {
		return x.failed(err)
	}
	return x.finish(tree, r, config)
}

// finish compiles a tree whose names are resolved.
func (x *expression) finish(tree *parser.Tree, r *resolver, config *conf.Config) error {
	x.columns, x.aggregates = r.columns, r.aggregates
	x.declare(config)
	if _, err := checker.Check(tree, config); err != nil {
		return x.failed(err)
	}
	if err := x.fitting(tree.Node.Nature(), config); err != nil {
		return x.failed(err)
	}
	x.number = tree.Node.Nature().IsNumber()
	for _, pass := range []func(*ast.Node){guarder{r}.guard, exactly} {
		pass(&tree.Node)
		if _, err := checker.Check(tree, config); err != nil {
			return x.failed(err)
		}
	}
	program, err := compiler.Compile(tree, config)
	if err != nil {
		return fmt.Errorf("%s: %s cannot be compiled", x.what, shortened(x.text))
	}
	x.program, x.env = program, map[string]any{}
	x.vm.MemoryBudget = memoryBudget
	return nil
}

// disabled is the function of package expr that expressions do not have: what they
// give depends on the store, not on the clock of this machine.
const disabled = "now"

// fitting returns an error if n is not what is wanted of x.
func (x *expression) fitting(n *nature.Nature, config *conf.Config) error {
	wanted := "condition"
	switch {
	case n.IsUnknown(&config.NtCache), x.want == wantValue:
		return nil
	case x.want == wantNumber && n.IsNumber(), x.isCondition() && n.IsBool():
		return nil
	case x.want == wantNumber:
		wanted = "number"
	}
	return &file.Error{Message: fmt.Sprintf("it is no %s: it gives %s", wanted, article(plainType(n.String())))}
}

func (x *expression) isCondition() bool { return x.want == wantCondition || x.want == wantWorld }

// newConfig returns a configuration with the functions that expressions have.
func newConfig() *conf.Config {
	c := conf.CreateNew()
	c.Optimize, c.MaxNodes = false, maxNodes
	c.Disabled[disabled] = true
	delete(c.Builtins, disabled)
	return c
}

// declare tells the checker the types of the names in x.
func (x *expression) declare(config *conf.Config) {
	env := types.Map{
		"entity": types.String, "index": types.Int, "generation": types.Int,
		"tick": types.Int, "alive": types.Int,
	}
	for _, col := range x.columns {
		env[col.flag] = types.Bool
		if col.typ != nil {
			env[col.key] = typeOf(col.typ)
		}
	}
	config.WithEnv(env)
	x.function(config, existsName, func(args ...any) (any, error) { return x.exists(args[0]) }, reflect.TypeFor[func(string) bool]())
	x.function(config, compareName, compareCall, reflect.TypeFor[func(string, any, any) bool]())
	x.function(config, narrowName, narrowCall, reflect.TypeFor[func(any) int]())
	for i, a := range x.aggregates {
		x.function(config, aggregateName(i), func(...any) (any, error) { return a.run(x.im.Registry[:x.im.Alive]) }, a.signature())
	}
}

func (x *expression) function(config *conf.Config, name string, f func(...any) (any, error), t reflect.Type) {
	config.Functions[name] = &builtin.Function{Name: name, Func: f, Types: []reflect.Type{t}}
}

// exists reports whether an entity, given as text, is alive.
func (x *expression) exists(text any) (bool, error) {
	e, err := ecs.ParseEntity(text.(string))
	if err != nil {
		return false, fmt.Errorf("%q is not an entity", text)
	}
	return x.im.IsAlive(e), nil
}

// of evaluates x for entity e, which is alive.
func (x *expression) of(e ecs.Entity) (any, error) {
	x.env["entity"], x.env["index"], x.env["generation"] = e.String(), int(e.Index()), int(e.Generation())
	for _, col := range x.columns {
		if err := col.load(x.env, e); err != nil {
			return nil, err
		}
	}
	v, err := x.run()
	if err != nil {
		return nil, &failure{exitUsage, fmt.Errorf("%v: %w", e, err), ""}
	}
	return v, nil
}

// ofWorld evaluates x, which names no components but in aggregates.
func (x *expression) ofWorld() (any, error) {
	for _, col := range x.columns {
		if err := col.load(x.env, ecs.Vacant); err != nil {
			return nil, err
		}
	}
	return x.run()
}

func (x *expression) run() (v any, err error) {
	x.env["tick"], x.env["alive"] = int(x.im.Tick), x.im.Alive
	v, err = x.vm.Run(x.program, x.env)
	if err != nil {
		return nil, x.failed(err)
	}
	return v, nil
}

// holds reports whether condition x holds for e.
func (x *expression) holds(e ecs.Entity) (bool, error) {
	v, err := x.of(e)
	if err != nil {
		return false, err
	}
	return x.decided(v)
}

// holdsHere reports whether x holds for the world.
func (x *expression) holdsHere() (bool, error) {
	v, err := x.ofWorld()
	if err != nil {
		return false, err
	}
	return x.decided(v)
}

func (x *expression) decided(v any) (bool, error) {
	switch v := v.(type) {
	case bool:
		return v, nil
	case nil:
		return false, nil
	}
	return false, x.failed(&file.Error{Message: fmt.Sprintf("it is no condition: it gives %v", answer{v})})
}

// failed makes an error of package expr one that shows where in x it is.
func (x *expression) failed(err error) error {
	var f *failure
	if errors.As(err, &f) {
		return f
	}
	var e *file.Error
	if !errors.As(err, &e) {
		return &failure{exitUsage, fmt.Errorf("%s: %s", x.what, plainType(err.Error())), ""}
	}
	text, caret := excerpt(x.text, e.From)
	return &failure{exitUsage, fmt.Errorf("%s: %s\n    %s\n    %s", x.what, plainType(e.Message), text, caret), ""}
}

// excerptWidth is how much of an expression an error shows.
const excerptWidth = 100

// excerpt returns the part of text around the rune at, on one line, and a line
// that points to it.
func excerpt(text string, at int) (line, caret string) {
	runes := []rune(text)
	for i, r := range runes {
		if r == '\n' || r == '\t' || r == '\r' {
			runes[i] = ' '
		}
	}
	at = max(0, min(at, len(runes)))
	first := 0
	if at > excerptWidth/2 && len(runes) > excerptWidth {
		first = at - excerptWidth/2
	}
	before := term.Clean(string(runes[first:at]))
	line = before + term.Clean(string(runes[at:min(len(runes), first+excerptWidth)]))
	return line, strings.Repeat(" ", term.Width(before)) + "^"
}

func shortened(text string) string {
	line, _ := excerpt(text, 0)
	return line
}

var (
	structType   = regexp.MustCompile(`\*?struct ?\{.*\}`)
	markedName   = regexp.MustCompile(string(marker) + `\w+`)
	internalName = regexp.MustCompile(`[` + valueMark + flagMark + `]`)
)

// plainType returns a message of package expr without the Go types that stand for
// structs, and without the marks on names.
func plainType(message string) string {
	message = strings.ReplaceAll(message, "unexpected token EOF", "it ends too early")
	message = strings.ReplaceAll(message, "strconv.ParseInt: ", "")
	message = structType.ReplaceAllString(message, "struct")
	message = markedName.ReplaceAllStringFunc(message, unmarked)
	return internalName.ReplaceAllString(message, "")
}
