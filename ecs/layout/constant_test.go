package layout

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

type (
	// suit has a String method as stringer generates it.
	suit     uint8
	sorted   uint8
	wideOne  int64
	flag     uint16
	partial  int8
	vague    int16
	endless  uint32
	silent   uint8
	pointed  uint8
	Duration int64 // A number of ticks, unlike time.Duration.
)

func numbered[T ~uint8 | ~int8 | ~int16 | ~uint16 | ~int64](i T, names ...string) string {
	if int(i) < len(names) && i >= 0 {
		return names[i]
	}
	return fmt.Sprintf("N(%d)", i)
}

func (s suit) String() string    { return numbered(s, "Clubs", "Diamonds", "Hearts", "Spades") }
func (s sorted) String() string  { return numbered(s, "Spades", "Clubs", "Diamonds", "Hearts", "Stars") }
func (w wideOne) String() string { return numbered(w, "", "Clubs", "Diamonds") }
func (f flag) String() string    { return map[flag]string{1: "A", 2: "B", 3: "A|B", 4: "C"}[f] }

// String panics for numbers above 1.
func (p partial) String() string  { return []string{"None", "Some"}[p] }
func (v vague) String() string    { return numbered(v, "Known", "Unknown", "Other", "Unknown") }
func (e endless) String() string  { return fmt.Sprintf("Number%d%s", e, strings.Repeat("x", 30)) }
func (p *pointed) String() string { return "Pointed" }

func TestOf_NamedConstants(t *testing.T) {
	for _, tt := range []struct {
		value any
		want  string
	}{
		{suit(0), "suit{Clubs Diamonds Hearts Spades}"},
		{wideOne(0), "wideOne{_ Clubs Diamonds}"},
		{flag(0), "flag{_ A B _ C}"},
		{partial(0), "partial{None Some}"},
		{vague(0), "vague{Known _ Other}"},
		{endless(0), "endless"},
		{silent(0), "silent"},
		{pointed(0), "pointed"},
		{time.Duration(0), "time.Duration"},
		{Duration(0), "Duration"},
		{time.Monday, "Weekday{Sunday Monday Tuesday Wednesday Thursday Friday Saturday}"},
		{id(0), "id"},
		{uint8(0), ""},
	} {
		typ, err := Of(reflect.TypeOf(tt.value))
		require.NoError(t, err)
		require.Equal(t, tt.want, typ.fullName())
		require.NotContains(t, typ.Name, "{")
		parsed, err := Parse(typ.Append(nil))
		require.NoError(t, err)
		require.Equal(t, typ, parsed)
		parsed, err = ParseJSON(typ.AppendJSON(nil))
		require.NoError(t, err)
		require.Equal(t, typ, parsed)
	}
	for _, name := range []string{"x{}", "x{A _}", "x{A  B}", "x{A", "x{_}", "x{a-b}", "}", "{", "x{A}{B _}", "x{A}}"} {
		src := (&Type{Kind: Int8, Name: name}).Append(nil)
		typ, err := Parse(src)
		require.NoError(t, err)
		require.Equal(t, name, typ.Name)
		require.Nil(t, typ.Constants)
		require.Equal(t, src, typ.Append(nil))
	}
	typ, err := Parse((&Type{Kind: Bool, Name: "x{A B}"}).Append(nil))
	require.NoError(t, err)
	require.Equal(t, "x{A B}", typ.Name, "only integers have constants")
	require.ErrorIs(t, (&Type{Kind: Int8, Constants: []string{strings.Repeat("x", maxNameSize)}}).Validate(), ErrInvalid)
}

// Constants are stored as numbers. A conversion reports changed numbers even if the layouts are
// equal.
func TestNewConversion_ConstantsReordered(t *testing.T) {
	changes := func(from, to any) (text string) {
		c, err := NewConversion(typeOf(t, from), typeOf(t, to))
		require.NoError(t, err)
		for _, change := range c.Changes() {
			require.False(t, change.Dropped)
			text += change.String() + "\n"
		}
		if c.Same() && c.fromWidth == 1 {
			out, err := c.Append(nil, []byte{2}, 1)
			require.NoError(t, err)
			require.Equal(t, []byte{2}, out)
		}
		return text
	}
	const moved = "stored numbers mean other constants: Clubs was 0, is 1, Diamonds was 1, is 2, Hearts was 2, is 3, 1 more\n"
	require.Equal(t, "sorted: "+moved, changes(suit(0), sorted(0)))
	require.Equal(t, "", changes(suit(0), suit(0)))
	require.Equal(t, "", changes(uint8(0), suit(0)))
	require.Equal(t, "", changes(suit(0), silent(0)))
	require.Equal(t, "wideOne: stored numbers mean other constants: Clubs was 0, is 1, Diamonds was 1, is 2\nwideOne: uint8 became int64\n", changes(suit(0), wideOne(0)))
	type hand struct {
		Of map[suit][]*suit
	}
	type hand2 struct {
		Of map[sorted][]*sorted
	}
	require.Equal(t, "hand2.Of[key]: "+moved+"hand2.Of[value][]: "+moved, changes(hand{}, hand2{}))
}

func typeOf(t *testing.T, v any) *Type {
	typ, err := Of(reflect.TypeOf(v))
	require.NoError(t, err)
	return typ
}

// String prints names. JSON has numbers, so that AppendRow can parse them.
func TestValueString_ConstantNames(t *testing.T) {
	type record struct {
		Suit, Beyond suit
		Flag         flag
		Wait         time.Duration
		Ticks        Duration
		By           map[suit]*wideOne
	}
	clubs := wideOne(1)
	v := value(t, record{2, 9, 4, 1500 * time.Millisecond, 1500, map[suit]*wideOne{3: &clubs}})
	require.Equal(t, "{Suit:Hearts Beyond:9 Flag:C Wait:1.5s Ticks:1500 By:map[Spades:&Clubs]}", v.String())
	text, err := v.MarshalJSON()
	require.NoError(t, err)
	require.Equal(t, `{"Suit":2,"Beyond":9,"Flag":4,"Wait":1500000000,"Ticks":1500,"By":{"3":1}}`, string(text))
	require.Equal(t, `{"Suit":2,"Beyond":9,"Flag":4,"Wait":1500000000,"Ticks":1500,"By":{"3":[1]}}`, string(v.AppendExact(nil)))

	for _, tt := range []struct {
		value any
		name  string
		want  int64
		ok    bool
	}{
		{suit(0), "Spades", 3, true}, {suit(0), "Stars", -1, false}, {suit(0), "", -1, false}, {wideOne(0), "", -1, false},
		{time.Duration(0), "-1.5s", -1500 * 1e6, true}, {time.Duration(0), "1", 0, false}, {Duration(0), "1s", -1, false},
	} {
		typ := typeOf(t, tt.value)
		n, ok := typ.NumberOf(tt.name)
		require.Equal(t, tt.ok, ok, tt.name)
		if ok {
			require.Equal(t, tt.want, n)
			require.Equal(t, tt.name, typ.NameOf(n))
		}
	}
	require.Equal(t, "", typeOf(t, suit(0)).NameOf(-1))
	require.Equal(t, "", typeOf(t, suit(0)).NameOf(4))
}
