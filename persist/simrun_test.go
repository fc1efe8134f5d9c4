package persist_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	"github.com/stet-ecs/stet/disk/disktest"
	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/internal/catalog"
	"github.com/stet-ecs/stet/persist/internal/storetest"
)

// A simRun runs a program on a file system in memory, in a bubble of package synctest. So the same
// program always makes the same calls in the same order.
//
// Commits are numbered over all branches and openings; the base is number 0. The embedded
// simPromise says which commits Open may recover after a crash.
type simRun struct {
	program simProgram
	mem     *disktest.Mem
	world   *storetest.World
	store   *persist.Store
	noting  simNotes // Marks and inputs of the tick under way.
	failed  error    // The first error of a commit since the store was opened.
	now     int64    // The time of the store's clock.

	fault     simFault
	failing   string      // The call that failed first; "" means that no call has failed.
	reference []simCommit // The commits of a run without a fault; nil means unknown.

	mu      sync.Mutex
	commits []simCommit
	notes   map[uint64]simNotes // Marks and inputs of ticks by the value of seed.
	first   int                 // The first commit of this opening.
	told    int                 // Number of commits of this opening that OnDurable reported.
	syncs   int                 // Number of the journal's syncs.
	ackedBy int                 // Value of syncs at the last acknowledgement.
	simPromise

	quiet   bool // The process is dead, so its actions do not count.
	images  []simImage
	seeds   int // Number of crash images that keep some unsynced changes.
	changes int // Value of mem.Changes at the last crash image.
	grown   int // Number of images that the last crash added.
}

// A simCommit is the state of a commit, by digest.
type simCommit struct {
	state ecs.Digest // Digest without NoRewind values.
	all   ecs.Digest
}

// A simPromise says which states a store may recover.
type simPromise struct {
	acked int // The newest commit that is durable for certain; -1 means none.
	// The value of acked before the journal's last sync. Until a later write confirms that sync, a
	// crash may lose its bytes.
	before  int
	fresh   int  // This commit and later ones may be durable, too.
	sealing int  // The commit that a Close under way seals, or -1.
	rewound bool // After a rewind, a snapshot may have NoRewind values of a later commit.
}

// A simImage is the disk after a crash.
type simImage struct {
	mem *disktest.Mem
	simPromise
	call string // The call before which the machine crashed.
	seed int    // 0 means that the crash lost all unsynced changes; otherwise it lost some of them.
	n    int
}

func (i simImage) String() string {
	return fmt.Sprintf("crash %d %d: before %q\n%v\nacknowledged is commit %d, or one from %d on, or %d", i.n, i.seed, i.call, i.mem, i.acked, i.fresh, i.sealing)
}

func simCommitOf(w *ecs.World) simCommit {
	rewinding := func(st raw.Storage) bool { return st.Persistent() && st.Rewinds() }
	return simCommit{w.Digests(rewinding).World, storetest.Persistent(w)}
}

// newSimRun returns a run of p on mem. A crash gives one image without unsynced changes, and
// further images with some of these changes. seeds: the number of further images; if it is
// negative, a crash gives no images.
func newSimRun(p simProgram, mem *disktest.Mem, seeds int) *simRun {
	return &simRun{program: p, mem: mem, seeds: seeds, changes: -1, notes: map[uint64]simNotes{}, simPromise: simPromise{acked: -1, before: -1, sealing: -1}}
}

// use makes the run use the disk mem from now on, with the run's fault.
func (r *simRun) use(mem *disktest.Mem) {
	r.mem = mem
	r.fault.arm(mem)
	mem.OnCall(func(n int, call string) {
		if strings.Contains(call, catalog.SnapshotDir) {
			time.Sleep(time.Nanosecond) // Lets other goroutines finish their work first.
		}
		r.crash(n, call)
	})
}

// crash stores images of what a crash before call n could leave on the disk. If the disk has not
// changed since the last images, crash adds none. It only updates the promises of the last images,
// because more commits may be acknowledged by now.
func (r *simRun) crash(n int, call string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if strings.HasPrefix(call, "sync "+catalog.JournalDir+"/") {
		r.syncs++
	}
	if r.quiet {
		return
	}
	if r.failing == "" && r.fault.n > 0 && n >= r.fault.n {
		r.failing = call
	}
	if r.seeds < 0 {
		return
	}
	if r.mem.Changes() == r.changes {
		for i := range r.grown {
			r.images[len(r.images)-1-i].simPromise = r.simPromise
		}
		return
	}
	r.changes = r.mem.Changes()
	r.grown = 1 + r.seeds
	r.images = append(r.images, simImage{r.mem.Crash(), r.simPromise, call, 0, n})
	for seed := 1; seed <= r.seeds; seed++ {
		r.images = append(r.images, simImage{r.mem.CrashSeed(uint64(n*100 + seed)), r.simPromise, call, seed, n})
	}
}

// run runs the program. It returns an error only for a broken promise, not for a reported failure
// of the disk. After a failure that ends the store, steps are skipped until the next opening.
func (r *simRun) run() error {
	r.use(r.mem)
	r.world = storetest.New(r.program.history)
	r.world.Fill(3)
	r.commits = []simCommit{simCommitOf(r.world.World)}
	if ok, err := r.open(); err != nil || !ok {
		return err
	}
	for i, s := range r.program.steps {
		more, err := r.step(s)
		if err != nil {
			r.abandon()
			return fmt.Errorf("step %d, %s: %w", i+1, s.name, err)
		}
		if !more {
			return nil
		}
		synctest.Wait()
	}
	_, err := r.close()
	r.crash(r.mem.Calls()+1, "the end")
	return err
}

func (r *simRun) step(s simStep) (more bool, err error) {
	switch s.name {
	case "tick":
		return true, r.tick(s)
	case "note":
		return true, r.note(s.n)
	case "sync":
		if r.store.Sync(storetest.Background) == nil {
			r.acknowledge(len(r.commits) - 1)
		}
	case "rewind":
		_ = r.world.History().Rewind(s.n)
	case "goto":
		return true, r.goTo(s.n)
	case "load":
		return true, r.load(s)
	case "snapshot":
		return true, r.snapshot()
	case "sleep":
		time.Sleep(time.Duration(s.n))
	case "close":
		if ok, err := r.close(); err != nil || !ok {
			return false, err
		}
		r.world = storetest.New(r.program.history)
		return r.open()
	case "kill":
		r.kill()
		r.world = storetest.New(r.program.history)
		return r.open()
	default:
		return false, errors.New("no such step")
	}
	return true, nil
}

// acknowledge updates the promise: a commit is now durable.
func (r *simRun) acknowledge(commit int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if commit < r.fresh || r.quiet {
		return
	}
	if r.ackedBy != r.syncs { // The first commit that this sync makes durable.
		r.before, r.ackedBy = r.acked, r.syncs
	}
	r.acked, r.fresh = commit, commit+1
}

func (r *simRun) options() persist.Options {
	return persist.Options{
		Sync:          simPolicies[r.program.policy],
		SnapshotBytes: r.program.snapshots,
		SnapshotPace:  r.program.pace,
		History:       r.program.history,
		Now: func() time.Time {
			r.now++
			return time.Unix(1000, r.now)
		},
		OnDurable: func(uint64) {
			r.told++
			r.acknowledge(r.first + r.told - 1)
		},
	}
}

// open opens the store and finds out which commit Open recovered. ok is false if Open reported a
// failure of the disk.
func (r *simRun) open() (ok bool, err error) {
	before := r.world.Digest()
	r.store, err = persist.OpenFiles(storetest.Background, r.mem, r.world.World, r.options())
	if err != nil {
		if d := r.world.Digest(); d != before {
			return false, fmt.Errorf("Open failed and changed the world: %w", err)
		}
		return false, r.plain(err)
	}
	r.failed, r.noting = nil, simNotes{}
	if r.failing != "" {
		r.reference = nil
	}
	commit, err := r.judge(r.simPromise, r.world, r.store.Report(), r.failing != "")
	if err != nil {
		r.abandon()
		return false, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.first, r.told = len(r.commits), 0
	r.simPromise = simPromise{acked: commit, before: commit, fresh: len(r.commits), sealing: -1, rewound: r.rewound}
	return true, nil
}

// abandon closes a store after an error, if it is open.
func (r *simRun) abandon() {
	if r.store != nil && !r.store.Closed() {
		r.world.ReleaseAll()
		_ = r.store.Close(storetest.Background)
	}
}

// judge returns the recovered commit. It returns an error if p does not allow the recovered state.
func (r *simRun) judge(p simPromise, w *storetest.World, report persist.Report, failing bool) (commit int, err error) {
	got := simCommitOf(w.World)
	if report.Fresh {
		if p.acked > -1 {
			return 0, errors.New("the store is gone")
		}
		return 0, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	commit = slices.IndexFunc(r.commits, func(c simCommit) bool { return c.state == got.state })
	switch {
	case commit < 0 && p.acked < 0 && got == simCommitOf(storetest.New(0).World):
		// An earlier recovery found no files, and created this empty base.
		return 0, nil
	case commit < 0:
		return 0, errors.New("recovered the state of no commit")
	case commit != p.acked && commit < p.fresh && commit != p.sealing:
		return commit, fmt.Errorf("recovered commit %d; acknowledged is %d, or one from %d on, or %d", commit, p.acked, p.fresh, p.sealing)
	case got.all != r.commits[commit].all && !p.rewound:
		return commit, fmt.Errorf("recovered commit %d, but with other NoRewind values", commit)
	case len(report.Skipped) > 0 && !failing:
		return commit, fmt.Errorf("a crash or failure looks like damage: %w", errors.Join(report.Skipped...))
	}
	return commit, nil
}

func (r *simRun) tick(s simStep) error {
	rng := rand.New(rand.NewPCG(s.seed, 1))
	r.world.Do(storetest.RandomActions(rng, s.n)...)
	r.world.Seed.Set(storetest.Seed(1000 + len(r.commits))) // No two ticks are equal.
	if r.noting.parent == r.world.Raw().Seq() {
		r.notes[uint64(1000+len(r.commits))] = r.noting
	}
	r.noting = simNotes{}
	tick := r.world.Tick()
	err := r.store.Commit()
	r.mu.Lock()
	r.commits = append(r.commits, simCommitOf(r.world.World))
	r.mu.Unlock()
	switch n := len(r.commits) - 1; {
	case n < len(r.reference) && r.reference[n] != r.commits[n]:
		return fmt.Errorf("commit %d is another than without the failure", n)
	case r.world.Tick() != tick+1:
		return fmt.Errorf("tick %d after tick %d", r.world.Tick(), tick)
	case err == nil && r.failed != nil:
		return fmt.Errorf("Commit returned nil after %w", r.failed)
	case err != nil && r.failed != nil && err.Error() != r.failed.Error():
		return fmt.Errorf("Commit returned %w after %w", err, r.failed)
	}
	r.failed = err
	return r.plain(err)
}

// goTo goes n records back from the newest, and checks that the state is that of a commit.
func (r *simRun) goTo(n int) error {
	r.world.ReleaseAll()
	before, seq := r.world.Digest(), r.world.Raw().Seq()
	err := r.store.Goto(storetest.Background, fmt.Sprint("@latest~", n))
	if err == nil {
		r.noting = simNotes{}
		r.acknowledge(len(r.commits) - 1)
	} else if r.reference = nil; r.world.Raw().Seq() == seq && r.world.Digest() != before {
		return fmt.Errorf("Goto failed and changed the world: %w", err)
	}
	state := simCommitOf(r.world.World).state
	if !slices.ContainsFunc(r.commits, func(c simCommit) bool { return c.state == state }) {
		return fmt.Errorf("Goto led to the state of no commit: %v", err)
	}
	if errors.Is(err, persist.ErrNotFound) {
		return nil
	}
	return r.plain(err)
}

// load loads a save of a world like that of r. The loaded state becomes the next commit.
func (r *simRun) load(s simStep) error {
	r.world.ReleaseAll()
	saved := r.world.Independent()
	saved.Do(storetest.RandomActions(rand.New(rand.NewPCG(s.seed, 1)), s.n)...)
	saved.Seed.Set(storetest.Seed(1000 + len(r.commits)))
	var b bytes.Buffer
	if err := persist.SaveTo(storetest.Background, &b, saved.World); err != nil {
		return err
	}
	tick, state := r.world.Tick(), r.world.Digest()
	err := r.store.LoadFrom(storetest.Background, &b)
	loaded := r.world.Tick() != tick || r.world.Digest() != state
	if err == nil || loaded {
		r.noting = simNotes{}
		r.mu.Lock()
		r.commits = append(r.commits, simCommitOf(r.world.World))
		r.mu.Unlock()
	}
	if err != nil {
		r.reference = nil
		if loaded {
			r.failed = err
		}
	}
	return r.plain(err)
}

func (r *simRun) snapshot() error {
	if r.world.Raw().Dirty() {
		return nil
	}
	rewound := simCommitOf(r.world.World).state != r.commits[len(r.commits)-1].state
	r.mu.Lock()
	r.rewound = r.rewound || rewound
	r.mu.Unlock()
	_, err := r.store.Snapshot(storetest.Background)
	if err == nil {
		r.acknowledge(len(r.commits) - 1)
	}
	return r.plain(err)
}

// close closes the store. ok is false if Close reported a failure of the disk.
func (r *simRun) close() (ok bool, err error) {
	r.world.ReleaseAll()
	state := simCommitOf(r.world.World).state
	head := slices.IndexFunc(r.commits, func(c simCommit) bool { return c.state == state })
	if head < 0 {
		return false, errors.New("the world is at no commit")
	}
	r.mu.Lock()
	r.sealing = head
	r.mu.Unlock()
	if err := storetest.Closed(r.store.Close(storetest.Background)); err != nil {
		return false, r.plain(err)
	}
	if r.failed != nil {
		return false, fmt.Errorf("Close returned nil after %w", r.failed)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.before, r.acked, r.fresh, r.sealing = r.acked, head, len(r.commits), -1
	return true, nil
}

// kill ends the process. All bytes that it wrote stay, synced or not.
func (r *simRun) kill() {
	fork := r.mem.Fork()
	r.mu.Lock()
	r.quiet = true
	r.mu.Unlock()
	r.abandon()
	r.mu.Lock()
	r.quiet = false
	r.mu.Unlock()
	r.use(fork)
}

// plain checks that an error says which call failed, and on which file.
func (r *simRun) plain(err error) error {
	if err == nil {
		return nil
	}
	return r.fault.plain(err, r.failing)
}
