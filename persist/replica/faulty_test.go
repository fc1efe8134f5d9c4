package replica_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/disk/disktest"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/replica"
	"github.com/stet-ecs/stet/persist/replica/replicatest"
)

// A holey log hides the entry at a position from every reader.
type holey struct {
	replica.Log
	hole atomic.Uint64
}

func (l *holey) Next(ctx context.Context, after replica.Position) (replica.Entry, error) {
	e, err := l.Log.Next(ctx, after)
	if hole := replica.Position(l.hole.Load()); err == nil && e.Position == hole && hole > 0 {
		return l.Log.Next(ctx, hole)
	}
	return e, err
}

func (l *holey) Entries(ctx context.Context, after replica.Position) iter.Seq2[replica.Entry, error] {
	return func(yield func(replica.Entry, error) bool) {
		for e, err := range l.Log.Entries(ctx, after) {
			if (err != nil || uint64(e.Position) != l.hole.Load()) && !yield(e, err) {
				return
			}
		}
	}
}

func TestFollower_FetchesHiddenEntry(t *testing.T) {
	log, mem, other := &replicatest.Log{}, disktest.New(), disktest.New()
	g, o, store := own(t, follow(t, log.Link(1), mem, replica.Options{}))
	link := log.Link(2)
	f := follow(t, link, other, replica.Options{})
	require.NoError(t, f.Wait(background, o.Position()))
	link.Hide(o.Position() + 1)
	for range 3 {
		g.play(t, store)
		require.NoError(t, store.Sync(background))
	}
	require.NoError(t, store.Close(background))
	ctx, cancel := context.WithTimeout(background, 10*time.Second)
	defer cancel()
	require.NoError(t, f.Wait(ctx, o.Position()), "the follower must get the entry from the server that decides on appends")
	assert.True(t, f.Ready())
	assert.NoError(t, same(mem, other))
	require.NoError(t, f.Close())
	require.NoError(t, o.Close())
}

// A damaged copy of an entry on one server does not stop a follower, a new follower, or an owner
// that reads its log back.
func TestFollower_EntryDamaged(t *testing.T) {
	log, mem, other := &replicatest.Log{}, disktest.New(), disktest.New()
	ours, theirs := log.Link(1), log.Link(2)
	g, o, store := own(t, follow(t, ours, mem, replica.Options{}.ReadBack(time.Millisecond)))
	f := follow(t, theirs, other, replica.Options{})
	require.NoError(t, f.Wait(background, o.Position()))
	theirs.Damage(o.Position() + 1)
	ours.Damage(o.Position() + 1)
	for range 3 {
		g.play(t, store)
		require.NoError(t, store.Sync(background))
	}
	time.Sleep(30 * time.Millisecond) // The owner reads its log back several times.
	require.NoError(t, store.Close(background))
	ctx, cancel := context.WithTimeout(background, 10*time.Second)
	defer cancel()
	require.NoError(t, f.Wait(ctx, o.Position()), "the follower must get the entry from the server that decides on appends")
	assert.NoError(t, same(mem, other))
	fresh := follow(t, theirs, disktest.New(), replica.Options{})
	assert.True(t, fresh.Ready())
	require.NoError(t, fresh.Close())
	require.NoError(t, f.Close())
	assert.Zero(t, o.Metrics().Healed)
	require.NoError(t, o.Close())
}

func TestFollower_WaitsForHiddenEntry(t *testing.T) {
	memory, mem, other := &replica.Memory{}, disktest.New(), disktest.New()
	g, o, store := own(t, follow(t, memory, mem, replica.Options{}))
	log := &holey{Log: memory}
	f := follow(t, log, other, replica.Options{})
	require.NoError(t, f.Wait(background, o.Position()))
	hole := o.Position() + 1
	log.hole.Store(uint64(hole))
	for range 3 {
		g.play(t, store)
		require.NoError(t, store.Sync(background))
	}
	require.NoError(t, store.Close(background))
	require.Eventually(t, func() bool { return errors.Is(f.Err(), replica.ErrHole) }, 10*time.Second, time.Millisecond)
	var at *replica.HoleError
	require.ErrorAs(t, f.Err(), &at)
	assert.Equal(t, replica.HoleError{After: hole - 1, Next: hole + 1}, *at)
	assert.True(t, f.Ready(), "the files must remain")
	assert.Equal(t, hole-1, f.Position())

	log.hole.Store(0)
	require.NoError(t, f.Wait(background, o.Position()))
	assert.NoError(t, f.Err())
	assert.NoError(t, same(mem, other))
	require.NoError(t, o.Close())
	next, err := f.Claim(background)
	require.NoError(t, err)
	require.NoError(t, next.Close())
}

func TestFollow_FailsIfEntryIsHidden(t *testing.T) {
	memory := &replica.Memory{}
	g, o, store := own(t, follow(t, memory, disktest.New(), replica.Options{}))
	g.play(t, store)
	require.NoError(t, store.Close(background))
	require.NoError(t, o.Close())
	for hole := replica.Position(1); hole < o.Position(); hole++ {
		log := &holey{Log: memory}
		log.hole.Store(uint64(hole))
		_, err := replica.Follow(background, log, disktest.New(), replica.Options{}.Patient(30*time.Millisecond))
		require.ErrorIs(t, err, replica.ErrHole, "hole at %d", hole)
		require.ErrorContains(t, err, fmt.Sprintf("between %d and %d", hole-1, hole+1))
	}
}

// If the log loses a claim, the previous owner continues, and the claimant loses the store.
func TestOwner_LaterClaimLost(t *testing.T) {
	log := &replicatest.Log{}
	g, o, store := own(t, follow(t, log.Link(1), disktest.New(), replica.Options{}))
	g.play(t, store)
	require.NoError(t, store.Sync(background))
	f := follow(t, log.Link(2), disktest.New(), replica.Options{})
	require.NoError(t, f.Wait(background, o.Position()))
	next, err := f.Claim(background)
	require.NoError(t, err)
	log.Forget(1)
	g.play(t, store)
	require.NoError(t, store.Sync(background), "the log has no other claim")

	err = next.Offer(background, "nobody")
	require.ErrorIs(t, err, persist.ErrLost)
	require.ErrorIs(t, err, replica.ErrLogShorter)
	require.ErrorIs(t, next.Err(), persist.ErrLost)
	require.ErrorIs(t, next.Rebase(background), persist.ErrLost)
	require.NoError(t, next.Close())

	// After the loss of its claim, next has appended an entry: the offer. Readers skip this entry.
	for range 3 {
		g.play(t, store)
		require.NoError(t, store.Sync(background))
	}
	last := o.Position()
	fresh := follow(t, log.Link(3), disktest.New(), replica.Options{})
	require.NoError(t, fresh.Wait(background, last))
	require.True(t, fresh.Ready())
	require.NoError(t, store.Close(background))
	require.NoError(t, fresh.Wait(background, o.Position()))
	require.NoError(t, o.Close())
	h, third, opened := own(t, fresh)
	assert.EqualValues(t, 5, h.score.Get())
	require.NoError(t, opened.Close(background))
	require.NoError(t, third.Close())
}

// An owner whose entries are invalid does not trim the log.
func TestRebase_ClaimLost(t *testing.T) {
	log := &replica.Memory{}
	first := follow(t, log, disktest.New(), replica.Options{})
	g, o, store := own(t, first)
	g.play(t, store)
	require.NoError(t, store.Sync(background))
	f := follow(t, log, disktest.New(), replica.Options{})
	require.NoError(t, f.Wait(background, o.Position()))
	next, err := f.Claim(background)
	require.NoError(t, err)
	// Appends still succeed after Memory.Forget. So the owners do not notice the loss before Rebase
	// checks the log.
	log.Forget(1)
	g.play(t, store)
	require.NoError(t, store.Sync(background))
	require.ErrorIs(t, next.Rebase(background), replica.ErrLogShorter)
	begin, _, err := log.Bounds(background)
	require.NoError(t, err)
	assert.EqualValues(t, 1, begin)
	require.NoError(t, next.Close())
	g.play(t, store)
	require.NoError(t, store.Close(background))
	require.NoError(t, o.Close())
	fresh := follow(t, log, disktest.New(), replica.Options{})
	require.NoError(t, fresh.Wait(background, o.Position()))
	require.True(t, fresh.Ready())
	require.NoError(t, fresh.Close())
}

// A machine appends its claim after the last entry that it has read. The claim is refused if the
// log now has another entry at that position. Readers skip such a claim.
func TestClaim_LastEntryReplaced(t *testing.T) {
	log := &replicatest.Log{}
	g, o, store := own(t, follow(t, log.Link(1), disktest.New(), replica.Options{}))
	g.play(t, store)
	require.NoError(t, store.Close(background))
	link := log.Link(2)
	f := follow(t, link, disktest.New(), replica.Options{})
	require.NoError(t, o.Offer(background, "x"))
	require.NoError(t, f.Wait(background, o.Position()))
	require.NoError(t, o.Close())
	log.Forget(1)
	g2, o2, store2 := own(t, follow(t, log.Link(3), disktest.New(), replica.Options{}))
	require.NoError(t, store2.Sync(background))
	// Shorten the log, so that the claim gets the position of the lost offer.
	log.Forget(int(o2.Position() - f.Position()))
	_, err := f.Claim(background)
	require.ErrorIs(t, err, replica.ErrLogShorter)
	require.NoError(t, f.Close())
	_ = g2.Commit
	_ = store2.Close(background)
	require.NoError(t, o2.Close())
	fresh := follow(t, log.Link(4), disktest.New(), replica.Options{})
	next, err := fresh.Claim(background)
	require.NoError(t, err, "readers skip the refused claim")
	require.NoError(t, next.Close())
}

// Follow retries if a server with a stale state answers like a log that lost entries.
func TestFollow_LogReportsStaleBounds(t *testing.T) {
	log, files := &replicatest.Log{}, disktest.New()
	g, o, store := own(t, follow(t, log.Link(1), files, replica.Options{}))
	for range 3 {
		g.play(t, store)
		require.NoError(t, store.Sync(background))
	}
	require.NoError(t, store.Close(background))
	require.NoError(t, o.Close())
	link := log.Link(2)
	link.Fail(replicatest.Faults{Stale: 1})
	healed := time.AfterFunc(100*time.Millisecond, func() { link.Fail(replicatest.Faults{}) })
	defer healed.Stop()
	f, err := replica.Follow(background, link, files, replica.Options{}.Patient(time.Minute))
	require.NoError(t, err)
	assert.Equal(t, o.Position(), f.Position())
	require.NoError(t, f.Close())
}

// An owner that gets no answer to an append reads the log. The server that it reads may have an old
// state. The owner must not report lost entries then.
func TestOwner_StaleBounds(t *testing.T) {
	log := &replicatest.Log{}
	link := log.Link(1)
	var reports atomic.Int32
	g, o, store := own(t, follow(t, link, disktest.New(), replica.Options{OnShorter: func(*replica.ShorterError) { reports.Add(1) }}))
	for i := range 20 {
		link.Fail(replicatest.Faults{Lost: 0.5, Stale: 0.3})
		g.play(t, store)
		require.NoError(t, store.Sync(background), "tick %d", i)
	}
	assert.Zero(t, reports.Load(), "the log lost no entries")
	assert.NoError(t, o.Err())
	link.Fail(replicatest.Faults{})
	require.NoError(t, store.Close(background))
	require.NoError(t, o.Close())
}

// Machines follow, claim and append to logs that lose entries, hide entries and give stale answers.
// Every entry that an owner confirms is in the log and valid, and the log can be read to its end.
func TestSimulatedFaultyLog(t *testing.T) {
	runs := *simRuns
	if runs == 0 {
		runs = 300
	}
	var claims, confirmed, lost, broken atomic.Int64
	var all crowd
	for i := range runs {
		all.Go(func() {
			seed := *simSeed + uint64(i)
			s := faultySim{log: &replicatest.Log{}, rng: rand.New(rand.NewPCG(seed, 11))}
			if err := s.run(seed); err != nil {
				t.Errorf("-sim.seed %d -sim.runs 1: %v", seed, err)
				for _, line := range slices.Concat(s.told, replica.Describe(&s.log.Memory)) {
					t.Log(line)
				}
			}
			claims.Add(int64(s.claims))
			confirmed.Add(int64(s.confirmed))
			lost.Add(int64(s.lost))
			broken.Add(int64(s.broken))
		})
	}
	all.Wait()
	t.Logf("%d claims, %d confirmed appends, %d lost ownerships, the log lost entries %d times", claims.Load(), confirmed.Load(), lost.Load(), broken.Load())
	if claims.Load() == 0 || confirmed.Load() == 0 || lost.Load() == 0 || broken.Load() == 0 {
		t.Error("the simulations lack claims, confirmed appends, lost ownerships or lost entries")
	}
}

type faultySim struct {
	log   *replicatest.Log
	rng   *rand.Rand
	nodes [3]faultyNode
	told  []string

	claims, confirmed, lost, broken int
}

type faultyNode struct {
	link     *replicatest.Link
	files    *disktest.Mem
	follower *replica.Follower
	owner    *replica.Owner
	forget   bool
	faulty   bool // Whether the link fails at times.
}

func (s *faultySim) say(format string, args ...any) {
	s.told = append(s.told, fmt.Sprintf(format, args...))
}

// close stops a machine.
func (n *faultyNode) close() {
	if n.owner != nil {
		_ = n.owner.Close()
	} else if n.follower != nil {
		_ = n.follower.Close()
	}
	n.owner, n.follower = nil, nil
}

func (s *faultySim) run(seed uint64) error {
	for i := range s.nodes {
		s.nodes[i] = faultyNode{link: s.log.Link(seed<<8 + uint64(i)), files: disktest.New()}
		defer s.nodes[i].close()
	}
	for range 60 {
		if err := s.step(s.rng.IntN(len(s.nodes))); err != nil {
			return err
		}
	}
	for i := range s.nodes {
		s.nodes[i].close()
	}
	s.log.Settle()
	return s.end()
}

func (s *faultySim) step(i int) error {
	n := &s.nodes[i]
	patience := 60 * time.Millisecond
	if !n.faulty {
		// Each call must get an answer in this time, even after the log has lost entries.
		patience = 20 * time.Second
	}
	ctx, cancel := context.WithTimeout(background, patience)
	defer cancel()
	switch k := s.rng.IntN(14); {
	case k == 0:
		lose := 1 + s.rng.IntN(3)
		s.say("the log loses %d entries", lose)
		s.log.Forget(lose)
		s.broken++
	case k == 1:
		f := replicatest.Faults{Lost: s.rng.Float64() / 4, Late: s.rng.Float64() / 4, Stale: s.rng.Float64() / 2, Hole: s.rng.Float64() / 4}
		if s.rng.IntN(2) == 0 {
			f = replicatest.Faults{}
		}
		n.link.Fail(f)
		n.faulty = f != replicatest.Faults{}
		s.say("machine %d: %+v", i, f)
	case k == 2:
		s.log.Settle()
	case k == 3:
		s.say("machine %d ends", i)
		n.close()
	case n.owner != nil && k < 6:
		err := n.owner.Rebase(ctx)
		s.say("machine %d sends all: %v", i, err)
		return s.confirm(i, err)
	case n.owner != nil:
		err := n.owner.Offer(ctx, "nobody")
		since, stuck := n.owner.Stuck()
		s.say("machine %d appends: %v (stuck for %v: %v)", i, err, time.Since(since), stuck)
		return s.confirm(i, err)
	case n.follower == nil:
		options := replica.Options{Forget: n.forget, Heartbeat: []time.Duration{-1, 5 * time.Millisecond}[s.rng.IntN(2)]}
		f, err := replica.Follow(ctx, n.link, n.files, options.Patient(10*time.Millisecond).ReadBack(2*time.Millisecond))
		s.say("machine %d follows: %v", i, err)
		if n.forget = errors.Is(err, replica.ErrLogShorter); err == nil {
			n.follower = f
		}
		return s.answered(i, err)
	default:
		o, err := n.follower.Claim(ctx)
		s.say("machine %d claims: %v", i, err)
		if err != nil {
			if errors.Is(err, replica.ErrLogShorter) {
				n.close()
			}
			return s.answered(i, err)
		}
		n.owner = o
		s.claims++
		return s.confirm(i, nil)
	}
	return nil
}

// confirm checks the result of an owner's append.
func (s *faultySim) confirm(i int, err error) error {
	n := &s.nodes[i]
	if errors.Is(err, persist.ErrLost) {
		s.lost++
	}
	if err != nil {
		// The append failed, but the log may still get its entries later. So close the machine.
		n.close()
		return s.answered(i, err)
	}
	s.confirmed++
	if at, counts := n.owner.Counts(&s.log.Memory); !counts {
		return fmt.Errorf("machine %d was confirmed at %d, but that entry is invalid or missing", i, at)
	}
	return nil
}

// answered returns an error if a machine got no answer in time although its link works.
func (s *faultySim) answered(i int, err error) error {
	if !s.nodes[i].faulty && errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("machine %d got no answer: %w", i, err)
	}
	return nil
}

// end checks that a new machine, without faults, reads the log to its end and claims.
func (s *faultySim) end() error {
	first, last, _ := s.log.Bounds(background)
	f, err := replica.Follow(background, s.log, disktest.New(), replica.Options{}.Patient(10*time.Millisecond))
	if first == 0 && last > 0 && errors.Is(err, replica.ErrLogShorter) {
		return nil // The machine correctly reports an emptied log.
	}
	if err != nil {
		return fmt.Errorf("a new machine: %w", err)
	}
	if f.Position() < last {
		return fmt.Errorf("a new machine is at %d of %d", f.Position(), last)
	}
	o, err := f.Claim(background)
	if errors.Is(err, replica.ErrUnfinished) {
		return f.Close()
	}
	if err != nil {
		return fmt.Errorf("a new machine claims: %w", err)
	}
	return o.Close()
}
