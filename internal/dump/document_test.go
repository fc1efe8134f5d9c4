package dump

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/internal/term"
)

// These types are the documents of the tests.
type (
	basketDoc struct {
		Owner string     `json:"owner"`
		Fruit []fruitDoc `json:"fruit"`
		Total int        `json:"total,omitempty"`
	}
	fruitDoc struct {
		Name string `json:"name"`
	}
	emptyDoc struct{}
	pairDoc  struct {
		Left  []fruitDoc `json:"left"`
		Right []fruitDoc `json:"right"`
	}
	crateDoc struct {
		*basketDoc
		Weight int `json:"weight"`
	}
)

// printedBy returns the output of f.
func printedBy(t *testing.T, ndjson bool, f func(*app) error) (string, error) {
	t.Helper()
	var out bytes.Buffer
	a := &app{Out: term.NewOut(&out, nil), json: true, ndjson: ndjson}
	err := f(a)
	require.NoError(t, a.Close())
	return out.String(), err
}

// fruits visits n fruits, and returns err. If err is nil, it also calls the last argument.
func fruits(n int, err error, then func()) walk[fruitDoc] {
	return func(visit func(fruitDoc) error) error {
		for i := range n {
			if err := visit(fruitDoc{fmt.Sprint(i)}); err != nil {
				return err
			}
		}
		if err != nil {
			return err
		}
		then()
		return nil
	}
}

func TestDocument_PrintedAsJSON(t *testing.T) {
	for _, test := range []struct {
		doc           any
		json, oneLine string
	}{
		{emptyDoc{}, "{\n  \"format\": \"ecsdump.empty/1\"\n}\n", `{"format":"ecsdump.empty/1"}`},
		{
			&fruitDoc{"<a&b>"}, "{\n  \"format\": \"ecsdump.fruit/1\",\n  \"name\": \"<a&b>\"\n}\n",
			`{"format":"ecsdump.fruit/1","name":"<a&b>"}`,
		},
		{
			pairDoc{[]fruitDoc{}, []fruitDoc{{"x"}}},
			"{\n  \"format\": \"ecsdump.pair/1\",\n  \"left\": [],\n  \"right\": [\n    {\n      \"name\": \"x\"\n    }\n  ]\n}\n",
			`{"format":"ecsdump.pair/1","left":[],"right":[{"name":"x"}]}`,
		},
	} {
		got, err := printedBy(t, false, func(a *app) error { return a.printJSON(test.doc) })
		require.NoError(t, err)
		assert.Equal(t, test.json, got)
		got, err = printedBy(t, true, func(a *app) error { return a.printJSON(test.doc) })
		require.NoError(t, err)
		assert.Equal(t, test.oneLine+"\n", got)
	}
}

func TestDocument_NDJSONLines(t *testing.T) {
	doc := basketDoc{"eve", []fruitDoc{{"apple"}, {"fig"}}, 2}
	got, err := printedBy(t, true, func(a *app) error { return a.printJSON(doc) })
	require.NoError(t, err)
	assert.Equal(t, `{"format":"ecsdump.basket/1","owner":"eve"}
{"name":"apple"}
{"name":"fig"}
{"format":"ecsdump.basket/1","total":2}
`, got)
}

func TestDocument_NilEmbeddedStruct(t *testing.T) {
	for _, ndjson := range []bool{false, true} {
		got, err := printedBy(t, ndjson, func(a *app) error { return a.printJSON(crateDoc{Weight: 3}) })
		require.NoError(t, err)
		assert.Equal(t, `{"format":"ecsdump.crate/1","weight":3}`, strings.Join(strings.Fields(got), ""))
	}
}

func TestStream_EqualsPrintJSON(t *testing.T) {
	for _, ndjson := range []bool{false, true} {
		for _, total := range []int{0, 7} {
			for n := range 4 {
				whole := basketDoc{"eve", []fruitDoc{}, total}
				require.NoError(t, fruits(n, nil, func() {})(func(f fruitDoc) error {
					whole.Fruit = append(whole.Fruit, f)
					return nil
				}))
				want, err := printedBy(t, ndjson, func(a *app) error { return a.printJSON(whole) })
				require.NoError(t, err)
				got, err := printedBy(t, ndjson, func(a *app) error {
					doc := basketDoc{Owner: "eve"}
					// The total is known only after the last fruit.
					return stream(a, &doc, fruits(n, nil, func() { doc.Total = total }))
				})
				require.NoError(t, err)
				assert.Equal(t, want, got, "%d fruits, ndjson %v", n, ndjson)
			}
		}
	}
}

func TestStream_ErrorInList(t *testing.T) {
	bad := errors.New("rotten")
	for _, ndjson := range []bool{false, true} {
		want, err := printedBy(t, ndjson, func(a *app) error { return a.printJSON(basketDoc{Fruit: []fruitDoc{{"0"}}, Total: 9}) })
		require.NoError(t, err)
		got, err := printedBy(t, ndjson, func(a *app) error {
			return stream(a, basketDoc{Total: 9}, fruits(1, bad, func() { t.Error("the walk continued after the error") }))
		})
		assert.ErrorIs(t, err, bad)
		assert.Equal(t, want, got)
	}
}

func TestStream_WriteError(t *testing.T) {
	bad := errors.New("no space left")
	for _, ndjson := range []bool{false, true} {
		a := &app{Out: term.NewOut(failingWriter{bad}, nil), ndjson: ndjson}
		n := 0
		err := stream(a, basketDoc{}, func(visit func(fruitDoc) error) error {
			for {
				if err := visit(fruitDoc{"pear"}); err != nil {
					return err
				}
				n++
			}
		})
		assert.ErrorIs(t, err, bad)
		assert.Less(t, n, 1000)
	}
}

func TestStream_DocumentWithoutList(t *testing.T) {
	for _, doc := range []any{emptyDoc{}, pairDoc{}} {
		_, err := printedBy(t, false, func(a *app) error { return stream(a, doc, fruits(1, nil, func() {})) })
		assert.ErrorContains(t, err, "has no list")
	}
}
