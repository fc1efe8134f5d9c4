package persist

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

func TestRandomProgramsComeBackAtEveryRecord(t *testing.T) {
	root := t.TempDir()
	runs := 0
	rapid.Check(t, func(rt *rapid.T) {
		runs++
		s := newSession(rt, fmt.Sprintf("%s/%d", root, runs), rapid.SampledFrom(histories).Draw(rt, "history"))
		steps := rapid.IntRange(1, 60).Draw(rt, "steps")
		for range steps {
			s.step(rt)
		}
		s.finish()
	})
}
