package main

import (
	"context"
	"os"
	"testing"

	"github.com/stet-ecs/stet/persist"
)

// asProgram is an environment variable. If it is set, the test binary runs as the program, so that
// tests can start and kill such processes. The tour also starts such a process.
const asProgram = "STET_LIFE_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	os.Exit(m.Run())
}

// reopen recovers a directory, and closes it at the end of the test.
func reopen(t *testing.T, dir string) *game {
	t.Helper()
	life := NewLife(0)
	store, err := persist.Open(context.Background(), dir, life.World, persist.Options{})
	if err != nil {
		t.Fatal(err)
	}
	g := &game{Life: life, dir: dir, store: store}
	t.Cleanup(func() {
		if err := g.close(); err != nil {
			t.Error(err)
		}
	})
	return g
}
