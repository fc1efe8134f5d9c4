package main

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strconv"
	"strings"
)

// generate returns all possible faults of sources, in these forms:
//
//   - A condition, or an operand of && and ||, becomes constant: true or false.
//   - A comparison includes its bound, or excludes it.
//   - A comparison that is returned, assigned or passed is negated. true and false are swapped.
//   - An operator on integers is replaced by another; an integer changes by one.
//   - A statement that calls, assigns, sends or defers is removed.
//   - break becomes continue, and continue becomes break.
func generate(sources []*source) (faults []*fault) {
	for _, s := range sources {
		g := &generator{source: s}
		ast.Inspect(s.syntax, g.visit)
		slices.SortStableFunc(g.faults, func(a, b *fault) int { return a.start - b.start })
		faults = append(faults, g.faults...)
	}
	return number(faults)
}

// missing is the replacement text of a removed statement.
const missing = "(nothing)"

type generator struct {
	*source
	faults []*fault
	path   []ast.Node // The nodes from the file to the visited node.
}

func (g *generator) add(n ast.Node, is, before, after string) {
	g.faults = append(g.faults, g.newFault(n, is, before, after))
}

func (g *generator) visit(n ast.Node) bool {
	if n == nil {
		g.path = g.path[:len(g.path)-1]
		return true
	}
	parent := ast.Node(nil)
	if len(g.path) > 0 {
		parent = g.path[len(g.path)-1]
	}
	switch n := n.(type) {
	case *ast.GenDecl:
		// Visit only variables. A fault inserts a call, which a constant cannot contain.
		if n.Tok != token.VAR {
			return false
		}
	case *ast.ArrayType, *ast.FieldList:
		return false
	case *ast.IfStmt:
		if g.never(n.Cond) { // Skip code that this build never runs.
			return false
		}
		g.condition(n.Cond, true)
	case *ast.ForStmt:
		if n.Cond != nil {
			// Make the condition only false, because true would make an endless loop.
			g.condition(n.Cond, false)
		}
	case *ast.CaseClause:
		if s, ok := g.path[len(g.path)-2].(*ast.SwitchStmt); ok && s.Tag == nil {
			for _, e := range n.List {
				g.condition(e, true)
			}
		}
		g.statements(n.Body)
	case *ast.CommClause:
		g.statements(n.Body)
	case *ast.BlockStmt:
		g.statements(n.List)
	case *ast.BranchStmt:
		g.branch(n)
	case *ast.ReturnStmt:
		for _, e := range n.Results {
			g.value(e)
		}
	case *ast.AssignStmt:
		for _, e := range n.Rhs {
			g.value(e)
		}
	case *ast.CallExpr:
		for _, e := range n.Args {
			g.value(e)
		}
	case *ast.BinaryExpr:
		g.operator(n)
	case *ast.BasicLit:
		g.literal(n, parent)
	}
	g.path = append(g.path, n)
	return true
}

// condition adds the faults that make the condition of a branch or a loop constant. The method
// operator changes the operands of && and ||.
func (g *generator) condition(e ast.Expr, always bool) {
	op := token.ILLEGAL
	if b, ok := ast.Unparen(e).(*ast.BinaryExpr); ok {
		op = b.Op
	}
	if !g.isBool(e) {
		return
	}
	if op != token.LAND && always {
		g.constant(e, true)
	}
	if op != token.LOR {
		g.constant(e, false)
	}
}

// constant adds the fault that makes the condition e always true, or always false.
func (g *generator) constant(e ast.Expr, value bool) {
	if value {
		g.add(e, "true", "(", " || \x00)")
	} else {
		g.add(e, "false", "(", " && !\x00)")
	}
}

// value adds the fault that negates e, if e is a comparison, true or false.
func (g *generator) value(e ast.Expr) {
	switch x := ast.Unparen(e).(type) {
	case *ast.Ident:
		if x.Name == "true" || x.Name == "false" {
			g.add(e, strconv.FormatBool(x.Name == "false"), "(", " != \x00)")
		}
	case *ast.BinaryExpr:
		if g.isBool(e) && x.Op != token.LAND && x.Op != token.LOR {
			g.add(e, "!("+g.of(e)+")", "((", ") != \x00)")
		}
	}
}

// bounds maps < to <= and > to >=, and back. The results differ only if both sides are equal.
var bounds = map[token.Token]token.Token{token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR}

var others = map[token.Token]token.Token{
	token.ADD: token.SUB, token.SUB: token.ADD, token.MUL: token.ADD, token.QUO: token.MUL, token.REM: token.MUL, token.AND: token.OR,
	token.OR: token.AND, token.XOR: token.AND, token.AND_NOT: token.AND, token.SHL: token.SHR, token.SHR: token.SHL,
}

func (g *generator) operator(b *ast.BinaryExpr) {
	x, y := g.of(b.X), g.of(b.Y)
	if g.isConstant(b) || !g.isPure(b) && b.Op != token.LAND && b.Op != token.LOR {
		return
	}
	switch b.Op {
	case token.LAND, token.LOR:
		for _, e := range []ast.Expr{b.X, b.Y} {
			if operand, ok := ast.Unparen(e).(*ast.BinaryExpr); ok && operand.Op == b.Op {
				continue
			}
			g.constant(e, b.Op == token.LAND)
		}
	case token.LSS, token.GTR:
		g.add(b, x+" "+bounds[b.Op].String()+" "+y, "(", " || \x00 && ("+x+") == ("+y+"))")
	case token.LEQ, token.GEQ:
		g.add(b, x+" "+bounds[b.Op].String()+" "+y, "(", " && !(\x00 && ("+x+") == ("+y+")))")
	default:
		if other, ok := others[b.Op]; ok {
			g.pick(b, x+" "+other.String()+" "+y)
		}
	}
}

func (g *generator) literal(n *ast.BasicLit, parent ast.Node) {
	if b, ok := parent.(*ast.BinaryExpr); ok && g.isConstant(b) || n.Kind != token.INT {
		return
	}
	switch parent.(type) {
	case *ast.CaseClause, *ast.KeyValueExpr, *ast.CompositeLit, *ast.UnaryExpr, *ast.ParenExpr:
		return
	}
	if c, ok := parent.(*ast.CallExpr); ok && g.info.Types[c.Fun].IsType() {
		return
	}
	is := "0"
	if n.Value == "0" {
		is = "1"
	} else if n.Value != "1" {
		is = n.Value + "+1"
	}
	g.pick(n, is)
}

// statements adds a fault for each statement that can be removed.
func (g *generator) statements(list []ast.Stmt) {
	for _, s := range list {
		switch s := s.(type) {
		case *ast.AssignStmt:
			if s.Tok == token.DEFINE || !slices.ContainsFunc(s.Lhs, func(e ast.Expr) bool { return g.of(e) != "_" }) {
				continue
			}
		case *ast.ExprStmt:
			// Keep a panic, because it may be the terminating statement of the function.
			if strings.HasPrefix(g.of(s), "panic(") {
				continue
			}
		case *ast.IncDecStmt, *ast.SendStmt, *ast.DeferStmt, *ast.GoStmt:
		default:
			continue
		}
		g.add(s, missing, "if !\x00 { ", " }")
	}
}

// branch adds the fault that replaces break by continue, or continue by break. It skips loops
// without a condition, because the fault could make them endless.
func (g *generator) branch(n *ast.BranchStmt) {
	other := map[token.Token]string{token.BREAK: "continue", token.CONTINUE: "break"}[n.Tok]
	if other == "" || n.Label != nil {
		return
	}
	for _, outer := range slices.Backward(g.path) {
		switch outer := outer.(type) {
		case *ast.SwitchStmt, *ast.TypeSwitchStmt, *ast.SelectStmt:
			return
		case *ast.ForStmt:
			if outer.Cond == nil {
				return
			}
		case *ast.RangeStmt:
		default:
			continue
		}
		g.add(n, other, "if \x00 { "+other+" }; ", "")
		return
	}
}

func (s *source) isConstant(e ast.Expr) bool { return s.info.Types[e].Value != nil }

func (s *source) isBool(e ast.Expr) bool {
	t, ok := s.info.Types[e].Type.(*types.Basic)
	return ok && t.Info()&types.IsBoolean != 0 && !s.isConstant(e)
}

// pick adds a fault that replaces the integer e by another expression (is). It skips types that
// cannot be named in this package.
func (g *generator) pick(e ast.Expr, is string) {
	t := g.info.Types[e].Type
	if t == nil {
		return
	}
	b, ok := t.Underlying().(*types.Basic)
	name := types.TypeString(t, types.RelativeTo(g.types))
	if ok && b.Info()&types.IsInteger != 0 && b.Info()&types.IsUntyped == 0 && !strings.ContainsAny(name, "./[") {
		g.add(e, is, "mutantPick["+name+"](\x00, ", ", "+is+")")
	}
}

// never reports whether the condition e is always false in this build.
func (s *source) never(e ast.Expr) bool {
	if v := s.info.Types[e].Value; v != nil {
		return v.ExactString() == "false"
	}
	b, ok := ast.Unparen(e).(*ast.BinaryExpr)
	return ok && b.Op == token.LAND && (s.never(b.X) || s.never(b.Y))
}

// isPure reports whether n can be evaluated twice. It must be on one line, and call only builtins
// and conversions.
func (s *source) isPure(n ast.Node) bool {
	pure := !strings.Contains(s.of(n), "\n")
	ast.Inspect(n, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			t := s.info.Types[call.Fun]
			pure = pure && (t.IsType() || t.IsBuiltin())
		}
		return pure
	})
	return pure
}
