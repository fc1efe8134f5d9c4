package persist_test

import (
	"math"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/internal/storetest"
)

// If an int has only 32 bits, a valid file can have values that are too large. The Makefile also
// runs this test on 386.
func TestLoad_NarrowInt(t *testing.T) {
	type wideCounter struct{ N int64 }
	type counter struct{ N int }
	type wideBag struct{ Counts []int64 }
	type bag struct{ Counts []int }
	narrowWorld := func() *ecs.World {
		w := ecs.NewWorld(ecs.Options{})
		ecs.MustRegister(w, ecs.Component[counter]{Name: "counter"})
		ecs.MustRegister(w, ecs.Component[bag]{Name: "bag"})
		return w
	}
	for name, c := range map[string]struct {
		fill func(*ecs.World, *ecs.Storage[wideCounter], *ecs.Storage[wideBag], ecs.Entity)
		want string
	}{
		"fixed": {
			func(_ *ecs.World, s *ecs.Storage[wideCounter], _ *ecs.Storage[wideBag], e ecs.Entity) {
				s.Set(e, wideCounter{math.MaxInt32 + 1})
			}, "component counter: entity 1v1: layout: integer does not fit into 32 bits: row 1: counter.N: 2147483648",
		},
		"varying": {
			func(_ *ecs.World, _ *ecs.Storage[wideCounter], s *ecs.Storage[wideBag], e ecs.Entity) {
				s.Set(e, wideBag{[]int64{1, math.MinInt32 - 1}})
			}, "component bag: entity 1v1: layout: integer does not fit into 32 bits: row 1: bag.Counts[1]: -2147483649",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := ecs.NewWorld(ecs.Options{})
			counters := ecs.MustRegister(w, ecs.Component[wideCounter]{Name: "counter"})
			bags := ecs.MustRegister(w, ecs.Component[wideBag]{Name: "bag"})
			dir, save := filepath.Join(t.TempDir(), "store"), filepath.Join(t.TempDir(), "wide.save")
			s, err := persist.Open(storetest.Background, dir, w, persist.Options{Sync: journal.SyncNever})
			require.NoError(t, err)
			for range 2 {
				e := w.Create()
				counters.Set(e, wideCounter{math.MaxInt32})
				bags.Set(e, wideBag{[]int64{math.MinInt32}})
				if e.Index() == 1 {
					c.fill(w, counters, bags, e)
				}
			}
			require.NoError(t, s.Commit())
			require.NoError(t, persist.Save(storetest.Background, save, w))
			require.NoError(t, s.Close(storetest.Background))

			errs := []error{persist.Load(storetest.Background, save, narrowWorld())}
			s, err = persist.Open(storetest.Background, dir, narrowWorld(), persist.Options{})
			errs = append(errs, err)
			if err == nil {
				require.NoError(t, s.Close(storetest.Background))
			}
			for _, err := range errs {
				if strconv.IntSize == 64 {
					require.NoError(t, err)
					continue
				}
				require.ErrorIs(t, err, layout.ErrIntSize)
				require.NotErrorIs(t, err, persist.ErrCorrupt)
				require.ErrorContains(t, err, c.want)
			}
			if errs[0] != nil {
				require.ErrorContains(t, errs[0], "wide.save: ")
			}
		})
	}
}
