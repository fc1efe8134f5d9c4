package query

import (
	"context"
	"encoding/json"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
)

// Components of the test world.
type (
	unit struct {
		HP      int32
		Max     uint8
		ID      uint64
		Serial  int64
		Speed   float32
		Weight  float64
		At      [2]int16
		Elite   bool
		Owner   ecs.Entity
		private int
	}
	bag struct {
		Name  string
		Raw   []byte
		Items []item
		Count map[string]int
		Of    map[ecs.Entity]bool
		Next  *item
		Z     complex128
	}
	item struct {
		N    int
		Size *float64
	}
	dead struct{}
	task struct {
		State state
		Next  *state
		Past  [2]state
		Wait  time.Duration
	}
	state uint8
)

// String implements [fmt.Stringer].
func (s state) String() string {
	if int(s) < 3 {
		return []string{"Idle", "Running", "Done"}[s]
	}
	return "state " + strconv.Itoa(int(s))
}

// testImage returns the state of a save with three entities:
//
//	0v1   a unit, a bag with Next, and a task
//	1v1   a unit whose owner is 0v1, and the tag game.Dead
//	2v1   a bag and a task
func testImage(t testing.TB) *inspect.Image {
	t.Helper()
	w := ecs.NewWorld(ecs.Options{})
	units := ecs.MustRegister(w, ecs.Component[unit]{Name: "Unit"})
	bags := ecs.MustRegister(w, ecs.Component[bag]{Name: "game.Bag-2", Clone: func(b bag) bag { return b }})
	tags := ecs.MustRegister(w, ecs.Component[dead]{Name: "game.Dead"})
	ecs.MustRegister(w, ecs.Component[float64]{Name: "entity"})
	ecs.MustRegister(w, ecs.Component[float64]{Name: "Late"})
	tasks := ecs.MustRegister(w, ecs.Component[task]{Name: "Task", Clone: func(t task) task { return t }})
	ecs.Must(ecs.RegisterResource(w, uint64(math.MaxUint64), ecs.Component[uint64]{Name: "seed"}))
	e := [3]ecs.Entity{w.Create(), w.Create(), w.Create()}
	units.Set(e[0], unit{
		HP: -7, Max: 200, ID: 1<<63 + 1, Serial: 1<<53 + 1, Speed: 0.1, Weight: math.NaN(),
		At: [2]int16{3, 4}, Elite: true, private: 5,
	})
	units.Set(e[1], unit{HP: 8, ID: 7, Owner: e[0], Weight: 2.5})
	size := 1.5
	bags.Set(e[0], bag{
		Name: "a \"b\"", Raw: []byte{1, 2}, Items: []item{{N: 3}, {N: 4, Size: &size}},
		Count: map[string]int{"x": 1, "y y": 2}, Of: map[ecs.Entity]bool{e[1]: true}, Next: &item{N: 9, Size: &size}, Z: 1 - 2i,
	})
	bags.Set(e[2], bag{Name: "empty"})
	tags.Set(e[1], dead{})
	running := state(1)
	tasks.Set(e[0], task{State: 2, Next: &running, Past: [2]state{0, 1}, Wait: 1500 * time.Millisecond})
	tasks.Set(e[2], task{State: 7, Wait: -time.Hour})
	file := filepath.Join(t.TempDir(), "test.save")
	require.NoError(t, persist.Save(context.Background(), file, w))
	v, err := inspect.OpenReadOnly(context.Background(), file)
	require.NoError(t, err)
	t.Cleanup(func() { v.Close() })
	im, err := v.At(context.Background(), 0)
	require.NoError(t, err)
	return im
}

// ownerJSON is the component Unit of 0v1 as JSON.
const ownerJSON = `{"HP":-7,"Max":200,"ID":9223372036854775809,"Serial":9007199254740993,"Speed":0.1,"Weight":"NaN","At":[3,4],"Elite":true,"Owner":"0v0","private":5}`

// For each text, the map has the JSON answers for the three entities. An exclamation mark stands
// for an error.
func TestExpr_AnswersForEachEntity(t *testing.T) {
	im := testImage(t)
	for text, want := range map[string]string{
		// Fields of every kind.
		`Unit.HP`:                                       `-7 8 null`,
		`Unit.HP + Unit.Max`:                            `193 8 null`,
		`Unit.ID`:                                       `9223372036854775809 7 null`,
		`Unit.Serial`:                                   `9007199254740993 0 null`,
		`Unit.Speed`:                                    `0.1 0 null`,
		`Unit.Weight`:                                   `"NaN" 2.5 null`,
		`Unit.At`:                                       `[3,4] [0,0] null`,
		`Unit.At[1] * 2`:                                `8 0 null`,
		`Unit.Owner`:                                    `"0v0" "0v1" null`,
		`Unit.private`:                                  `5 0 null`,
		`component("game.Bag-2").Raw`:                   `"AQI=" null null`,
		`component("game.Bag-2").Items`:                 `[{"N":3,"Size":null},{"N":4,"Size":1.5}] null null`,
		`component("game.Bag-2").Count`:                 `{"x":1,"y y":2} null null`,
		`component("game.Bag-2").Count["y y"]`:          `2 null 0`,
		`component("game.Bag-2").Of`:                    `{"1v1":true} null null`,
		`component("game.Bag-2").Next`:                  `{"N":9,"Size":1.5} null null`,
		`component("game.Bag-2").Next.N`:                `9 null null`,
		`component("game.Bag-2")?.Next?.N`:              `9 null null`,
		`component("game.Bag-2").Z`:                     `[1,-2] null [0,0]`,
		`sum(component("game.Bag-2").Items, .N)`:        `7 null 0`,
		`filter(component("game.Bag-2").Items, .N > 3)`: `[{"N":4,"Size":1.5}] null []`,
		`len(component("game.Bag-2").Name)`:             `5 null 5`,

		// Numbers with names.
		`Task.State`:                     `2 null 7`,
		`Task.State == "Done"`:           `true false false`,
		`"Done" != Task.State`:           `false false true`,
		`Task.State in ["Done", "Idle"]`: `true false false`,
		`Task.State >= "Running"`:        `true false true`,
		`Task.Next == "Running"`:         `true false false`,
		`Task.Past[1] == "Running"`:      `true false false`,
		`Task.Wait > "1.4s"`:             `true false false`,
		`"-1h0m0s" == Task.Wait`:         `false false true`,
		`Task.Wait - duration("1s")`:     `500000000 null -3601000000000`,
		`Task.Wait / duration("1s")`:     `1.5 null -3600`,

		// Components of other entities: 1v1 has 0v1 as its owner, and 0v1 has no owner.
		`Unit.Owner.Unit.HP`:                       `null -7 null`,
		`Unit.Owner.Unit.HP < 0`:                   `false true false`,
		`not (Unit.Owner.Unit.HP < 0)`:             `true false true`,
		`Unit.Owner.Unit.HP + 1`:                   `null -6 null`,
		`(Unit.Owner.Unit.HP ?? 5) + 1`:            `6 -6 6`,
		`Unit.Owner.Unit.ID > 9223372036854775807`: `false true false`,
		`Unit.Owner.Unit`:                          `null ` + ownerJSON + ` null`,
		`Unit.Owner.Unit == nil`:                   `true false false`,
		`Unit.Owner.Unit != nil`:                   `false true false`,
		`Unit.Owner.Unit.Owner.Unit.HP`:            `null null null`,
		`Unit.Owner.Late > 1`:                      `false false false`,
		`Unit.Owner.Late`:                          `null null null`,
		`Unit.Owner.Task.State == "Done"`:          `false true false`,
		`Unit.Owner.Task.Next == "Running"`:        `false true false`,
		`Unit.Owner.Unit.HP < Unit.HP`:             `false true false`,
		`Unit.Owner.Unit.HP < 0 or index == 2`:     `false true true`,
		`Unit.Owner.Unit.At[1]`:                    `null 4 null`,
		`exists(Unit.Owner.Unit.Owner)`:            `null false null`,

		// Variables, resources, and components with the names of variables.
		`[entity, index, generation, alive]`: `["0v1",0,1,3] ["1v1",1,1,3] ["2v1",2,1,3]`,
		`seed`:                               `18446744073709551615 18446744073709551615 18446744073709551615`,
		`resource("seed") == seed`:           `true true true`,
		`component("entity")`:                `null null null`,
		`has(component("entity"))`:           `false false false`,
		`has("entity")`:                      `false false false`,
		`game.Dead`:                          `false true false`,
		`has(game.Dead)`:                     `false true false`,
		`let Unit = {HP: 1}; Unit.HP`:        `1 1 1`,

		// A missing component makes only the condition that reads it false.
		`Unit.HP < 100`:                               `true true false`,
		`not (Unit.HP < 100)`:                         `false false true`,
		`Unit.HP != 8`:                                `true false false`,
		`Unit.HP < 0 or game.Dead or index == 2`:      `true true true`,
		`Unit.Elite`:                                  `true false null`,
		`Unit.Elite and true`:                         `true false false`,
		`Unit == nil`:                                 `false false true`,
		`nil != Unit`:                                 `true true false`,
		`has(Unit) ? Unit.HP : 0`:                     `-7 8 0`,
		`Unit.HP ?? 3`:                                `-7 8 3`,
		`(Unit.HP ?? 3) > 2`:                          `false true true`,
		`Unit.HP in [8, 9]`:                           `false true false`,
		`Unit.HP > component("game.Bag-2").Next.N`:    `false false false`,
		`component("game.Bag-2").Next.N > 3`:          `true false false`,
		`component("game.Bag-2").Next.Size > 1`:       `true false false`,
		`component("game.Bag-2").Next == nil`:         `false false true`,
		`component("game.Bag-2").Next?.N > 3`:         `true false false`,
		`component("game.Bag-2").Next?.N != 3`:        `true false false`,
		`any(component("game.Bag-2").Items, .N == 4)`: `true null false`,
		`any(component("game.Bag-2").Items, .N == 4 and Unit.HP < 0)`: `true null false`,
		`all(component("game.Bag-2").Items, .N > Unit.HP)`:            `true null true`,
		`(Unit.HP > 0 ? Unit.HP : nil) > 3`:                           `false true false`,
		`Late > 3 or Late <= 3`:                                       `false false false`,

		// Large integers are compared exactly, also with floats.
		`Unit.ID == 9223372036854775809`:        `true false false`,
		`Unit.ID > 9223372036854775808`:         `true false false`,
		`Unit.ID <= 9223372036854775808`:        `false true false`,
		`Unit.ID >= 7.5`:                        `true false false`,
		`Unit.ID != Unit.ID`:                    `false false false`,
		`Unit.ID < seed`:                        `true true false`,
		`seed == 18446744073709551615`:          `true true true`,
		`seed == -1`:                            `false false false`,
		`Unit.ID + 1`:                           `! 8 null`,
		`-Unit.ID`:                              `! -7 null`,
		`Unit.Serial == 9007199254740993`:       `true false false`,
		`Unit.Serial == 9007199254740992`:       `false false false`,
		`Unit.Serial == 9007199254740992.0`:     `false false false`,
		`Unit.Serial > 9007199254740992.0`:      `true false false`,
		`9007199254740992.0 >= Unit.Serial`:     `false true false`,
		`Unit.Serial * 1 != 9007199254740992.0`: `true true false`,
		`Unit.Serial < float(Unit.Serial)`:      `false false false`,
		`Unit.Serial < Unit.Weight`:             `false true false`,
		`Unit.Serial != Unit.Weight`:            `true true false`,
		`Unit.HP < -1e30`:                       `false false false`,
		`1e30 > Unit.HP`:                        `true true false`,
		`Unit.Speed == 0.1`:                     `true false false`,
		`Unit.Weight == Unit.Weight`:            `false true false`,

		// Entities.
		`Unit.Owner == "0v1"`:                  `false true false`,
		`exists(Unit.Owner)`:                   `false true null`,
		`exists("2v1") and not exists("2v2")`:  `true true true`,
		`exists(component("game.Bag-2").Name)`: `! null !`,

		// An error affects only its entity.
		`Unit.At[index + 1]`: `4 ! null`,
	} {
		x, err := Compile(im, "test", text, WantValue)
		if !assert.NoError(t, err, text) {
			continue
		}
		var got []string
		for index := range uint32(3) {
			a, err := x.Of(ecs.NewEntity(index, 1))
			if err != nil {
				got = append(got, "!")
				continue
			}
			b, err := json.Marshal(a)
			require.NoError(t, err)
			got = append(got, string(b))
		}
		assert.Equal(t, want, strings.Join(got, " "), text)
	}
}

// Each expression fails with an error at the given column, in the given words.
func TestCompile_Errors(t *testing.T) {
	im := testImage(t)
	for _, test := range []struct {
		text   string
		want   Want
		column int
		says   string
	}{
		{`Unit.HPP > 3`, WantCondition, 5, `no field "HPP"; did you mean HP?`},
		{`Unitt.HP > 3`, WantCondition, 0, `no component and no variable "Unitt"; did you mean Unit?`},
		{`1 + Unit.At.X`, WantValue, 12, `no field "X": an array has no fields`},
		{`Unit.HP > "3"`, WantCondition, 8, `> does not apply to a number and a text`},
		{`Unit > 3`, WantCondition, 5, `> does not apply to a struct and a number`},
		{`Unit.HP = 3`, WantCondition, 8, `= is not a comparison: write ==`},
		{`Unit.HP 3`, WantCondition, 8, `3 is not expected here`},
		{`"3`, WantValue, 2, `the quote has no end`},
		{`len(Unit)`, WantValue, 0, `len does not take a struct`},
		{`map(1, {2})`, WantValue, 4, `map takes a list, not a number`},
		{`Unit`, WantCondition, 0, `it is not a condition: it returns a struct`},
		{`Unit.HP`, WantCondition, 0, `it is not a condition: it returns an int`},
		{`let entity = 3; entity`, WantValue, 4, `cannot redeclare entity`},
		{`Unit.Elite`, WantNumber, 0, `it is not a number: it returns a bool`},
		{`Unit.HP >`, WantCondition, 8, `it ends too early`},
		{`exists(1)`, WantCondition, 7, ` to call exists`},
		{`component("Unt").HP`, WantValue, 10, `no component "Unt"; did you mean Unit?`},
		{`resource("Unit").HP`, WantValue, 9, `Unit is a component, not a resource`},
		{`resource(seed)`, WantValue, 0, `resource takes a name in quotes`},
		{`has(Unit.HP)`, WantValue, 9, `has takes the name of a component`},
		{`has(1, 2)`, WantValue, 0, `has takes the name of a component`},
		{`exists("x")`, WantValue, 7, `"x" is not an entity; write INDEXvGENERATION, as in 12v3`},
		{`exists()`, WantValue, 0, `exists takes one entity`},
		{`exist("1v1")`, WantValue, 0, `no function "exist"; did you mean exists?`},
		{`now()`, WantValue, 0, `no function "now"`},
		{`Unit.HP()`, WantValue, 5, `fields cannot be called`},
		{`$env`, WantValue, 0, `$env has no meaning here`},
		{`$env["Unit"]`, WantValue, 0, `$env has no meaning here`},
		{`99999999999999999999 > 3`, WantCondition, 21, `invalid integer literal: parsing "9`},
		{`alive > Unit.HP`, WantWorld, 8, `Unit belongs to one entity; a condition on the world uses it in any(…)`},
		{`alive > index`, WantWorld, 8, `index belongs to one entity; this is a condition on the world`},
		{`any(Unit.XP > 3)`, WantWorld, 9, `no field "XP"; did you mean HP?`},
		{`any(Unit.HP) and alive > 3`, WantWorld, 0, `it is not a condition: it returns an int`},
		{`sum(Unit.Elite) > 3`, WantWorld, 0, `it is not a number: it returns a bool`},
		{`count(Unit.HP > 3)`, WantWorld, 0, `it is not a condition: it returns an int`},
		{`p50(Unit.Elite) > 3`, WantWorld, 0, `it is not a number: it returns a bool`},
		{`p101(Unit.HP) > 3`, WantWorld, 0, `no function "p101"`},
		{`p50() > 3`, WantWorld, 0, `p50 takes a condition on entities`},
		{`any() > 3`, WantWorld, 0, `any takes a condition on entities`},
		{`Task.State == "Runnin"`, WantCondition, 14, `no state is called "Runnin"; did you mean Running?`},
		{`Task.State in ["Done", "x"]`, WantCondition, 23, `no state is called "x"`},
		{`Task.Wait > "1"`, WantCondition, 12, `"1" is not a duration; write it with a unit, as in 1.5s or 20ms`},
		{`duration("x") > 1`, WantCondition, 9, `"x" is not a duration`},
		{`duration(entity) > 1`, WantCondition, 0, `duration takes a text in quotes`},
		{`Unit.Owner.Unti.HP > 3`, WantCondition, 11, `no component "Unti" after an entity; did you mean Unit?`},
		{`Unit.Owner.seed > 3`, WantCondition, 11, `seed is a resource, which no entity has`},
		{`Unit.Owner.Unit.HPP > 3`, WantCondition, 16, `no field "HPP"; did you mean HP?`},
		{strings.Repeat("(", 20_000), WantValue, -1, `too long for an expression`},
		{strings.Repeat("1+", 6_000) + "1", WantValue, -1, `exceeds maximum allowed nodes`},
	} {
		_, err := Compile(im, "test", test.text, test.want)
		var e *Error
		if !assert.ErrorAs(t, err, &e, test.text) {
			continue
		}
		assert.Contains(t, err.Error(), test.says, test.text)
		assert.Equal(t, test.text, e.Text)
		if test.column >= 0 {
			assert.Equal(t, test.column, e.At, "%s\n%v", test.text, err)
		}
	}
}

func TestExpr_ConditionOnWholeWorld(t *testing.T) {
	im := testImage(t)
	for text, want := range map[string]bool{
		`any(Unit.HP < 0)`:                          true,
		`any(Unit.Owner.Unit.HP < 0)`:               true,
		`any(Unit.Owner.Unit.HP > 0)`:               false,
		`count(Unit.Owner.Unit != nil) == 1`:        true,
		`any(Unit.HP < -7)`:                         false,
		`all(has(Unit))`:                            false,
		`all(not game.Dead or Unit.HP == 8)`:        true,
		`none(Unit.HP == 9)`:                        true,
		`count(has(Unit)) == 2`:                     true,
		`sum(Unit.HP) == 1`:                         true,
		`sum(Unit.ID) > 9223372036854775815`:        true,
		`sum(Unit.ID) == 9223372036854775816`:       true,
		`min(Unit.HP) == -7 and max(Unit.HP) == 8`:  true,
		`avg(Unit.HP) == 0.5`:                       true,
		`avg(Late) == 0 or avg(Late) != 0`:          false,
		`avg(Late) < 1 or avg(Late) >= 1`:           false,
		`min(Late) == nil`:                          true,
		`max(entity) == "2v1"`:                      true,
		`exists("0v1") and !exists("9v1")`:          true,
		`alive == 3 and tick == 0`:                  true,
		`seed > 3 and any(seed > 3)`:                true,
		`any(any([1, index], # == 2))`:              true,
		`any(max(index, 7) > 6) and max(1, 2) == 2`: true,
		// With one argument, count is an aggregate.
		`count([true, false]) == 1`:    false,
		`count([true, false], #) == 1`: true,
	} {
		x, err := Compile(im, "test", text, WantWorld)
		if text == `count([true, false]) == 1` {
			assert.ErrorContains(t, err, "it is not a condition", text)
			continue
		}
		if !assert.NoError(t, err, text) {
			continue
		}
		got, err := x.Holds(ecs.Vacant)
		assert.NoError(t, err, text)
		assert.Equal(t, want, got, text)
	}
}

func TestAnswerCompare_OrdersAllTypes(t *testing.T) {
	nan := math.NaN()
	ordered := []Answer{
		{false}, {true}, {-3}, {1.5}, {2}, {uint64(1<<63 + 1)}, {"a"}, {"b"}, {[]int{1}}, {nan}, {nil},
	}
	for i, a := range ordered {
		for j, b := range ordered {
			want := min(1, max(-1, i-j))
			assert.Equal(t, want, min(1, max(-1, a.Compare(b))), "%v and %v", a, b)
		}
	}
}

// FuzzCompileExpression compiles and runs arbitrary texts, with each Want, on a world with values
// of every kind.
func FuzzCompileExpression(f *testing.F) {
	im := testImage(f)
	for _, seed := range []string{
		`Unit.HP > 3 && has(game.Dead)`, `component("game.Bag-2").Next?.N ?? 1`, `any(Unit.ID + 1 > 18446744073709551615)`,
		`let a = Unit.At; map(a, # * 2)[1] in 1..3`, `sum(Unit.HP) / count(true) > avg(Unit.Weight)`, `{"a": Unit, b: [nil]}.a.HP`,
		`component("game.Bag-2").Count[entity] | abs()`, `exists(Unit.Owner) ? -Unit.ID : Unit`, "Unit.HP matches \"[\"", `reduce(1..9, #acc + #, 0)`,
		`component("game.Bag-2").Raw[0] == Unit.Max`, `toJSON(Unit)`, `groupBy([1,2], # % 2)`, `#`, `Task.State in ["Done"] || Task.Wait > "1s"`, `Task`, "\x00ǅny(", `1; 2`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if target, expr, ok := SplitAssignment(text); ok {
			require.Contains(t, text, target)
			require.Contains(t, text, expr)
		}
		for _, w := range []Want{WantValue, WantNumber, WantCondition, WantWorld} {
			x, err := Compile(im, "fuzz", text, w)
			if err != nil {
				require.ErrorAs(t, err, new(*Error))
				continue
			}
			if w == WantWorld {
				_, _ = x.Holds(ecs.Vacant)
				continue
			}
			for _, e := range im.Entities() {
				a, err := x.Of(e)
				if err != nil {
					continue
				}
				b, err := json.Marshal(a)
				require.NoError(t, err, "%v", a)
				require.True(t, json.Valid(b))
				require.Zero(t, a.Compare(a))
				require.NotEqual(t, "", x.Text("", Answer{1}))
				_ = x.Text("", a)
			}
		}
	})
}

func TestExpr_TotalsOfEntities(t *testing.T) {
	im := testImage(t)
	total := func(text string) (Answer, error) {
		x, err := Compile(im, "expr", text, WantTotal)
		if err != nil {
			return Answer{}, err
		}
		return x.Of(ecs.Vacant)
	}
	for text, want := range map[string]float64{"alive": 3, "count(Unit.HP > 0) * 2 + 1": 3, "any(has(Unit))": 1, "sum(Unit.HP)": 1, "seed": 1 << 64,
		"p50(Unit.HP)": -7, "p100(Unit.HP) - p0(Unit.HP)": 15, "distinct(Unit.HP)": 2, "distinct(index % 2)": 2} {
		a, err := total(text)
		require.NoError(t, err, text)
		x, ok := a.Float()
		assert.True(t, ok, text)
		assert.Equal(t, want, x, text)
	}
	_, err := total("Unit.HP")
	assert.ErrorContains(t, err, "Unit belongs to one entity")
	text, err := total(`"text"`)
	require.NoError(t, err)
	_, ok := text.Float()
	assert.False(t, ok)
}
