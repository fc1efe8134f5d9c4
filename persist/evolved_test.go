package persist

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
)

// Under testdata/evolution-1 lie a store and a save that a program with these
// types wrote before types could change at all, see the README there. They are
// never written anew.
const (
	olderStore = "testdata/evolution-1/store"
	olderSave  = "testdata/evolution-1/save"
)

// The types of the program that wrote them.
type (
	olderUnit struct {
		HP    int16
		Level uint8
		Speed float32
		Old   uint16
		Team  int32
	}
	olderPack struct {
		Name  string
		Codes []uint8
		Stock map[int16]olderItem
		Slots [2]int32
		Best  *olderItem
	}
	olderItem struct {
		Count uint8
		Worn  bool
	}
	olderArmor  struct{ Points int16 }
	olderHealth struct{ HP int32 }
	olderHeat   struct{ Degrees int32 }
	olderRules  struct {
		Name  string
		Limit uint16
	}
)

func cloneOlderPack(p olderPack) olderPack { return p } // Nothing of it is changed in place.

// olderWorld is a world of that program.
type olderWorld struct {
	*ecs.World
	unit   *ecs.Storage[olderUnit]
	pack   *ecs.Storage[olderPack]
	armor  *ecs.Storage[olderArmor]
	health *ecs.Storage[olderHealth]
	heat   *ecs.Storage[olderHeat]
	rules  *ecs.Resource[olderRules]
}

func newOlderWorld() *olderWorld {
	w := ecs.NewWorld(ecs.Options{History: 4})
	return &olderWorld{
		World:  w,
		unit:   ecs.MustRegister[olderUnit](w, ecs.Named("unit")),
		pack:   ecs.MustRegister[olderPack](w, ecs.Named("pack"), ecs.CloneWith(cloneOlderPack)),
		armor:  ecs.MustRegister[olderArmor](w, ecs.Named("armor"), ecs.Stored(ecs.Indexed), ecs.Default(olderArmor{5})),
		health: ecs.MustRegister[olderHealth](w, ecs.Named("health")),
		heat:   ecs.MustRegister[olderHeat](w, ecs.Named("heat"), ecs.NoRewind()),
		rules:  ecs.MustRegisterResource(w, olderRules{"fair", 9}, ecs.Named("rules")),
	}
}

// play makes five entities, of which the second is destroyed at the end.
func (w *olderWorld) play(commit func()) {
	var made []ecs.Entity
	for i := range 5 {
		e := w.Create()
		made = append(made, e)
		w.unit.Set(e, olderUnit{int16(-100 * i), uint8(250 + i), float32(i) / 2, uint16(i), int32(i)})
		w.health.Set(e, olderHealth{int32(10 * i)})
		if i%2 == 0 {
			w.armor.Set(e, olderArmor{int16(i)})
			w.heat.Set(e, olderHeat{int32(-i)})
		}
		commit()
	}
	w.pack.Set(made[2], olderPack{
		"sack", []uint8{0, 255}, map[int16]olderItem{-1: {1, true}, 300: {255, false}}, [2]int32{7, -8}, &olderItem{3, true},
	})
	w.pack.Set(made[4], olderPack{})
	*w.rules.Mut() = olderRules{"hard", 65535}
	commit()
	w.Destroy(made[1])
	commit()
}

func writeOlder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	w := newOlderWorld()
	s, err := Open(background, dir, w.World, Options{SnapshotBytes: -1})
	require.NoError(t, err)
	n := 0
	w.play(func() {
		require.NoError(t, s.Commit())
		if n++; n == 4 {
			_, err := s.Snapshot(background)
			require.NoError(t, err)
		}
	})
	require.NoError(t, Save(background, olderSave, w.World))
	closeStore(t, s)
	tree := readTree(t, dir)
	delete(tree, lockFile)
	writeTree(t, olderStore, tree)
}

func TestWhatOlderTypesWroteIsThere(t *testing.T) {
	if _, err := os.Stat(olderStore); *update && os.IsNotExist(err) {
		require.NoError(t, os.MkdirAll(filepath.Dir(olderStore), 0o700))
		writeOlder(t)
	}
	require.Len(t, readTree(t, olderStore), 5) // Two directories, two snapshots, a segment.
}
