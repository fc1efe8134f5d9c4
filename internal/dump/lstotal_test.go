package dump

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist"
)

// TestLs_TotalOfLimitedList compares the total of a limited list with the length of the full list.
func TestLs_TotalOfLimitedList(t *testing.T) {
	w := ecs.NewWorld(ecs.Options{})
	health := ecs.MustRegister[Health](w)
	slots := ecs.MustRegister(w, ecs.Component[int64]{Name: "slot", Kind: ecs.Indexed})
	frozen := ecs.MustRegister[Frozen](w)
	var all []ecs.Entity
	for i := range 9000 {
		e := w.Create()
		all = append(all, e)
		if i%2 == 0 {
			health.Set(e, 1)
		}
		if i%3 == 0 {
			slots.Set(e, int64(i))
		}
		if i%5 == 0 {
			frozen.Set(e, Frozen{})
		}
	}
	for i := 0; i < len(all); i += 7 {
		w.Destroy(all[i])
	}
	file := filepath.Join(t.TempDir(), "save")
	require.NoError(t, persist.Save(t.Context(), file, w))
	for _, filter := range [][]string{nil, {"--with", "Health"}, {"--with", "slot"}, {"--with", "Frozen"}, {"--with", "Health,Frozen"}, {"--with", "Health", "--without", "Frozen"}} {
		var doc struct{ Total int }
		require.NoError(t, json.Unmarshal([]byte(outputOf(t, append([]string{"ls", file, "--json", "--limit", "1"}, filter...)...)), &doc))
		whole := strings.Count(outputOf(t, append([]string{"ls", file, "--limit", "0"}, filter...)...), "\n") - 1
		require.Equal(t, whole, doc.Total, filter)
		require.Contains(t, outputOf(t, append([]string{"ls", file, "--limit", "1", "--offset", "5"}, filter...)...), fmt.Sprintf("%d more of %d entities", whole-6, whole))
	}
	whole := strings.Split(outputOf(t, "query", file, "--limit", "0"), "\n")[1:]
	for _, offset := range []int{0, 3510, 3511, 4096, 7000, len(whole) - 2} {
		some := strings.Split(outputOf(t, "query", file, "--limit", "1", "--offset", fmt.Sprint(offset)), "\n")
		require.Equal(t, whole[offset], some[1], "offset %d", offset)
	}
}
