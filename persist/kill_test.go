package persist_test

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
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

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
	"github.com/stet-ecs/stet/persist/internal/storetest"
)

var (
	kills    = flag.Int("kills", 4, "how many processes TestKilledProcess_DurableTicksStay kills for each policy")
	killSeed = flag.Uint64("killseed", 0, "the seed of TestKilledProcess_DurableTicksStay; 0: a new one")
)

// The test binary runs one of these children if an environment variable names it.
var children = map[string]func(dir, argument string) error{
	"tick": tickForever,
	"hold": holdStore,
	"slot": saveForever,
}

const (
	childVariable    = "PERSIST_TEST_CHILD"
	dirVariable      = "PERSIST_TEST_DIR"
	argumentVariable = "PERSIST_TEST_ARGUMENT"
)

func TestMain(m *testing.M) {
	flag.Set("rapid.checks", "40") // The command line may set more.
	flag.Parse()
	if child, ok := children[os.Getenv(childVariable)]; ok {
		if err := child(os.Getenv(dirVariable), os.Getenv(argumentVariable)); err != nil {
			fmt.Println("failed", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	flag.Set("rapid.nofailfile", "true") // No failure file is needed: the seed is in the output.
	os.Exit(m.Run())
}

func startChild(t testing.TB, name, dir, argument string) *child {
	t.Helper()
	c := newChild(name, dir, argument)
	c.cmd.Stdout = &c.out
	c.cmd.Stderr = os.Stderr
	require.NoError(t, c.cmd.Start())
	return c
}

func newChild(name, dir, argument string) *child {
	c := &child{cmd: exec.Command(os.Args[0])}
	c.cmd.Env = append(os.Environ(), childVariable+"="+name, dirVariable+"="+dir, argumentVariable+"="+argument)
	return c
}

// A child is a process and its output so far.
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

// lines returns the complete lines written so far.
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

// said returns the rest of each line that begins with word.
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

// tickForever runs a store without end: random ticks, rewinds, snapshots, syncs and closes. It
// prints "open" with the recovered digest. Before a state can be recovered, it prints "commit" with
// the digest of the state. It prints "durable" when OnDurable is called, in the order of the
// commits.
func tickForever(dir, argument string) error {
	policy, number, _ := strings.Cut(argument, " ")
	n, err := strconv.ParseUint(number, 10, 64)
	if err != nil {
		return err
	}
	l := life{rng: rand.New(rand.NewPCG(n, 1)), dir: dir, sync: map[string]time.Duration{
		"always": journal.SyncAlways, "every": 3 * time.Millisecond,
	}[policy]}
	if err := l.open(); err != nil {
		return err
	}
	say("open", storetest.Persistent(l.world.World))
	for {
		if err := l.tick(); err != nil {
			return err
		}
	}
}

func say(word string, digest ecs.Digest) { fmt.Fprintf(os.Stdout, "%s %v\n", word, digest) }

// A life is the program that uses a store in one process.
type life struct {
	rng   *rand.Rand
	dir   string
	sync  time.Duration
	world *storetest.World
	store *persist.Store
}

func (l *life) open() (err error) {
	l.world = storetest.New(5)
	l.store, err = persist.Open(storetest.Background, l.dir, l.world.World, persist.Segmented(persist.Options{
		Sync: l.sync, SnapshotBytes: 5000,
		OnDurable: func(uint64) { say("durable", 0) },
	}, 8000))
	return err
}

func (l *life) tick() (err error) {
	l.world.Do(storetest.RandomActions(l.rng, 20)...)
	l.world.Seed.Set(storetest.Seed(l.rng.Uint64())) // No two states are equal.
	next := l.world.Clone()
	next.Commit()
	say("commit", storetest.Persistent(next))
	if err := l.store.Commit(); err != nil {
		return err
	}
	switch l.rng.IntN(40) {
	case 0, 1, 2, 3, 4, 5:
		_ = l.world.History().Rewind(1 + l.rng.IntN(3))
	case 6:
		_, err = l.store.Snapshot(storetest.Background)
	case 7:
		err = l.store.Sync(storetest.Background)
	case 8:
		err = l.reopen()
	}
	return err
}

// reopen closes and opens the store. Closing makes the present state durable, even if a rewind led
// to it and no tick followed.
func (l *life) reopen() error {
	l.world.ReleaseAll()
	digest := storetest.Persistent(l.world.World)
	say("commit", digest)
	if err := l.store.Close(storetest.Background); err != nil {
		return err
	}
	say("durable", digest)
	if err := l.open(); err != nil {
		return err
	}
	if found := storetest.Persistent(l.world.World); found != digest {
		return fmt.Errorf("closed with digest %v, opened with %v", digest, found)
	}
	return nil
}

// promises holds what the processes reported about a store. It determines which states may be
// recovered.
type promises struct {
	states  []string // Digests of the last recovered state and of all later commits.
	durable int      // Index of the oldest state that may be recovered.
	begun   bool     // A process has reported that the store exists.
}

// noPromises returns the promises for a store that no process has reported to exist. A recovery may
// find no store, or create an empty world.
func noPromises() promises {
	return promises{states: []string{storetest.Persistent(storetest.New(5).World).String()}}
}

// hear reads the lines that a process printed. Only the first seen lines are promises that the
// store exists or that a state is durable.
func (p *promises) hear(t testing.TB, lines []string, seen int) {
	for i, line := range lines {
		switch word, digest, _ := strings.Cut(line, " "); word {
		case "open":
			p.begun = p.begun || i < seen
			require.Equal(t, p.states[0], digest, "the child opened another state than the test read")
		case "commit":
			p.states = append(p.states, digest)
		case "durable":
			if i < seen {
				p.durable++
			}
		default:
			t.Fatalf("a process printed %q", line)
		}
	}
}

// check checks the store in dir after its process has ended.
func (p *promises) check(t testing.TB, dir string) {
	t.Helper()
	digest, err := wholeDigest(dir)
	if err != nil && !p.begun {
		*p = noPromises() // The creation of the store was interrupted.
		return
	}
	require.NoError(t, err)
	// reopen adds the state of the last commit again. So use the last position of the digest.
	i := len(p.states) - 1
	for i >= 0 && p.states[i] != digest {
		i--
	}
	require.NotEqual(t, -1, i, "digest %s belongs to none of %d states, %d of them durable", digest, len(p.states), p.durable)
	require.GreaterOrEqual(t, i, p.durable, "state %d of %d was recovered, %d were durable", i, len(p.states), p.durable)
	*p = promises{states: []string{digest}, begun: true}
}

// wholeDigest verifies a store completely and returns the digest of the state that Open recovers.
func wholeDigest(dir string) (string, error) {
	v, err := inspect.OpenReadOnly(storetest.Background, dir)
	if err != nil {
		return "", err
	}
	defer v.Close()
	im, err := v.At(storetest.Background, v.Head())
	if err != nil {
		return "", err
	}
	r, err := v.Verify(storetest.Background)
	return im.Digest().String(), errors.Join(append(r.Problems, err)...)
}

// killsPerStore is how many processes use a store before the next store is created.
const killsPerStore = 20

// A killed process loses no tick that it reported as durable. Every third process is killed some
// time after its start, possibly during creation or recovery. The others are killed after some
// ticks.
func TestKilledProcess_DurableTicksStay(t *testing.T) {
	for _, policy := range []string{"always", "every"} {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			seed := cmp.Or(*killSeed, rand.Uint64())
			t.Logf("-killseed %d", seed)
			rng := rand.New(rand.NewPCG(seed, 0))
			var p promises
			var dir string
			sum := map[string]int{}
			for i := range *kills {
				if i%killsPerStore == 0 {
					dir, p = filepath.Join(t.TempDir(), "store"), noPromises()
				}
				c := startChild(t, "tick", dir, fmt.Sprint(policy, " ", seed+uint64(i)))
				if rng.IntN(3) == 0 {
					time.Sleep(time.Duration(rng.IntN(60_000)) * time.Microsecond)
				} else {
					c.await(t, "durable", 1+rng.IntN(20))
					time.Sleep(time.Duration(rng.IntN(5_000)) * time.Microsecond)
				}
				c.kill(t)
				lines := c.out.lines()
				p.hear(t, lines, len(lines))
				for _, line := range lines {
					word, _, _ := strings.Cut(line, " ")
					sum[word]++
				}
				p.check(t, dir)
			}
			t.Logf("%d killed: %d had opened, %d states announced, %d durable", *kills, sum["open"], sum["commit"], sum["durable"])
		})
	}
}

// holdStore opens a store, prints a line, and waits to be killed.
func holdStore(dir, _ string) error {
	w := storetest.New(0)
	s, err := persist.Open(storetest.Background, dir, w.World, persist.Options{})
	if err != nil {
		return err
	}
	w.Fill(3)
	if err := s.Commit(); err != nil {
		return err
	}
	if err := s.Sync(storetest.Background); err != nil {
		return err
	}
	fmt.Println("holding", os.Getpid())
	_, err = bufio.NewReader(os.Stdin).ReadString('\n')
	time.Sleep(time.Hour)
	return err
}
