package web

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/persist/inspect"
)

// damagedStore builds a store and damages its journal file. f gets the file and a function that
// returns the offset of a record.
func damagedStore(t *testing.T, f func(file *os.File, offset func(seq uint64) int64)) (dir string) {
	t.Helper()
	dir = build(t)
	v, err := inspect.OpenReadOnly(t.Context(), dir)
	require.NoError(t, err)
	file, err := os.OpenFile(filepath.Join(dir, "journal", "00000001.seg"), os.O_RDWR, 0)
	require.NoError(t, err)
	f(file, func(seq uint64) int64 {
		e, ok := v.Log().Find(seq)
		require.True(t, ok, "record %d", seq)
		return e.Offset
	})
	require.NoError(t, file.Close())
	require.NoError(t, v.Close())
	return dir
}

func number(seq uint64) string { return strconv.FormatUint(seq, 10) }

// requireNewest requires that all requests of the page agree on the newest record.
func requireNewest(t *testing.T, c *client, seq, tick uint64) {
	t.Helper()
	for name, doc := range map[string]any{"info": at(c.ask("info"), "newest"), "resolve": c.ask("resolve?at=@latest"), "news": c.h.following.latest()} {
		if news, ok := doc.(newsDoc); ok {
			doc = map[string]any{"record": float64(news.Seq), "tick": float64(news.Tick)}
		}
		require.EqualValues(t, seq, at(doc, "record"), name)
		require.EqualValues(t, tick, at(doc, "tick"), name)
	}
	doc := c.ask("resolve?at=@latest")
	require.Equal(t, true, doc["head"])
	require.Equal(t, false, doc["rewound"], "the newest state must not count as rewound")
	require.Nil(t, doc["next"])
	require.NotZero(t, c.ask("entities?record=" + number(seq) + "&limit=1")["found"])
}

// The journal is cut short. A snapshot has a newer state than all remaining records.
func TestNewestState_JournalCutShort(t *testing.T) {
	for _, first := range []uint64{6, 7} { // first is the first incomplete record.
		dir := damagedStore(t, func(file *os.File, offset func(seq uint64) int64) {
			require.NoError(t, file.Truncate(offset(first)+60))
		})
		c := serve(t, dir)
		require.Contains(t, c.ask("info")["damaged"], "corrupt")
		requireNewest(t, c, 7, 7)
		require.EqualValues(t, 7, c.ask("resolve?at=7")["record"], "tick 7 must be found")
		for seq := uint64(1); seq < first; seq++ {
			doc := c.ask("resolve?at=record:" + number(seq))
			require.Equal(t, false, doc["head"], "record %d of %d", seq, first-1)
			require.Equal(t, false, doc["rewound"], "record %d of %d", seq, first-1)
		}
		require.EqualValues(t, 0, c.ask("health")["rewound"])
		require.Contains(t, at(c.ask("health"), "helps"), "ecsdump recover 'my store' -o 'my store.recovered'")
	}
}

// The test damages a record in the middle of the journal, and the snapshot after it.
func TestNewestState_JournalDamaged(t *testing.T) {
	dir := damagedStore(t, func(file *os.File, offset func(seq uint64) int64) {
		_, err := file.WriteAt([]byte{0xff, 0xff, 0xff}, offset(4)+60)
		require.NoError(t, err)
	})
	require.NoError(t, os.Truncate(filepath.Join(dir, "snapshots", "00000002.snap"), 4096))
	c := serve(t, dir)
	requireNewest(t, c, 3, 3)
	require.EqualValues(t, 2, c.ask("resolve?at=@latest~1")["record"])
	require.EqualValues(t, 3, c.ask("resolve?at=2&step=5")["record"], "steps must end at the newest state")
	for seq, rewound := range map[uint64]bool{2: false, 5: false, 9: true, 20: false} {
		require.Equal(t, rewound, c.ask("resolve?at=record:" + number(seq))["rewound"], "record %d", seq)
	}
	require.EqualValues(t, 3, c.ask("health")["rewound"])
}

// Health must suggest only commands that can recover something. It may suggest a partial recovery
// only if a damaged snapshot has readable pages.
func TestHealth_SuggestsRecover(t *testing.T) {
	helps := func(name string, damage func(dir string)) []any {
		dir := build(t)
		damage(dir)
		c := serve(t, dir)
		health, verify := c.ask("health"), c.ask("verify")
		require.Equal(t, false, health["opens"], name)
		require.Equal(t, at(verify, "helps"), slicesWithout(at(health, "helps").([]any), "ecsdump verify 'my store'"), name)
		return at(verify, "helps").([]any)
	}
	base, camp := filepath.Join("snapshots", "00000001.snap"), filepath.Join("snapshots", "00000002.snap")
	require.Empty(t, helps("nothing is left", func(dir string) {
		require.NoError(t, os.Remove(filepath.Join(dir, base)))
		require.NoError(t, os.Truncate(filepath.Join(dir, camp), 4096))
	}))
	require.Equal(t, []any{"ecsdump recover 'my store' -o 'my store.recovered'"}, helps("the journal is gone", func(dir string) {
		require.NoError(t, os.RemoveAll(filepath.Join(dir, "journal")))
	}))
}

// slicesWithout returns list without element.
func slicesWithout(list []any, element any) []any {
	left := []any{}
	for _, e := range list {
		if e != element {
			left = append(left, e)
		}
	}
	return left
}
