//go:build unix

package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist"
)

var (
	kills    = flag.Int("kills", 20, "how many times TestKill_DurableGenerationsRemain kills the program")
	killSeed = flag.Uint64("killseed", 0, "the seed of TestKill_DurableGenerationsRemain; 0: a new one")
)

// TestKill_DurableGenerationsRemain kills the program at random moments: during its start or
// recovery, between ticks and within ticks. Each run continues in the directory that the killed run
// left. The test recovers a copy of the directory after each run.
func TestKill_DurableGenerationsRemain(t *testing.T) {
	seed := *killSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("-killseed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	want := &digests{life: newLife(t, "r-pentomino", 0)}
	policies := []string{"always", "never", "1ms", "10ms"}

	dir := t.TempDir()
	reached := uint64(0)
	for round := range *kills {
		k := killing{
			dir:       dir,
			policy:    policies[random.IntN(len(policies))],
			delay:     time.Duration(random.Int64N(int64(50 * time.Millisecond))),
			fromStart: random.IntN(3) == 0,
		}
		durable := k.run(t)
		recovered := checkRecovery(t, fmt.Sprintf("round %d, %+v", round, k), dir, durable, want)
		if recovered < reached {
			t.Fatalf("round %d, %+v: recovered generation %d after %d", round, k, recovered, reached)
		}
		reached = recovered
	}
	if reached == 0 {
		t.Errorf("killed %d times, all before generation 1, so nothing was tested", *kills)
	}
	t.Logf("killed %d times, reached generation %d", *kills, reached)
}

// A killing is a run of the program that is killed.
type killing struct {
	dir    string
	policy string
	delay  time.Duration
	// If true, the delay begins when the process starts. If false, it begins at the first printed
	// line.
	fromStart bool
}

// run returns the last generation that the program reported as durable, or 0.
func (k killing) run(t *testing.T) (durable uint64) {
	t.Helper()
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	child := exec.Command(executable, "-dir", k.dir, "-generations", "1000000", "-sync", k.policy, "-acks")
	child.Env = append(os.Environ(), asProgram+"=1")
	child.Stderr = &stderr
	lines, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	arm := sync.OnceFunc(func() { time.AfterFunc(k.delay, func() { child.Process.Kill() }) })
	if k.fromStart {
		arm()
	}
	readAcks(lines, func(generation uint64) {
		arm()
		durable = generation
	})
	if err := child.Wait(); err == nil || stderr.Len() > 0 {
		t.Fatalf("%+v: the program ended before it was killed: %v, %s", k, err, &stderr)
	}
	return durable
}

// checkRecovery recovers a copy of dir, compares it with an uninterrupted run, and returns its
// generation.
func checkRecovery(t *testing.T, at, dir string, durable uint64, want *digests) uint64 {
	t.Helper()
	copied := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	life := NewLife(0)
	store, err := persist.Open(context.Background(), copied, life.World, persist.Options{})
	if err != nil {
		t.Fatalf("%s: recovery: %v", at, err)
	}
	defer store.Close(t.Context())
	if store.Report().Fresh && durable == 0 {
		return 0 // The program was killed before it wrote a world.
	}
	if life.Generation() < durable {
		t.Fatalf("%s: generation %d was durable, but only %d was recovered", at, durable, life.Generation())
	}
	if got, want := life.World.Digest(), want.at(t, life.Generation()); got != want {
		t.Fatalf("%s: recovered %v, want digest %v", at, life, want)
	}
	return life.Generation()
}

// digests computes the digest of every generation of an uninterrupted run.
type digests struct {
	life  *Life
	known []ecs.Digest
}

func (d *digests) at(t *testing.T, generation uint64) ecs.Digest {
	t.Helper()
	for next := uint64(len(d.known)); next <= generation; next++ {
		runTo(t, d.life, next)
		d.known = append(d.known, d.life.World.Digest())
	}
	return d.known[generation]
}
