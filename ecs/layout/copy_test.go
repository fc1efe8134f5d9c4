package layout

import (
	"math"
	"math/big"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

type pouch struct {
	Name    string
	Items   []int
	Same    []int
	Nested  [][]string
	Counts  map[string][]int
	At      *position
	Pair    [2]*int
	hidden  []byte
	When    time.Time
	Empty   []int
	Nil     []int
	NoMap   map[int]int
	Nothing []struct{}
	_       []int
}

func filled() pouch {
	items := []int{1, 2, 3}
	return pouch{
		Name: "p", Items: items, Same: items[:2], Nested: [][]string{{"a"}, nil, {}}, Counts: map[string][]int{"x": {1}, "y": nil},
		At: &position{X: 1}, Pair: [2]*int{new(int), nil}, hidden: []byte("h"), When: time.Now(), Empty: []int{}, Nothing: make([]struct{}, 2),
	}
}

func TestDeepCopy_SharesNoMemory(t *testing.T) {
	deep, err := DeepCopy[pouch]()
	require.NoError(t, err)
	v := filled()
	c := deep(v)
	require.Equal(t, v, c)
	require.Empty(t, CopyFault(v, c))
	require.True(t, c.Empty != nil && c.Nil == nil && c.NoMap == nil && c.Nested[1] == nil && c.Nested[2] != nil, "nil and empty stay distinct")

	c.Items[0], c.Nested[0][0], c.Counts["x"][0], c.At.X, *c.Pair[0], c.hidden[0] = 9, "z", 9, 9, 9, 'z'
	c.Counts["new"] = nil
	require.Equal(t, []int{1, 2, 3}, v.Items)
	require.Equal(t, []int{1, 2}, c.Same, "slices inside the value that shared memory are separate")
	require.Equal(t, [][]string{{"a"}, nil, {}}, v.Nested)
	require.Equal(t, map[string][]int{"x": {1}, "y": nil}, v.Counts)
	require.Equal(t, float32(1), float32(v.At.X))
	require.Equal(t, 0, *v.Pair[0])
	require.Equal(t, "h", string(v.hidden))
}

func TestDeepCopy_NestedTypes(t *testing.T) {
	copies(t, []int{1})
	copies(t, map[float64]*int{math.NaN(): new(int), 1: nil})
	copies(t, map[position]map[string]position{{X: 1}: {"a": {}}})
	copies(t, []*[]map[int][]int{{{1: {2}}}})
	copies(t, [3][]int{{1}, nil, {}})
	copies(t, *big.NewInt(math.MaxInt64))
	type named *[]int
	copies(t, struct{ P named }{&[]int{1}})
	copies(t, struct{ M map[[2]time.Time]*time.Time }{map[[2]time.Time]*time.Time{{}: {}}})
}

func copies[T any](t *testing.T, v T) {
	t.Helper()
	deep, err := DeepCopy[T]()
	require.NoError(t, err)
	require.Empty(t, CopyFault(v, deep(v)), "%T", v)
	require.NotEmpty(t, CopyFault(v, v), "%T shares with itself", v)
}

func TestDeepCopy_NilForPlainTypes(t *testing.T) {
	none[int](t)
	none[string](t)
	none[time.Time](t)
	none[position](t)
	none[struct{ _ [0]func() }](t)
	none[[0]*int](t)
	none[sync.Mutex](t)
}

func none[T any](t *testing.T) {
	t.Helper()
	deep, err := DeepCopy[T]()
	require.NoError(t, err)
	require.True(t, deep == nil, "%v", reflect.TypeFor[T]())
}

func TestDeepCopy_RefusedTypes(t *testing.T) {
	refuses[struct{ F []func() }](t, "F[]: the content of a func cannot be copied")
	refuses[struct{ C chan int }](t, "C: the content of a chan cannot be copied")
	refuses[struct{ M map[string]any }](t, "M[value]: the content of an interface cannot be copied")
	refuses[map[*int]int](t, "the key of a map is another key")
	refuses[map[any]int](t, "[key]: the content of an interface")
	refuses[node](t, "node.Next: a type that contains itself can hold values that go round in circles")
	refuses[forest](t, "a type that contains itself")
}

func refuses[T any](t *testing.T, text string) {
	t.Helper()
	_, err := DeepCopy[T]()
	var typed *TypeError
	require.ErrorAs(t, err, &typed)
	require.ErrorContains(t, err, text)
}

func TestCopyFault_NamesField(t *testing.T) {
	deep, err := DeepCopy[pouch]()
	require.NoError(t, err)
	v := filled()
	for want, change := range map[string]func(c *pouch){
		"pouch.Items shares memory with the original":         func(c *pouch) { c.Items = v.Items },
		"pouch.Same shares memory with the original":          func(c *pouch) { c.Same = v.Items[1:3] },
		"pouch.Items differs from the original":               func(c *pouch) { c.Items = nil },
		"pouch.Items[1] differs from the original":            func(c *pouch) { c.Items[1]++ },
		"pouch.Empty differs from the original":               func(c *pouch) { c.Empty = nil },
		"pouch.Nil differs from the original":                 func(c *pouch) { c.Nil = []int{} },
		"pouch.Nested[0] shares memory with the original":     func(c *pouch) { c.Nested[0] = v.Nested[0] },
		"pouch.Counts shares memory with the original":        func(c *pouch) { c.Counts = v.Counts },
		"pouch.Counts[value] shares memory with the original": func(c *pouch) { c.Counts["x"] = v.Counts["x"] },
		"pouch.Counts differs from the original":              func(c *pouch) { delete(c.Counts, "y"); c.Counts["z"] = nil },
		"pouch.At shares memory with the original":            func(c *pouch) { c.At = v.At },
		"pouch.At.X differs from the original":                func(c *pouch) { c.At.X = 7 },
		"pouch.Pair[0] differs from the original":             func(c *pouch) { c.Pair[0] = nil },
		"pouch.hidden shares memory with the original":        func(c *pouch) { c.hidden = v.hidden },
		"pouch.When differs from the original":                func(c *pouch) { c.When = time.Time{} },
		"pouch.Name differs from the original":                func(c *pouch) { c.Name = "" },
	} {
		c := deep(v)
		change(&c)
		require.Equal(t, want, CopyFault(v, c))
	}
}

// CopyFault terminates on cyclic values, and skips values that it cannot inspect.
func TestCopyFault_CyclicValues(t *testing.T) {
	type ring struct {
		Next *ring
		F    func()
		V    any
	}
	a := &ring{F: func() {}, V: 1}
	a.Next = a
	b := &ring{}
	b.Next = b
	require.Empty(t, CopyFault(*a, *b))
	require.Contains(t, CopyFault(*a, *a), "ring.Next shares memory")
}
