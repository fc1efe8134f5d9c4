package persist_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/stet-ecs/stet/persist/internal/storetest"
)

func TestRandomPrograms_RecoverEveryRecord(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		s := storetest.NewSession(rt, rapid.SampledFrom(storetest.Histories).Draw(rt, "history"))
		steps := rapid.IntRange(1, 60).Draw(rt, "steps")
		for range steps {
			s.Step(rt)
		}
		s.Finish()
	})
}
