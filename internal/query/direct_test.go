package query

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
)

// rowsIn returns the rows of e in an image.
func rowsIn(x *Expr, e ecs.Entity) Rows {
	of := x.Reads()
	return func(n int) ([]byte, bool, error) {
		row := of[n].Find(e)
		if of[n].Resource {
			row = of[n].Len() - 1
		}
		if row < 0 {
			return nil, false, nil
		}
		return of[n].Row(row), true, nil
	}
}

// runProgram makes x, and the arguments of its aggregates, run their programs. None of them is
// evaluated directly any more.
func runProgram(x *Expr) {
	x.direct = nil
	for _, a := range x.aggregates {
		a.of.direct = nil
	}
}

// sameOfRows requires that an expression has the same answer for rows as its program has for an
// image. It reports whether the expression is evaluated directly.
func sameOfRows(t *testing.T, im *inspect.Image, text string, w Want) (direct bool) {
	t.Helper()
	x, err := Compile(im, "test", text, w)
	if err != nil {
		return false
	}
	program := x.Clone()
	runProgram(program)
	for _, c := range []*Expr{x, x.Clone()} {
		for _, e := range im.Entities() {
			want, failed := program.Of(e)
			got, err := c.OfRows(e, rowsIn(x, e))
			require.Equal(t, failed == nil, err == nil, "%s of %v: %v, %v", text, e, failed, err)
			if err == nil {
				require.IsType(t, want.v, got.v, "%s of %v", text, e)
				require.Equal(t, want.Key(), got.Key(), "%s of %v", text, e)
			}
		}
	}
	return x.direct != nil
}

func TestDirectEvaluation_EqualsProgram(t *testing.T) {
	im := testImage(t)
	scalars := []string{
		"Unit.HP", "Unit.Max", "Unit.Serial", "Unit.Speed", "Unit.Weight", "Unit.private", "Unit.ID", "Unit.At[1]", "Unit.Owner.Unit.HP", "seed", "index", "generation",
		"8", "-7", "0.1", "2.5", "9007199254740993", "9007199254740992.0", "200",
	}
	conditions := []string{"Unit.Elite", "has(Unit)", `component("game.Dead")`, "true", "false", "not Unit.Elite", "Unit != nil", "exists(Unit.Owner)", `Unit.Owner["game.Dead"]`}
	direct := map[string]bool{}
	try := func(text string, w Want) { direct[text] = sameOfRows(t, im, text, w) }
	for _, a := range scalars {
		try(a, WantValue)
		for _, b := range scalars {
			for _, operator := range []string{"==", "!=", "<", "<=", ">", ">="} {
				text := fmt.Sprintf("%s %s %s", a, operator, b)
				try(text, WantCondition)
				try("not ("+text+")", WantValue)
			}
		}
	}
	for _, a := range conditions {
		for _, b := range append(conditions, "Unit.HP > 0", "Unit.Weight == Unit.Weight") {
			for _, operator := range []string{"&&", "or", "==", "!="} {
				try(fmt.Sprintf("%s %s %s", a, operator, b), WantCondition)
				try(fmt.Sprintf("%s %s not (%s)", a, operator, b), WantValue)
			}
		}
	}
	for _, text := range []string{
		"Unit", "Unit.ID", "Unit.ID > 5", "Unit.At[0]", "Unit.At[2]", "Unit.At[-1]", "Unit.At[-1] > 3", "Unit.Owner", "Unit.Owner.Unit", "Unit.Owner.Unit.Owner", "Unit.Owner.Unit == nil", "Unit.Owner.Unit.Owner.Unit.HP < 8", "Unit.Owner.Unit.At[1] + 1",
		`Unit.Owner["game.Bag-2"].Items[0].N`, "Unit.Owner.Late", "Unit.Owner.Late > 3", `exists("1v1")`, `"0v1".Unit`, "entity", "seed", "seed > 3", "Late", "Unit.HP + 1 > 3", "Unit.HP ?? 0", "(Unit.HP ?? 0) > 3",
		`component("game.Bag-2").Name`, `component("game.Bag-2").Items[0].N == 3`, "exists(Unit.Owner)", "Unit.Elite ? Unit.HP : 3", "alive > 2", "tick", "true",
	} {
		try(text, WantValue)
		try(text, WantCondition)
	}
	for _, text := range []string{"Unit.HP", "Unit.HP < 8", "not (Unit.Weight < 2.5)", `has(Unit) && Unit.HP > 0`, "Unit.Speed == 0.1", "Unit.ID >= 8", "-7 < Unit.ID", "Unit.ID == seed", "index >= 200", "true",
		"Unit.At[1] > 8", "Unit.Owner.Unit.HP", "Unit.Owner.Unit.HP < 8", "exists(Unit.Owner)", `Unit.Owner["game.Dead"] && Unit.Elite`, "Unit.Owner.Unit.Owner.Unit.HP < 8"} {
		require.True(t, direct[text], "%s needs a program", text)
	}
}

// Components of other entities give the same answers from the image and from a Lookup. Only living
// entities are looked up.
func TestLookup_SameAnswersAsImage(t *testing.T) {
	im := testImage(t)
	for _, text := range []string{"Unit.Owner.Unit.HP", `Unit.Owner["game.Dead"]`, `Unit.Owner["game.Bag-2"].Name`, "Unit.Owner.Unit.Owner.Unit.HP ?? 3"} {
		x, err := Compile(im, "test", text, WantValue)
		require.NoError(t, err)
		asked := 0
		x.Looking(func(c *inspect.Component) Lookup {
			return func(e ecs.Entity) ([]byte, bool, error) {
				asked++
				require.True(t, im.IsAlive(e))
				if c.Find(e) < 0 {
					return nil, false, nil
				}
				return c.Row(c.Find(e)), true, nil
			}
		})
		plain, err := Compile(im, "test", text, WantValue)
		require.NoError(t, err)
		runProgram(plain)
		for _, e := range im.Entities() {
			want, err := plain.Of(e)
			require.NoError(t, err)
			for _, c := range []*Expr{x, x.Clone()} {
				got, err := c.OfRows(e, rowsIn(x, e))
				require.NoError(t, err)
				require.Equal(t, want, got, "%s of %v", text, e)
			}
		}
		require.Positive(t, asked, text)

		x.Looking(func(*inspect.Component) Lookup {
			return func(ecs.Entity) ([]byte, bool, error) { return nil, false, persist.ErrNotFound }
		})
		_, err = x.OfRows(im.Entities()[1], rowsIn(x, im.Entities()[1]))
		require.ErrorContains(t, err, persist.ErrNotFound.Error(), text)
	}
}

func TestOfRows_LookupFails(t *testing.T) {
	im := testImage(t)
	for _, text := range []string{"Unit.HP", "Unit.HP + 1", "not (Unit.HP > 3)"} {
		x, err := Compile(im, "test", text, WantValue)
		require.NoError(t, err)
		_, err = x.OfRows(im.Entities()[0], func(int) ([]byte, bool, error) { return nil, false, persist.ErrNotFound })
		require.ErrorIs(t, err, persist.ErrNotFound)
	}
}
