package dump

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist"
)

// manyEntities writes a save with so many entities that query reads them in batches. Their rows are
// in random order. It returns the sort key of each entity.
func manyEntities(t *testing.T, file string) map[ecs.Entity]Position {
	t.Helper()
	w := ecs.NewWorld(ecs.Options{})
	positions, healths := ecs.MustRegister[Position](w), ecs.MustRegister[Health](w)
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range 2 * loadLimit {
		e := w.Create()
		positions.Set(e, Position{float64(rng.IntN(10_000)), float64(i)})
		if i%3 == 0 {
			healths.Set(e, Health(i))
		}
	}
	for range 3000 {
		w.Destroy(ecs.NewEntity(uint32(rng.IntN(2*loadLimit)), 1))
	}
	all := map[ecs.Entity]Position{}
	for e, p := range positions.All() {
		all[e] = p
	}
	require.Greater(t, len(all), loadLimit)
	require.NoError(t, persist.Save(t.Context(), file, w))
	return all
}

// The values of many entities equal the values of each single entity, for any batch size, in the
// order of --sort or of indices.
func TestQuery_ManyEntitiesInBatches(t *testing.T) {
	file := filepath.Join(t.TempDir(), "game.save")
	all := manyEntities(t, file)
	defer func(was int) { batchCells = was }(batchCells)
	for _, size := range []int{6001, 1 << 19} {
		batchCells = size
		for _, desc := range []int{1, -1, 0} {
			order := make([]ecs.Entity, 0, len(all))
			for e := range all {
				order = append(order, e)
			}
			slices.SortFunc(order, func(a, b ecs.Entity) int {
				if c := desc * int(all[a].X-all[b].X); c != 0 {
					return c
				}
				return int(a.Index()) - int(b.Index())
			})
			args := []string{"query", file, "--limit", "0", "--select", "entity, Position.Y, Health", "--ndjson"}
			if desc != 0 {
				args = append(args, "--sort", "Position.X", fmt.Sprintf("--desc=%v", desc < 0))
			}
			out, bad := runCommand(t, args...)
			require.Empty(t, bad)
			lines := strings.Split(strings.TrimSpace(out), "\n")[1:]
			require.Len(t, lines, len(order))
			for i, e := range order {
				health := "null"
				if y := int(all[e].Y); y%3 == 0 {
					health = fmt.Sprint(y)
				}
				require.Equal(t, fmt.Sprintf(`{"entity":"%v","Position.Y":%v,"Health":%s}`, e, all[e].Y, health), lines[i], "line %d of %d cells, order %d", i, size, desc)
			}
		}
	}
}

// An unreadable page is reported before the first row is printed.
func TestQuery_DamageBeforeFirstRow(t *testing.T) {
	file := filepath.Join(t.TempDir(), "game.save")
	manyEntities(t, file)
	whole, err := os.ReadFile(file)
	require.NoError(t, err)
	defer func(was int) { batchCells = was }(batchCells)
	batchCells = 1000
	damaged := 0
	for at := 1 << 16; at < len(whole); at += 1 << 16 {
		text := slices.Clone(whole)
		text[at] ^= 1
		require.NoError(t, os.WriteFile(file, text, 0o600))
		out, bad := runCommand(t, "query", file, "--limit", "0", "--select", "Position.Y", "--sort", "index")
		if bad != "" {
			damaged++
			assert.Empty(t, out, "byte %d", at)
			assert.Contains(t, bad, "corrupt")
		}
	}
	assert.Positive(t, damaged)
}

// runCommand runs a command line and returns its standard streams.
func runCommand(t *testing.T, args ...string) (stdout, stderr string) {
	t.Helper()
	var out, bad bytes.Buffer
	run(t.Context(), func() {}, nil, args, &out, &bad)
	return out.String(), bad.String()
}
