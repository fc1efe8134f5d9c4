package replica_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/disk/disktest"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/replica"
)

func version(program string, reads, writes uint64) replica.Options {
	return replica.Options{Name: program, Version: replica.Version{Program: program, Reads: reads, Writes: writes}}
}

// A program that is too old for the store cannot claim, so it does not fence the newer owner.
func TestClaim_OlderProgram(t *testing.T) {
	log := &replica.Memory{}
	standby := follow(t, log, disktest.New(), version("game 1", 1, 1))
	_, o, store := own(t, follow(t, log, disktest.New(), version("game 2", 2, 2)))
	require.NoError(t, standby.Wait(background, o.Position()))
	at := o.Position()

	_, err := standby.Claim(background)
	require.ErrorIs(t, err, persist.ErrNewer)
	assert.ErrorContains(t, err, `"game 2" has written state 2, and this program reads up to 1`)
	assert.Equal(t, replica.Operator, replica.ClassOf(err))
	_, last, err := log.Bounds(background)
	require.NoError(t, err)
	assert.Equal(t, at, last, "nothing was appended")
	require.NoError(t, store.Sync(background), "the owner was not fenced")

	// Claim also fails after a Rebase, on the same machine and on a new machine.
	require.NoError(t, o.Rebase(background))
	for _, f := range []*replica.Follower{standby, follow(t, log, disktest.New(), version("game 1", 1, 1))} {
		require.NoError(t, f.Wait(background, o.Position()))
		_, err = f.Claim(background)
		require.ErrorIs(t, err, persist.ErrNewer)
	}
	require.NoError(t, store.Sync(background))
}

func TestClaim_OlderProgramAfterRestart(t *testing.T) {
	log, files := &replica.Memory{}, disktest.New()
	old := follow(t, log, files, version("game 1", 1, 1))
	_, o, store := own(t, follow(t, log, disktest.New(), version("game 2", 2, 2)))
	require.NoError(t, old.Wait(background, o.Position()))
	require.NoError(t, old.Close())
	require.NoError(t, store.Close(background))
	require.NoError(t, o.Close())
	old = follow(t, log, files, version("game 1", 1, 1))
	_, err := old.Claim(background)
	require.ErrorIs(t, err, persist.ErrNewer)
	require.NoError(t, old.Close())
}

// In a rolling deployment, every machine can become the owner until the first claim with the new
// state. After that claim, only new programs can.
func TestVersion_RollingDeployment(t *testing.T) {
	log := &replica.Memory{}
	files := []disk.FS{disktest.New(), disktest.New()}
	claim := func(i int, o replica.Options) (writes uint64) {
		t.Helper()
		f := follow(t, log, files[i], o)
		owner, err := f.Claim(background)
		require.NoError(t, err)
		assert.Equal(t, f.Writes(), owner.Writes())
		require.NoError(t, owner.Close())
		return owner.Writes()
	}
	assert.EqualValues(t, 1, claim(0, version("old", 1, 1)))
	assert.EqualValues(t, 1, claim(1, version("new", 2, 1)))
	assert.EqualValues(t, 1, claim(0, version("old", 1, 1)), "an old program may claim again")
	assert.EqualValues(t, 1, claim(0, version("new", 2, 1)))
	assert.EqualValues(t, 2, claim(1, version("new", 2, 2)))
	assert.EqualValues(t, 2, claim(0, version("new", 2, 1)), "the new state is written from here on")
	f := follow(t, log, files[1], version("old", 1, 1))
	_, err := f.Claim(background)
	require.ErrorIs(t, err, persist.ErrNewer)
	require.NoError(t, f.Close())
}

func TestVersion_WriteAboveReadRefused(t *testing.T) {
	for _, o := range []replica.Options{version("a", 1, 2), version(strings.Repeat("a", 256), 1, 1)} {
		_, err := replica.Follow(background, &replica.Memory{}, disktest.New(), o)
		assert.ErrorContains(t, err, "replica: Options.Version: ")
	}
}

// storeFormat must be increased with the versions of the files.
func TestStoreFormat_RaisedWithFileVersions(t *testing.T) {
	const advice = "raise storeFormat in version.go if an older program cannot open the store, and repair this test"
	for file, line := range map[string]string{
		"../../journal/segment.go":        `segmentVersion += 2\b`,
		"../../journal/ledger.go":         `ledgerVersion += 2\b`,
		"../internal/pagefile/meta.go":    `boltVersion += 2\b`,
		"../internal/pagefile/trailer.go": `formatVersion += 1\b`,
	} {
		b, err := os.ReadFile(file)
		require.NoError(t, err)
		assert.Regexp(t, line, string(b), advice)
	}
}

// A log that was removed and created again is not the log that a machine follows, even if it is
// longer. The machine's store remains until an operator decides.
func TestFollow_LogRecreated(t *testing.T) {
	files := disktest.New()
	first := &replica.Memory{}
	g, o, store := own(t, follow(t, first, files, replica.Options{}))
	for range 5 {
		g.play(t, store)
	}
	require.NoError(t, store.Close(background))
	require.NoError(t, o.Close())

	second := &replica.Memory{}
	h, p, other := own(t, follow(t, second, disktest.New(), replica.Options{}))
	for p.Position() < o.Position()+20 {
		h.play(t, other)
		require.NoError(t, other.Sync(background))
	}
	// The new log looks like the first log with its oldest entries trimmed.
	require.NoError(t, p.Rebase(background))
	_, err := replica.Follow(background, second, files, replica.Options{}.Patient(1))
	require.ErrorIs(t, err, persist.ErrForeign)
	assert.ErrorContains(t, err, "created again")
	assert.Equal(t, replica.Operator, replica.ClassOf(err))

	back := follow(t, first, files, replica.Options{})
	_, bytes := back.Aside()
	assert.Zero(t, bytes, "the quarantine must be empty")
	assert.True(t, back.Ready())
	require.NoError(t, back.Close())

	f := follow(t, second, files, replica.Options{Forget: true})
	require.NoError(t, f.Wait(background, p.Position()))
	dir, bytes := f.Aside()
	assert.NotEmpty(t, dir)
	assert.NotZero(t, bytes)
	require.NoError(t, f.Close())
}
