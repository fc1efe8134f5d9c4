package web

import (
	"cmp"
	"context"
	"encoding/json"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/internal/describe"
	"github.com/stet-ecs/stet/internal/query"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
)

// naiveMap evaluates the entities of the whole state one by one, and the map must equal its
// result. The state is in a save of several spans, or in the middle of a store, where it must be
// loaded.
func TestMap_SameAsEntityByEntity(t *testing.T) {
	w := ecs.NewWorld(ecs.Options{})
	positions, healths, labels := ecs.MustRegister[Position](w), ecs.MustRegister[Health](w), ecs.MustRegister[Label](w)
	for i := range 13_000 {
		e := w.Create()
		if i%3 > 0 {
			positions.Set(e, Position{float64(i % 97), float64(i)})
		}
		if wild := []float64{math.NaN(), math.Inf(1), math.Inf(-1), 1e308, -5e-324}; i%100 < len(wild) {
			positions.Set(e, Position{wild[i%100], float64(i)})
		}
		if i%5 > 1 {
			healths.Set(e, Health(i*7919%101))
		}
		if i%7 == 0 {
			labels.Set(e, Label{Text: string(rune('a' + i%20))})
		}
		if i%11 == 0 {
			w.Destroy(w.Entities()[i/13])
		}
	}
	w.Commit()
	save := filepath.Join(t.TempDir(), "save")
	require.NoError(t, persist.Save(t.Context(), save, w))
	for _, from := range []struct {
		path string
		seqs []uint64
	}{{save, []uint64{0}}, {build(t), []uint64{0, 3, 11, 20}}} {
		c := serve(t, from.path)
		v, err := inspect.OpenReadOnly(context.Background(), from.path)
		require.NoError(t, err)
		for _, seq := range from.seqs {
			im, err := v.At(t.Context(), seq)
			require.NoError(t, err)
			for _, texts := range [][4]string{
				{"Position.X", "Position.Y", "", ""}, {"Position.X", "Health", "Label.Text", "Health < 50"},
				{"index", "Health ?? -1", "Health", "not has(Position)"}, {"Health", "Position.X", "Health", ""},
			} {
				for _, limit := range []int{1, 4000, 50_000} {
					question := "map?record=" + strconv.Itoa(int(seq)) + "&limit=" + strconv.Itoa(limit)
					for i, name := range []string{"x", "y", "color", "where"} {
						question += "&" + name + "=" + q(texts[i])
					}
					_, body, _ := c.send(c.request(apiPath + question))
					var got mapDoc
					require.NoError(t, json.Unmarshal([]byte(body), &got), body)
					require.Equal(t, naiveMap(t, im, seq, texts, limit), &got, question)
				}
			}
		}
		require.NoError(t, v.Close())
	}
}

// naiveMap evaluates all entities of im, by index.
func naiveMap(t *testing.T, im *inspect.Image, seq uint64, texts [4]string, limit int) *mapDoc {
	t.Helper()
	doc := &mapDoc{stateDoc: describe.State(im.Tick, seq), Entities: []string{}, X: []float64{}, Y: []float64{}}
	var exprs [4]*query.Expr
	for i, text := range texts {
		want := [...]query.Want{query.WantNumber, query.WantNumber, query.WantValue, query.WantCondition}[i]
		if text != "" {
			x, err := query.Compile(im, "model", text, want)
			require.NoError(t, err)
			exprs[i] = x
		}
	}
	of := func(i int, e ecs.Entity) query.Answer {
		v, err := exprs[i].Of(e)
		require.NoError(t, err)
		return v
	}
	var placed []ecs.Entity
	all, classes := slices.Clone(im.Entities()), map[string]int{}
	slices.SortFunc(all, func(a, b ecs.Entity) int { return cmp.Compare(a.Index(), b.Index()) })
	for _, e := range all {
		if exprs[3] != nil {
			holds, err := exprs[3].Holds(e)
			require.NoError(t, err)
			if !holds {
				continue
			}
		}
		x, y := of(0, e), of(1, e)
		switch {
		case x.Nothing(), y.Nothing() && finite(x) != nil:
			doc.Absent++
		case finite(x) == nil, finite(y) == nil:
			doc.Wild++
		default:
			placed = append(placed, e)
		}
	}
	doc.Placed = len(placed)
	if doc.More = len(placed) > limit; doc.More {
		slices.SortFunc(placed, func(a, b ecs.Entity) int { return cmp.Compare(hashOf(a), hashOf(b)) })
		placed = placed[:limit]
		slices.SortFunc(placed, func(a, b ecs.Entity) int { return cmp.Compare(a.Index(), b.Index()) })
	}
	for _, e := range placed {
		doc.Entities, doc.X, doc.Y = append(doc.Entities, e.String()), append(doc.X, *finite(of(0, e))), append(doc.Y, *finite(of(1, e)))
		if exprs[2] != nil {
			doc.Colors = append(doc.Colors, doc.color(classes, of(2, e)))
		}
	}
	return doc
}

// A sample must contain entities from all ranges of indices. An entity must stay in the sample if
// other entities vanish from the world.
func TestMapSample_StableIfEntitiesVanish(t *testing.T) {
	sampled := func(first, step int) (names []string) {
		s := pointSample{limit: 500, bound: math.MaxUint64}
		for i := first; i < 20_000; i += step {
			s.add(point{entity: ecs.NewEntity(uint32(i), 1)})
		}
		for _, p := range s.all() {
			names = append(names, p.entity.String())
		}
		return names
	}
	all, even := sampled(0, 1), sampled(0, 2)
	require.Len(t, all, 500)
	require.Len(t, even, 500)
	quarters := [4]int{}
	for _, name := range all {
		e, err := ecs.ParseEntity(name)
		require.NoError(t, err)
		quarters[e.Index()/5000]++
		// A sample has the 500 entities with the smallest hashes. So an even entity in the sample
		// of all entities is also in the sample of even entities.
		if e.Index()%2 == 0 {
			require.Contains(t, even, name)
		}
	}
	for _, n := range quarters {
		require.Greater(t, n, 80)
	}
}
