package inspect_test

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/disk/disktest"
	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/internal/deep"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
	"github.com/stet-ecs/stet/persist/internal/storetest"
)

// A past is a recording of a store's files over time, made while a program commits, rolls back and
// removes old files.
type past struct {
	moments []moment
	digests map[uint64]ecs.Digest // Digest after each record, by its seq.
}

// A moment is a copy of the store's files at one time.
type moment struct {
	files *disktest.Mem
	last  uint64 // The newest record.
}

// newPast runs a program several times. Each run begins a new segment of the journal. newPast
// records a moment after each commit, and before each removal of a file.
func newPast(t *testing.T, seed uint64) *past {
	t.Helper()
	p, rng, mem, last := &past{digests: map[uint64]ecs.Digest{}}, rand.New(rand.NewPCG(seed, 0x75)), disktest.New(), uint64(0)
	pause := func() { p.moments = append(p.moments, moment{mem.Clone(), last}) }
	for range 8 {
		w := storetest.New(6)
		s, err := persist.Open(storetest.Background, ".", w.World, persist.Options{Files: mem, SnapshotBytes: -1, Retain: persist.Retention{Last: 1}})
		require.NoError(t, err)
		p.digests[w.Raw().Seq()] = storetest.Persistent(w.World)
		mem.OnCall(func(_ int, call string) {
			if strings.HasPrefix(call, "remove ") {
				pause()
			}
		})
		for range 6 {
			if rng.IntN(3) == 0 {
				// Rewind fails if the history has no earlier tick.
				_ = w.History().Rewind(1 + rng.IntN(3))
			}
			w.Fill(1)
			require.NoError(t, s.Commit())
			require.NoError(t, s.Sync(storetest.Background))
			last = w.Raw().Seq()
			p.digests[last] = storetest.Persistent(w.World)
			pause()
			if rng.IntN(3) == 0 {
				storetest.SnapshotOf(t, s)
			}
		}
		mem.OnCall(nil)
		storetest.CloseStore(t, s)
	}
	return p
}

// A show is a file system for a reader under test. It has the files of one moment of a past. After
// a given number of calls, it switches to a later moment, so files vanish while the reader runs.
type show struct {
	*disktest.Mem
	*past
	// at is the number of the current moment.
	at int
	// calls counts the calls since s.jump was set.
	calls int
	// Just before call number jump, the show switches to moment s.to. If jump is 0, the show does
	// not switch.
	jump int
	// to is the number of the moment to which call number jump switches.
	to int
	// Each call after call number jump advances the show by pace moments.
	pace int
}

// cut switches s to moment number at.
func (s *show) cut(at int) { s.at, s.Mem = at, s.moments[at].files }

// call counts a call. It switches to a later moment as jump, to and pace say.
func (s *show) call() {
	if s.jump == 0 {
		return
	}
	if s.calls++; s.calls == s.jump {
		s.cut(s.to)
	} else if s.calls > s.jump {
		s.cut(min(s.at+s.pace, len(s.moments)-1))
	}
}

// stand keeps s at its current moment from now on.
func (s *show) stand() { s.jump = 0 }

func (s *show) Open(name string) (disk.File, error) {
	s.call()
	return s.Mem.Open(name)
}

func (s *show) ReadDir(name string) ([]fs.DirEntry, error) {
	s.call()
	return s.Mem.ReadDir(name)
}

// Locked reports that a program has the store open.
func (s *show) Locked(string) (bool, error) { return true, nil }

// followers has the kinds of readers that follow a store. Each function opens the store, and
// returns a function that looks for new records and returns the newest record. All functions
// compare states with the recorded digests.
var followers = map[string]func(t *testing.T, s *show) (follow func() uint64){
	"view": func(t *testing.T, s *show) func() uint64 {
		v, err := inspect.OpenFS(storetest.Background, s, ".")
		require.NoError(t, err)
		return func() uint64 {
			_, err := v.Refresh(storetest.Background)
			require.NoError(t, err)
			s.stand()
			im, err := v.Catalog().At(storetest.Background, v.Head())
			// Retention may have removed the state in the meantime.
			if err != nil {
				require.ErrorIs(t, err, persist.ErrNotFound)
				_, err = v.Refresh(storetest.Background)
				require.NoError(t, err)
				im, err = v.Catalog().At(storetest.Background, v.Head())
				require.NoError(t, err)
			}
			require.Empty(t, v.Damage())
			require.Equal(t, s.digests[im.ID.Seq], im.Digest())
			return im.ID.Seq
		}
	},
	"player": func(t *testing.T, s *show) func() uint64 {
		w := storetest.New(0).World
		p, err := inspect.OpenPlayer(storetest.Background, ".", w, inspect.PlayerOptions{Files: s})
		require.NoError(t, err)
		check := func() { require.Equal(t, s.digests[p.Recorded().Seq], storetest.Persistent(w)) }
		check()
		// In the second use, files vanish only after the player is open. Let it begin at its last
		// tick.
		if s.jump == 0 {
			require.NoError(t, p.Seek(storetest.Background, p.End()))
		}
		return func() uint64 {
			_, err := p.Refresh(storetest.Background)
			require.NoError(t, err)
			check()
			s.stand()
			// Retention may have removed the state in the meantime.
			if err := p.Seek(storetest.Background, p.End()); err != nil {
				require.ErrorIs(t, err, persist.ErrNotFound)
				_, err := p.Refresh(storetest.Background)
				require.NoError(t, err)
				require.NoError(t, p.Seek(storetest.Background, p.End()))
			}
			check()
			return p.Recorded().Seq
		}
	},
	"follower": func(t *testing.T, s *show) func() uint64 {
		w := storetest.New(0).World
		f, err := persist.Follow(storetest.Background, ".", w, persist.FileOptions{Files: s})
		require.NoError(t, err)
		check := func() { require.Equal(t, s.digests[w.Raw().Seq()], storetest.Persistent(w)) }
		check()
		return func() uint64 {
			_, err := f.Advance(storetest.Background)
			require.NoError(t, err)
			check()
			return w.Raw().Seq()
		}
	},
}

// Readers that follow a store must succeed even if files vanish between any two calls. They must
// still find the newest record.
func TestFollow_FilesVanish(t *testing.T) {
	t.Parallel()
	for seed := range uint64(deep.Or(3, 12)) {
		p, rng := newPast(t, seed), rand.New(rand.NewPCG(seed, 0x76))
		for range deep.Or(8, 40) {
			from := rng.IntN(len(p.moments) - 2)
			at := from + 1 + rng.IntN(len(p.moments)-from-2)
			to := at + 1 + rng.IntN(len(p.moments)-at-1)
			pace := rng.IntN(2)
			for name, open := range followers {
				t.Run(fmt.Sprintf("seed %d, a %s from %d at %d to %d by %d", seed, name, from, at, to, pace), func(t *testing.T) {
					for jump, more := 1, true; more; jump++ {
						s := &show{past: p, to: to, pace: pace}
						s.cut(at)
						// Files vanish while the reader opens the store.
						s.jump = jump
						open(t, s)
						more = s.calls >= jump

						s.stand()
						s.cut(from)
						follow := open(t, s)
						s.cut(at)
						// Files vanish while the reader follows.
						s.calls, s.jump = 0, jump
						require.GreaterOrEqual(t, follow(), p.moments[at].last, "files vanish before call %d", jump)
						more = more || s.calls >= jump
					}
				})
			}
		}
	}
}

// A player that cannot read new records returns an error from each Refresh. It continues as soon
// as it can read the records.
func TestPlayer_ReadErrors(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	past, rng := newPast(t, 1), rand.New(rand.NewPCG(1, 0x77))
	for range deep.Or(12, 60) {
		from := rng.IntN(len(past.moments) - 1)
		at := from + 1 + rng.IntN(len(past.moments)-from-1)
		for fail, more := 1, true; more; fail++ {
			s := &show{past: past}
			s.cut(from)
			w := storetest.New(0).World
			p, err := inspect.OpenPlayer(storetest.Background, ".", w, inspect.PlayerOptions{Files: s})
			require.NoError(t, err)
			require.NoError(t, p.Seek(storetest.Background, p.End()))
			s.Mem = s.moments[at].files.Clone()
			s.FailFrom(fail, broken)
			for range 2 {
				_, err := p.Refresh(storetest.Background)
				more = err != nil
			}
			s.FailFrom(0, nil)
			_, err = p.Refresh(storetest.Background)
			require.NoError(t, err)
			require.NoError(t, p.Seek(storetest.Background, p.End()))
			require.Equal(t, s.moments[at].last, p.Recorded().Seq, "from %d to %d, calls fail from %d", from, at, fail)
			require.Equal(t, s.digests[p.Recorded().Seq], storetest.Persistent(w))
		}
	}
}
