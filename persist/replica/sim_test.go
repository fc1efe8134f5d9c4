package replica_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stet-ecs/stet/disk/disktest"
	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/internal/storetest"
	"github.com/stet-ecs/stet/persist/replica"
	"github.com/stet-ecs/stet/persist/replica/replicatest"
)

var (
	simSeed = flag.Uint64("sim.seed", 1, "seed of the first simulated program")
	simRuns = flag.Int("sim.runs", 0, "simulated programs; 0: a few")
)

// Machines follow a log, claim, write, lose their links, crash and restart. The package keeps its
// promises for everything that a Log may do.
func TestSimulatedMachines(t *testing.T) {
	runs := *simRuns
	if runs == 0 {
		runs = 40
	}
	var sum simCounts
	var mu sync.Mutex
	var all crowd // Simulations wait most of the time, so more of them run than there are CPUs.
	for i := range runs {
		all.Go(func() {
			seed := *simSeed + uint64(i)
			s := newSim(seed)
			err := s.run(40)
			mu.Lock()
			defer mu.Unlock()
			sum.add(s.simCounts)
			if err != nil {
				t.Errorf("-sim.seed %d -sim.runs 1: %v\n%s", seed, err, strings.Join(s.told, "\n"))
			}
		})
	}
	all.Wait()
	t.Logf("%d programs from seed %d: %+v", runs, *simSeed, sum)
	for what, n := range map[string]int{"claims": sum.Claims, "confirmed": sum.Confirmed, "fenced": sum.Fenced, "aside": sum.Aside, "rebuilt": sum.Rebased, "forgotten": sum.Forgotten, "handed over": sum.Handed} {
		if n == 0 {
			t.Errorf("the simulations had no event of kind %q", what)
		}
	}
}

// A crowd runs a limited number of functions in parallel.
type crowd struct {
	sync.WaitGroup
	once  sync.Once
	slots chan struct{}
}

func (g *crowd) Go(f func()) {
	g.once.Do(func() { g.slots = make(chan struct{}, 24) })
	g.slots <- struct{}{}
	g.WaitGroup.Go(func() {
		f()
		<-g.slots
	})
}

// simCounts counts the events of a simulation.
type simCounts struct {
	Claims, Taken, Commits, Confirmed, Fenced, Crashes, Aside, Rebased, Forgotten, Handed, Compared int
}

func (c *simCounts) add(d simCounts) {
	c.Claims += d.Claims
	c.Taken += d.Taken
	c.Commits += d.Commits
	c.Confirmed += d.Confirmed
	c.Fenced += d.Fenced
	c.Crashes += d.Crashes
	c.Aside += d.Aside
	c.Rebased += d.Rebased
	c.Forgotten += d.Forgotten
	c.Handed += d.Handed
	c.Compared += d.Compared
}

// A sim is a simulation of a few machines with a log.
type sim struct {
	simCounts
	rng   *rand.Rand
	log   *replicatest.Log
	nodes []*simNode
	ticks int
	told  []string
	// For each committed state, the state of the commit before it.
	parent map[ecs.Digest]ecs.Digest
	// The confirmed states in order. Each state descends from all earlier ones.
	states []ecs.Digest
	named  map[string]bool  // Names of the files in the log, up to the entry seen.
	seen   replica.Position // The last entry that was searched for new file names.

	patience time.Duration // How long to wait for a log that may not answer.
}

// A simNode is a machine. It is down, follows, or owns a store.
type simNode struct {
	n        int
	mem      *disktest.Mem
	link     *replicatest.Link
	follower *replica.Follower
	owner    *replica.Owner
	store    *persist.Store
	world    *storetest.World
	shorter  int
	wrote    bool // Whether it was an owner since its last Follow.
}

func newSim(seed uint64) *sim {
	s := &sim{rng: rand.New(rand.NewPCG(seed, 5)), log: &replicatest.Log{}, parent: map[ecs.Digest]ecs.Digest{}, named: map[string]bool{}, patience: 100 * time.Millisecond}
	for n := range 3 {
		s.nodes = append(s.nodes, &simNode{n: n, mem: disktest.New(), link: s.log.Link(seed<<8 + uint64(n))})
	}
	return s
}

func (s *sim) say(format string, args ...any) { s.told = append(s.told, fmt.Sprintf(format, args...)) }

// patiently returns a context that ends when the log is unlikely to answer any more.
func (s *sim) patiently() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), s.patience)
}

func (s *sim) run(steps int) error {
	defer func() {
		for _, n := range s.nodes {
			n.halt()
		}
	}()
	for range steps {
		if err := s.step(s.nodes[s.rng.IntN(len(s.nodes))]); err != nil {
			return err
		}
		if s.rng.IntN(3) == 0 {
			s.log.Settle()
		}
		s.see()
	}
	return s.end()
}

// see records the names of new files in the log.
func (s *sim) see() {
	first, last, _ := s.log.Bounds(context.Background())
	if first == 0 || s.seen >= last {
		return
	}
	for e := range s.log.Entries(context.Background(), s.seen) {
		for _, name := range replica.Named(e.Data) {
			s.named[name] = true
		}
		if s.seen = e.Position; e.Position == last {
			return
		}
	}
}

// step makes a machine execute a random action.
func (s *sim) step(n *simNode) error {
	switch k := s.rng.IntN(20); {
	case k == 0:
		cut := s.rng.IntN(2) == 0
		s.say("machine %d: cut %v", n.n, cut)
		n.link.Cut(cut)
	case k == 1:
		f := replicatest.Faults{Refused: s.rng.Float64() / 3, Lost: s.rng.Float64() / 3, Late: s.rng.Float64() / 3}
		if s.rng.IntN(2) == 0 {
			f = replicatest.Faults{}
		}
		s.say("machine %d: %+v", n.n, f)
		n.link.Fail(f)
	case k < 4 && (n.follower != nil || n.owner != nil):
		return s.crash(n)
	case n.owner != nil:
		return s.own(n)
	case n.follower != nil:
		return s.follow(n)
	default:
		return s.begin(n)
	}
	return nil
}

// halt stops following or owning, and closes the store of a machine.
func (n *simNode) halt() {
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if n.store != nil {
		n.world.ReleaseAll()
		_ = n.store.Close(ctx)
	}
	if n.owner != nil {
		_ = n.owner.Close()
		if n.store != nil {
			_ = n.store.Close(context.Background()) // No call waits for the log any more.
		}
	}
	if n.follower != nil {
		_ = n.follower.Close()
	}
	n.follower, n.owner, n.store, n.world = nil, nil, nil, nil
}

// crash stops a machine in one of three ways: its process is killed, the machine loses power and
// unsynced data, or it stops cleanly.
func (s *sim) crash(n *simNode) error {
	s.Crashes++
	var mem *disktest.Mem
	kind := s.rng.IntN(4)
	switch kind {
	case 0:
		mem = n.mem.Clone()
	case 1:
		mem = n.mem.Crash()
	case 2:
		mem = n.mem.CrashSeed(s.rng.Uint64())
	}
	n.halt()
	if mem != nil {
		n.mem = mem
	}
	s.say("machine %d ends, %d", n.n, kind)
	return nil
}

// begin makes a machine follow. Bytes that it wrote and the log does not have must be quarantined.
func (s *sim) begin(n *simNode) error {
	had := map[string][]byte{}
	for _, name := range n.mem.Files() {
		if file, ok := strings.CutPrefix(name, "store/"); ok && file != "LOCK" && file != "BALLAST" && !strings.HasSuffix(name, ".tmp") {
			had[file] = n.mem.Bytes(name)
		}
	}
	ctx, cancel := s.patiently()
	defer cancel()
	f, err := replica.Follow(ctx, n.link, n.mem, replica.Options{Name: fmt.Sprint(n.n), OnShorter: func(*replica.ShorterError) { n.shorter++ }}.Patient(50*time.Millisecond))
	s.say("machine %d follows: %v", n.n, err)
	if errors.Is(err, replica.ErrUnknown) || errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	if err != nil {
		return err
	}
	n.follower = f
	if dir, _ := f.Aside(); dir != "" {
		s.Aside++
	}
	if !f.Ready() {
		return nil
	}
	if !n.wrote {
		// This machine was not the owner, so it had only bytes of the log. It may have lost some of
		// them in a crash.
		return nil
	}
	n.wrote = false
	// Read the file names in the log. A file may be missing now if the log names it: a late entry
	// has named the file, and a new owner has removed it.
	s.see()
	for name, content := range had {
		now := n.mem.Bytes("store/" + name)
		kept := bytes.HasPrefix(now, content) || setAside(n.mem, name, content, now)
		if !kept && (now != nil || !s.named[name]) {
			return fmt.Errorf("machine %d: bytes written to %s are neither in the store nor in quarantine: %d bytes, now %d", n.n, name, len(content), len(now))
		}
	}
	return nil
}

// setAside reports whether one quarantine directory restores the content of a file. The last
// argument has the bytes of the file in the store. The directory has either the complete file, or
// parts that continue these bytes.
func setAside(m *disktest.Mem, name string, content, now []byte) bool {
	parts := map[string]map[int][]byte{} // Quarantined bytes, by directory and offset.
	for _, file := range m.Files() {
		dir, rest, _ := strings.Cut(strings.TrimPrefix(file, "aside/"), "/")
		rest, offset, isPart := strings.Cut(rest, ".from-")
		if !strings.HasPrefix(file, "aside/") || rest != name {
			continue
		}
		from, err := strconv.Atoi(offset)
		if isPart && err != nil {
			continue
		}
		if parts[dir] == nil {
			parts[dir] = map[int][]byte{}
		}
		parts[dir][from] = m.Bytes(file)
	}
	for _, p := range parts {
		froms := slices.Sorted(maps.Keys(p))
		joined := slices.Clone(now[:min(len(now), froms[0])])
		for _, from := range froms {
			if from == len(joined) {
				joined = append(joined, p[from]...)
			}
		}
		if bytes.Equal(joined, content) {
			return true
		}
	}
	return false
}

// follow makes a following machine read or claim.
func (s *sim) follow(n *simNode) error {
	if err := n.follower.Err(); err != nil {
		return fmt.Errorf("machine %d does not follow: %w", n.n, err)
	}
	if s.rng.IntN(3) > 0 {
		return s.compare(n)
	}
	if err := s.claim(n); err != nil {
		return s.refused(err)
	}
	return s.opened(n)
}

// opened opens the store of an owner in a new world.
func (s *sim) opened(n *simNode) error {
	options := persist.Options{SnapshotBytes: []int64{-1, 500}[s.rng.IntN(2)]}
	w := storetest.New(0)
	if found, _ := n.owner.Files().ReadDir("snapshots"); len(found) == 0 {
		w.Fill(3)
	}
	return s.open(n, w, func(ctx context.Context) (*persist.Store, error) { return n.owner.Open(ctx, w.World, options) })
}

// claim makes a following machine the owner.
func (s *sim) claim(n *simNode) error {
	ctx, cancel := s.patiently()
	defer cancel()
	o, err := n.follower.Claim(ctx)
	s.say("machine %d claims: %v", n.n, err)
	if err != nil {
		return err
	}
	s.Claims++
	n.owner, n.follower, n.wrote = o, nil, true
	return nil
}

// refused returns err unless it is an expected error of a claim.
func (s *sim) refused(err error) error {
	switch {
	case errors.Is(err, replica.ErrTaken), errors.Is(err, replica.ErrUnfinished):
		s.Taken++
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, replica.ErrUnknown), errors.Is(err, persist.ErrClosed):
	default:
		return err
	}
	return nil
}

// handOver closes the store of an owner, and offers it to another machine. That machine has
// followed the store in a world, and continues with this world. Any step may fail.
func (s *sim) handOver(n *simNode) error {
	to := s.nodes[(n.n+1+s.rng.IntN(2))%len(s.nodes)]
	if to.follower == nil || !to.follower.Ready() {
		return nil
	}
	w := storetest.New(0)
	shown, err := persist.Follow(context.Background(), ".", w.World, persist.FileOptions{Files: to.follower.Files()})
	if err != nil {
		return nil // The store has no state yet.
	}
	ctx, cancel := s.patiently()
	defer cancel()
	n.world.ReleaseAll()
	if err = n.store.Close(ctx); err == nil {
		err = n.owner.Offer(ctx, fmt.Sprint(to.n))
	}
	s.say("machine %d offers to %d: %v", n.n, to.n, err)
	n.halt()
	if err != nil {
		return shown.Close()
	}
	select {
	case <-to.follower.Offered():
	case <-ctx.Done():
	}
	if err := s.claim(to); err != nil {
		return errors.Join(s.refused(err), shown.Close())
	}
	err = s.open(to, w, func(ctx context.Context) (*persist.Store, error) {
		return shown.Open(ctx, persist.Options{Epoch: to.owner.Epoch()})
	})
	if to.store != nil {
		s.Handed++
	}
	return err
}

// open opens the store of an owner by a call of f. The store must have all confirmed ticks.
func (s *sim) open(n *simNode, w *storetest.World, f func(context.Context) (*persist.Store, error)) error {
	ctx, cancel := s.patiently()
	defer cancel()
	o := n.owner
	// Open may wait for the log; Close ends that.
	stop := context.AfterFunc(ctx, func() { _ = o.Close() })
	store, err := f(ctx)
	stop()
	s.say("machine %d opens term %d: %v", n.n, n.owner.Term(), err)
	if err != nil {
		if errors.Is(err, persist.ErrCorrupt) || errors.Is(err, persist.ErrForeign) || errors.Is(err, persist.ErrNotFound) {
			return fmt.Errorf("machine %d opens: %w", n.n, err)
		}
		n.halt()
		return nil
	}
	n.store, n.world = store, w
	state := stateOf(w.World)
	if skipped := store.Report().Skipped; len(skipped) > 0 {
		return fmt.Errorf("machine %d: Open skipped damaged files: %w", n.n, errors.Join(skipped...))
	}
	if err := s.comes(state); err != nil {
		return fmt.Errorf("machine %d opened: %w", n.n, err)
	}
	s.states = append(s.states, state)
	return nil
}

// own makes an owner execute a random action.
func (s *sim) own(n *simNode) error {
	if n.store == nil {
		n.halt()
		return nil
	}
	if err := n.owner.Err(); err != nil {
		s.Fenced++
		s.say("machine %d: %v", n.n, err)
		n.halt()
		return nil
	}
	switch k := s.rng.IntN(10); {
	case k < 6:
		s.commit(n)
	case k == 6:
		return s.snapshot(n)
	case k == 7:
		ctx, cancel := s.patiently()
		defer cancel()
		o := n.owner
		stop := context.AfterFunc(ctx, func() { _ = o.Close() })
		err := n.owner.Rebase(ctx)
		stop()
		s.say("machine %d sends all: %v", n.n, err)
		if err == nil {
			s.Rebased++
		}
	case k == 8:
		return s.forget(n)
	case k == 9:
		return s.handOver(n)
	}
	return s.sync(n)
}

func (s *sim) commit(n *simNode) {
	for range 1 + s.rng.IntN(3) {
		before := stateOf(n.world.World)
		n.world.Do(storetest.RandomActions(s.rng, 1+s.rng.IntN(6))...)
		s.ticks++
		n.world.Seed.Set(storetest.Seed(s.ticks))
		_ = n.store.Commit()
		s.parent[stateOf(n.world.World)] = before
		s.Commits++
	}
}

func (s *sim) snapshot(n *simNode) error {
	ctx, cancel := s.patiently()
	defer cancel()
	_, err := n.store.Snapshot(ctx)
	s.say("machine %d: snapshot: %v", n.n, err)
	return nil
}

// sync syncs the store of an owner. The confirmed state must descend from all earlier confirmed
// states.
func (s *sim) sync(n *simNode) error {
	ctx, cancel := s.patiently()
	defer cancel()
	return s.syncUntil(ctx, n)
}

func (s *sim) syncUntil(ctx context.Context, n *simNode) error {
	err := n.store.Sync(ctx)
	s.say("machine %d: sync: %v", n.n, err)
	if err != nil {
		return nil
	}
	state := stateOf(n.world.World)
	if slices.Contains(s.states, state) {
		return nil // The state is confirmed already.
	}
	if err := s.comes(state); err != nil {
		return fmt.Errorf("machine %d: confirmed tick: %w", n.n, err)
	}
	s.states = append(s.states, state)
	s.Confirmed++
	return nil
}

// forget makes the log lose entries while the owner can append them again.
func (s *sim) forget(n *simNode) error {
	s.log.Settle()
	if err := s.sync(n); err != nil || n.owner.Err() != nil || s.sound(n) != nil {
		return err
	}
	before, shorter := n.owner.Position(), n.shorter
	if _, last, _ := s.log.Bounds(context.Background()); last != before {
		return nil // Another machine claimed the log.
	}
	s.log.Forget(1 + s.rng.IntN(2))
	n.link.Cut(false)
	n.link.Fail(replicatest.Faults{})
	s.commit(n)
	// The link works, so the sync must end. It may fail, because other machines may already use the
	// lost entries.
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := s.syncUntil(ctx, n); err != nil {
		return err
	}
	s.say("machine %d: the log lost entries: %v", n.n, n.owner.Err())
	if slices.Contains(s.states, stateOf(n.world.World)) && n.shorter == shorter {
		return fmt.Errorf("machine %d: OnShorter was not called after the log lost entries", n.n)
	}
	s.Forgotten++
	return nil
}

// sound returns an error if the owner does not reach the log.
func (s *sim) sound(n *simNode) error {
	ctx, cancel := s.patiently()
	defer cancel()
	_, _, err := n.link.Bounds(ctx)
	return err
}

// comes returns an error if a state does not descend from the last confirmed state.
func (s *sim) comes(state ecs.Digest) error {
	if len(s.states) == 0 {
		return nil
	}
	for at, ok := state, true; ok; at, ok = s.parent[at] {
		if at == s.states[len(s.states)-1] {
			return nil
		}
	}
	return fmt.Errorf("the state does not descend from confirmed state %d", len(s.states))
}

// compare compares the files of a follower with the files of a new follower. It also checks the
// state that these files contain.
func (s *sim) compare(n *simNode) error {
	mem := disktest.New()
	f, err := replica.Follow(context.Background(), s.log, mem, replica.Options{})
	if err != nil {
		return fmt.Errorf("new follower: %w", err)
	}
	defer f.Close()
	ctx, cancel := s.patiently()
	defer cancel()
	_ = n.follower.Wait(ctx, f.Position())
	if f.Position() != n.follower.Position() || !f.Ready() || !n.follower.Ready() {
		return nil
	}
	s.Compared++
	err = same(mem, n.mem)
	for range 20 { // Another machine may still be writing, so try several times.
		if err == nil {
			break
		}
		time.Sleep(5 * time.Millisecond)
		err = same(mem, n.mem)
	}
	if err != nil {
		return fmt.Errorf("machine %d and a new follower at entry %d: %w", n.n, f.Position(), err)
	}
	w := storetest.New(0)
	shown, err := persist.Follow(context.Background(), ".", w.World, persist.FileOptions{Files: n.follower.Files()})
	if errors.Is(err, persist.ErrNotFound) || errors.Is(err, persist.ErrForeign) && len(s.states) == 0 {
		return nil // The store has no state yet.
	}
	if err != nil {
		return fmt.Errorf("machine %d: the files have no readable state: %w", n.n, err)
	}
	defer shown.Close()
	if _, known := s.parent[stateOf(w.World)]; known {
		return s.comes(stateOf(w.World))
	}
	return nil
}

// same returns an error if the stores of two machines differ.
func same(a, b *disktest.Mem) error {
	has := func(m *disktest.Mem) map[string]bool {
		names := map[string]bool{}
		for _, name := range m.Files() {
			if file, ok := strings.CutPrefix(name, "store/"); ok && !strings.HasSuffix(name, ".tmp") && file != "LOCK" && file != "BALLAST" {
				names[name] = true
			}
		}
		return names
	}
	left, right := has(a), has(b)
	for name := range left {
		if !right[name] {
			return fmt.Errorf("%s is missing", name)
		}
		if !bytes.Equal(a.Bytes(name), b.Bytes(name)) {
			return fmt.Errorf("%s differs: %d and %d bytes", name, len(a.Bytes(name)), len(b.Bytes(name)))
		}
	}
	for name := range right {
		if !left[name] {
			return fmt.Errorf("%s exists only in the second store", name)
		}
	}
	return nil
}

// end repairs all links, and makes one machine claim. The store must have all confirmed ticks.
func (s *sim) end() error {
	for _, n := range s.nodes {
		n.halt()
		n.link.Cut(false)
		n.link.Fail(replicatest.Faults{})
	}
	s.log.Settle()
	s.patience = time.Minute
	for _, i := range s.rng.Perm(len(s.nodes)) {
		n := s.nodes[i]
		if err := s.begin(n); err != nil {
			return err
		}
		err := s.claim(n)
		if errors.Is(err, replica.ErrUnfinished) {
			n.halt()
			continue
		}
		if err != nil {
			return err
		}
		if err := s.opened(n); err != nil {
			return err
		}
		if n.store == nil {
			return errors.New("the last machine could not open the store")
		}
		s.commit(n)
		if err := s.sync(n); err != nil {
			return err
		}
		if s.states[len(s.states)-1] != stateOf(n.world.World) {
			return errors.New("the log did not confirm the last tick")
		}
		n.halt()
	}
	return nil
}

// stateOf returns a digest of the persistent state of a world.
func stateOf(w *ecs.World) ecs.Digest {
	return w.Digests(func(st raw.Storage) bool { return st.Persistent() && st.Rewinds() }).World
}
