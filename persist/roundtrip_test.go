package persist_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/stet-ecs/stet/persist/internal/storetest"
)

func TestRandomProgramsComeBackAtEveryRecord(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	runs := 0
	rapid.Check(t, func(rt *rapid.T) {
		runs++
		s := storetest.NewSession(rt, fmt.Sprintf("%s/%d", root, runs), rapid.SampledFrom(storetest.Histories).Draw(rt, "history"))
		steps := rapid.IntRange(1, 60).Draw(rt, "steps")
		for range steps {
			s.Step(rt)
		}
		s.Finish()
	})
}
