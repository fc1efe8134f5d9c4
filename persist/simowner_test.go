package persist_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/disk/disktest"
	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/internal/storetest"
)

// simOwners are several processes that use one store on a simulated disk. Each process takes the
// store from the previous process. The previous process continues as if it still had the store.
//
// Every state that was reported as durable must be an ancestor of the state that the next process
// recovers. The same is true for a recovery after any crash.
type simOwners struct {
	mem    *disktest.Mem
	rng    *rand.Rand
	owners []*simOwner // The last owner has the store.
	lost   int         // Number of owners that got ErrLost.
	ticks  int
	// Maps the state of each commit to the state that it continues.
	parent map[ecs.Digest]ecs.Digest

	mu     sync.Mutex
	draw   *rand.Rand   // Draws the actions before a call.
	taking bool         // A process is opening the store.
	acts   int          // How often other processes act during the opening.
	inside bool         // Another process is carrying out an action.
	told   []ecs.Digest // Durable states; the last one descends from all others.
	broken error        // The first broken promise.
	images []simOwnersImage
}

type simOwner struct {
	world *storetest.World
	store *persist.Store
	lost  error // The first error of the store.
}

// A simOwnersImage is the disk after a crash.
type simOwnersImage struct {
	mem  *disktest.Mem
	call string // The call before which the machine crashed.
	told []ecs.Digest
}

func (o *simOwner) state() ecs.Digest { return simCommitOf(o.world.World).state }

// take makes a new process take the store from the present owner.
func (s *simOwners) take() error {
	if len(s.owners) > 0 {
		if s.rng.IntN(2) == 0 {
			s.mem.Loosen("LOCK")
		} else if err := s.mem.Remove("LOCK"); err != nil {
			return err
		}
	}
	options := persist.Segmented(persist.Options{
		Sync:          simPolicies[[]string{"always", "never"}[s.rng.IntN(2)]],
		SnapshotBytes: []int64{-1, 500}[s.rng.IntN(2)],
	}, 2<<10)
	o := &simOwner{world: storetest.New(0)}
	if len(s.owners) == 0 {
		o.world.Fill(3)
	}
	s.setTaking(true, 1+s.rng.IntN(2))
	store, err := persist.Open(storetest.Background, ".", o.world.World, storetest.In(s.mem, options))
	synctest.Wait()
	s.setTaking(false, 0)
	if err != nil {
		if errors.Is(err, persist.ErrLost) {
			// Another process took the store during this opening. No tick was acknowledged.
			return nil
		}
		return err
	}
	o.store = store
	s.owners = append(s.owners, o)
	if err := s.recovered(o.state(), s.told, store.Report().Skipped); err != nil {
		return err
	}
	s.tell(o.state())
	return nil
}

func (s *simOwners) setTaking(taking bool, acts int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taking, s.acts = taking, acts
}

// tell adds a state to the list of durable states.
func (s *simOwners) tell(state ecs.Digest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told = append(s.told, state)
}

// recovered checks the state that a recovery returned. It must be the last durable state in the
// list told, or a descendant of that state.
func (s *simOwners) recovered(state ecs.Digest, told []ecs.Digest, skipped []error) error {
	if len(skipped) > 0 {
		return fmt.Errorf("the recovery reports damage: %w", errors.Join(skipped...))
	}
	if len(told) == 0 {
		return nil
	}
	for at, ok := state, true; ok; at, ok = s.parent[at] {
		if at == told[len(told)-1] {
			return nil
		}
	}
	return fmt.Errorf("durable state %d is not an ancestor of the recovered state", len(told))
}

// act lets an owner do a random action, and records the states reported as durable.
func (s *simOwners) act(o *simOwner) error {
	kind := s.rng.IntN(6)
	if kind < 4 {
		parent := o.state()
		o.world.Do(storetest.RandomActions(s.rng, 1+s.rng.IntN(6))...)
		s.ticks++
		o.world.Seed.Set(storetest.Seed(s.ticks))
		_ = o.store.Commit()
		s.parent[o.state()] = parent
	}
	var err error
	switch kind {
	case 3, 4:
		err = o.store.Sync(storetest.Background)
	case 5:
		if !o.world.Raw().Dirty() {
			_, err = o.store.Snapshot(storetest.Background)
		}
	default:
		return nil
	}
	switch {
	case err == nil && o.lost != nil:
		return fmt.Errorf("confirmed after %w", o.lost)
	case err == nil:
		if err := s.recovered(o.state(), s.told, nil); err != nil {
			return fmt.Errorf("confirmed: %w", err)
		}
		s.tell(o.state())
	case errors.Is(err, persist.ErrLost) && o.lost == nil:
		o.lost = err
		s.lost++
	case o == s.owners[len(s.owners)-1] && o.lost == nil && !s.taking:
		return fmt.Errorf("the owner was refused: %w", err)
	}
	return nil
}

// call runs before every disk call. At random, it stores what a crash at this call could leave on
// the disk. While another process takes the store, call() may let an earlier owner act.
func (s *simOwners) call(n int, call string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.inside || s.broken != nil {
		return
	}
	if s.draw.IntN(30) == 0 {
		for _, mem := range []*disktest.Mem{s.mem.Crash(), s.mem.CrashSeed(uint64(n)), s.mem.Clone()} {
			s.images = append(s.images, simOwnersImage{mem, call, slices.Clone(s.told)})
		}
	}
	if s.taking && len(s.owners) > 0 && s.acts > 0 && s.draw.IntN(12) == 0 {
		s.inside = true
		s.acts--
		s.mu.Unlock()
		err := s.act(s.owners[len(s.owners)-1])
		synctest.Wait() // Wait until every goroutine that the action started is blocked.
		s.mu.Lock()
		s.inside, s.broken = false, err
	}
}

func (s *simOwners) run(steps int) error {
	s.mem.OnCall(s.call)
	defer func() {
		for _, o := range s.owners {
			o.world.ReleaseAll()
			_ = o.store.Close(storetest.Background)
		}
	}()
	for step := range steps {
		synctest.Wait()
		var err error
		if step == 0 || s.rng.IntN(8) == 0 {
			err = s.take()
		} else {
			err = s.act(s.owners[len(s.owners)-1-s.rng.IntN(min(2, len(s.owners)))])
		}
		if err == nil {
			err = s.broken
		}
		if err != nil {
			return fmt.Errorf("step %d: %w", step, err)
		}
	}
	return nil
}

// check opens the store in each crashed disk image, and checks the recovered state.
func (s *simOwners) check() error {
	for i, img := range s.images {
		w := storetest.New(0)
		store, err := persist.Open(storetest.Background, ".", w.World, persist.Options{Files: img.mem})
		if err == nil {
			err = errors.Join(s.recovered(simCommitOf(w.World).state, img.told, store.Report().Skipped), store.Close(storetest.Background))
		}
		if err != nil {
			return fmt.Errorf("crash %d, before %q: %w\n%v", i, img.call, err, img.mem)
		}
	}
	return nil
}

func TestSimulatedOwners(t *testing.T) {
	runs := max(10, 4**simRuns) // The runs are short.
	crashes, lost, owners := 0, 0, 0
	for seed := *simSeed; seed < *simSeed+uint64(runs); seed++ {
		synctest.Test(t, func(t *testing.T) {
			s := &simOwners{
				mem: disktest.New(), parent: map[ecs.Digest]ecs.Digest{},
				rng: rand.New(rand.NewPCG(seed, 0x0e)), draw: rand.New(rand.NewPCG(seed, 0x0f)),
			}
			err := s.run(40)
			s.mem.OnCall(nil)
			if err == nil {
				err = s.check()
			}
			require.NoError(t, err, "-sim.seed %d", seed)
			crashes, lost, owners = crashes+len(s.images), lost+s.lost, owners+len(s.owners)
		})
		if t.Failed() {
			return
		}
	}
	t.Logf("%d processes, %d of which got ErrLost; %d crashes, nothing durable lost", owners, lost, crashes)
	require.Positive(t, lost)
}
