package persist

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/journal"
)

var kills = flag.Int("kills", 4, "how many processes TestKilledProcesses kills for each policy")

// The test binary runs as one of these children if the environment says so.
var children = map[string]func(dir, argument string) error{
	"tick": tickForever,
	"hold": holdStore,
}

const (
	childVariable    = "PERSIST_TEST_CHILD"
	dirVariable      = "PERSIST_TEST_DIR"
	argumentVariable = "PERSIST_TEST_ARGUMENT"
)

func TestMain(m *testing.M) {
	flag.Parse()
	if child, ok := children[os.Getenv(childVariable)]; ok {
		if err := child(os.Getenv(dirVariable), os.Getenv(argumentVariable)); err != nil {
			fmt.Println("failed", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	flag.Set("rapid.nofailfile", "true") // The seed is in the output.
	os.Exit(m.Run())
}

func startChild(t testing.TB, name, dir, argument string) *child {
	t.Helper()
	c := &child{cmd: exec.Command(os.Args[0])}
	c.cmd.Env = append(os.Environ(), childVariable+"="+name, dirVariable+"="+dir, argumentVariable+"="+argument)
	c.cmd.Stdout = &c.out
	c.cmd.Stderr = os.Stderr
	require.NoError(t, c.cmd.Start())
	return c
}

// A child is a process and what it wrote so far.
type child struct {
	cmd *exec.Cmd
	out output
}

type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

// lines returns the whole lines written so far.
func (o *output) lines() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	lines := strings.Split(o.b.String(), "\n")
	return lines[:len(lines)-1]
}

// await waits until n lines begin with word.
func (c *child) await(t testing.TB, word string, n int) {
	t.Helper()
	require.Eventually(t, func() bool { return len(c.said(word)) >= n }, 30*time.Second, time.Millisecond, word)
}

// said returns the rest of the lines that begin with word.
func (c *child) said(word string) (rest []string) {
	for _, line := range c.out.lines() {
		if after, ok := strings.CutPrefix(line, word+" "); ok {
			rest = append(rest, after)
		}
	}
	return rest
}

func (c *child) kill(t testing.TB) {
	t.Helper()
	require.NoError(t, c.cmd.Process.Kill())
	_ = c.cmd.Wait()
}

// tickForever commits random ticks. It says "open" with the digest it found,
// "commit" with the digest of a tick before it commits it, and "durable" when it
// is told so.
func tickForever(dir, argument string) error {
	policy, number, _ := strings.Cut(argument, " ")
	n, err := strconv.ParseUint(number, 10, 64)
	if err != nil {
		return err
	}
	sync := map[string]journal.SyncPolicy{"always": journal.SyncAlways(), "every": journal.SyncEvery(3 * time.Millisecond)}[policy]
	say := func(format string, args ...any) { fmt.Fprintf(os.Stdout, format+"\n", args...) }
	w := newTestWorld(5)
	s, err := Open(background, dir, w.World, Options{
		Sync: sync, SnapshotBytes: 5000,
		OnDurable: func(uint64) { say("durable .") },
	})
	if err != nil {
		return err
	}
	say("open %v", persistent(w.World))
	rng := rand.New(rand.NewPCG(n, 1))
	for {
		w.do(randomActions(rng, 20)...)
		w.seed.Set(seed(rng.Uint64()))
		next := w.Clone()
		next.Commit()
		say("commit %v", persistent(next))
		if err := s.Commit(); err != nil {
			return err
		}
		if rng.IntN(6) == 0 {
			_ = w.History().Rewind(1 + rng.IntN(3))
		}
	}
}

func TestKilledProcessesLoseNothingThatWasDurable(t *testing.T) {
	for _, policy := range []string{"always", "every"} {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "store")
			seed := rand.Uint64()
			t.Log("seed", seed)
			rng := rand.New(rand.NewPCG(seed, 0))
			found := ""
			for i := range *kills {
				c := startChild(t, "tick", dir, fmt.Sprint(policy, " ", seed+uint64(i)))
				c.await(t, "durable", 1+rng.IntN(20))
				time.Sleep(time.Duration(rng.IntN(5_000)) * time.Microsecond)
				c.kill(t)
				require.Empty(t, c.said("failed"))
				if i > 0 {
					require.Equal(t, []string{found}, c.said("open"))
				}
				found = afterKill(t, dir, c)
			}
		})
	}
}

// afterKill returns the digest of the state that a killed process left behind.
func afterKill(t *testing.T, dir string, c *child) string {
	v := verified(t, dir)
	im, err := v.At(background, v.Head())
	require.NoError(t, err)
	found := im.Digest().String()
	commits, durable := c.said("commit"), len(c.said("durable"))
	for i, digest := range commits {
		if digest == found {
			require.GreaterOrEqual(t, i+1, durable, "commit %d of %d came back, %d were durable", i+1, len(commits), durable)
			return found
		}
	}
	t.Fatalf("digest %s is that of none of %d commits, %d of them durable", found, len(commits), durable)
	return ""
}

// holdStore opens a store and says so, then waits to be killed.
func holdStore(dir, _ string) error {
	w := newTestWorld(0)
	s, err := Open(background, dir, w.World, Options{})
	if err != nil {
		return err
	}
	w.fill(3)
	if err := s.Commit(); err != nil {
		return err
	}
	if err := s.Sync(background); err != nil {
		return err
	}
	fmt.Println("holding", os.Getpid())
	_, err = bufio.NewReader(os.Stdin).ReadString('\n')
	time.Sleep(time.Hour)
	return err
}
