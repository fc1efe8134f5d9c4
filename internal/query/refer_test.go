package query

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
)

// A pointer to an entity works like an entity in a field. A nil pointer refers to no entity.
func TestReference_ThroughPointer(t *testing.T) {
	type follower struct {
		Boss *ecs.Entity
		All  []*ecs.Entity
		Far  **ecs.Entity
	}
	type health struct{ N int }
	w := ecs.NewWorld(ecs.Options{})
	followers := ecs.MustRegister(w, ecs.Component[follower]{Name: "Follower"})
	healths := ecs.MustRegister(w, ecs.Component[health]{Name: "Health"})
	tags := ecs.MustRegister(w, ecs.Component[struct{}]{Name: "Dead"})
	leaders := ecs.MustRegister(w, ecs.Component[*ecs.Entity]{Name: "Leader"})
	boss, gone := w.Create(), w.Create()
	healths.Set(boss, health{7})
	tags.Set(boss, struct{}{})
	far, none := &boss, (*ecs.Entity)(nil)
	var all []ecs.Entity
	for _, f := range []follower{{&boss, []*ecs.Entity{&boss, nil}, &far}, {nil, []*ecs.Entity{nil, nil}, &none}, {&gone, []*ecs.Entity{&gone, &gone}, nil}} {
		e := w.Create()
		followers.Set(e, f)
		leaders.Set(e, f.Boss)
		all = append(all, e)
	}
	w.Destroy(gone)
	file := filepath.Join(t.TempDir(), "test.save")
	require.NoError(t, persist.Save(context.Background(), file, w))
	v, err := inspect.OpenReadOnly(context.Background(), file)
	require.NoError(t, err)
	defer v.Close()
	im, err := v.At(context.Background(), 0)
	require.NoError(t, err)
	for text, want := range map[string][3]string{
		`Follower.Boss`:                     {"0v1", "-", "1v1"},
		`Follower.Boss == "0v1"`:            {"true", "false", "false"},
		`Follower.Boss == nil`:              {"false", "true", "false"},
		`Follower.Boss.Health`:              {"{N:7}", "-", "-"},
		`Follower.Boss.Health.N`:            {"7", "-", "-"},
		`Follower.Boss.Health.N > 3`:        {"true", "false", "false"},
		`not (Follower.Boss.Health.N > 3)`:  {"false", "true", "true"},
		`Follower.Boss.Health == nil`:       {"false", "true", "true"},
		`(Follower.Boss.Health.N ?? 2) + 1`: {"8", "3", "3"},
		`Follower.Boss.Dead`:                {"true", "false", "false"},
		`Follower.All[0].Health.N`:          {"7", "-", "-"},
		`Follower.All[1].Health.N`:          {"-", "-", "-"},
		`Follower.Far.Health.N`:             {"7", "-", "-"},
		`Leader.Health.N`:                   {"7", "-", "-"},
		`exists(Follower.Boss)`:             {"true", "false", "false"},
		`exists(Follower.Far)`:              {"true", "false", "false"},
		`not exists(Leader)`:                {"false", "true", "true"},
	} {
		x, err := Compile(im, "test", text, WantValue)
		require.NoError(t, err, text)
		var got [3]string
		for i, e := range all {
			answer, err := x.Of(e)
			require.NoError(t, err, "%s of %v", text, e)
			got[i] = answer.String()
		}
		assert.Equal(t, want, got, text)
	}
	_, err = Compile(im, "test", `Follower.Boss.Helth`, WantValue)
	assert.EqualError(t, err, `test: no component "Helth" after an entity; did you mean Health?`)
}
