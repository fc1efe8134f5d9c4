package replica

import (
	"bytes"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/disk/disktest"
)

// An existing file of the store remains if it begins with the bytes that the log sends. Otherwise
// the sent file replaces it, and the different bytes are quarantined.
func TestReplicaFiles_SentFileAlreadyExists(t *testing.T) {
	const name = "journal/00000002.seg"
	// The file has more bytes than one comparison reads.
	sent := bytes.Repeat([]byte("0123456789abcdef"), 12<<10)
	changed := bytes.Clone(sent)
	changed[100<<10]++
	for what, here := range map[string]struct {
		content []byte
		stays   bool
		from    int // Offset of the first difference.
	}{
		"the same":          {sent, true, 0},
		"more":              {append(bytes.Clone(sent), "more"...), true, 0},
		"a byte less":       {sent[:len(sent)-1], false, len(sent) - 1},
		"a block":           {sent[:64<<10], false, 64 << 10},
		"nothing":           {nil, false, 0},
		"another byte late": {changed, false, 100 << 10},
		"more, and another": {append(bytes.Clone(changed), "more"...), false, 100 << 10},
	} {
		t.Run(what, func(t *testing.T) {
			mem := disktest.New()
			a := &quarantine{top: mem}
			x := newReplicaFiles(mem, storeDir, a)
			require.NoError(t, x.make())
			put := func(content []byte) {
				f, err := mem.Create(x.path(name))
				require.NoError(t, err)
				_, err = f.WriteAt(content, 0)
				require.NoError(t, err)
				require.NoError(t, f.Sync())
				require.NoError(t, f.Close())
			}
			put(here.content)
			require.NoError(t, x.applyOp(&op{kind: opPart, name: name, data: sent}))
			require.NoError(t, x.applyOp(&op{kind: opWhole, name: name, number: uint64(len(sent))}))
			require.EqualValues(t, len(sent), x.sizes[name])
			if here.stays {
				require.Empty(t, a.dir)
				require.Equal(t, here.content, mem.Bytes(x.path(name)))
				return
			}
			require.Equal(t, sent, mem.Bytes(x.path(name)))
			if here.from == len(here.content) {
				require.Empty(t, a.dir)
			} else {
				require.True(t, bytes.Equal(here.content[here.from:], mem.Bytes(fmt.Sprintf("%s/%s.from-%d", a.dir, name, here.from))))
			}
			require.Equal(t, sent, mem.Crash().Bytes(x.path(name)), "the file must be durable under its name")
		})
	}
}

// After a crash, the old or the new state is complete.
func TestState_WriteIsAtomicAtCrash(t *testing.T) {
	mem := disktest.New()
	for n := range uint64(5) {
		require.NoError(t, (&state{Term: n, Files: map[string]int64{"journal/1.seg": int64(n)}}).write(mem))
		after := mem.Crash()
		s, err := readState(after)
		require.NoError(t, err)
		require.NotNil(t, s)
		require.Equal(t, n, s.Term)
	}
}

// A state may be written between two parts of a file. Before a crash, the file may already get its
// name, or be removed again. When the operations are applied again, the temporary file is missing.
func TestReplicaFiles_EntriesRepeatedAfterCrash(t *testing.T) {
	const name = "snapshots/00000002.snap"
	ops := []op{
		{opPart, name, 0, []byte("01234")},
		{opPart, name, 5, []byte("56789")},
		{kind: opWhole, name: name, number: 10},
		{opWrite, name, 10, []byte("x")},
		{kind: opRemove, name: name},
	}
	for known := range len(ops) { // The number of operations that the state includes.
		for reached := known; reached <= len(ops); reached++ {
			mem := disktest.New()
			x := newReplicaFiles(mem, storeDir, &quarantine{top: mem})
			require.NoError(t, x.make())
			var sizes, parts map[string]int64
			for i := range reached {
				if i == known {
					sizes, parts = maps.Clone(x.sizes), maps.Clone(x.parts)
				}
				require.NoError(t, x.applyOp(&ops[i]))
			}
			require.NoError(t, x.sync())
			again := newReplicaFiles(mem, storeDir, &quarantine{top: mem})
			maps.Copy(again.sizes, sizes)
			maps.Copy(again.parts, parts)
			if known == reached {
				again = x
			}
			for i := known; i < len(ops); i++ {
				require.NoError(t, again.applyOp(&ops[i]), "operation %d, from %d on, after a crash after operation %d", i, known, reached)
				if i >= 2 && i < 4 && reached < 5 {
					require.Equal(t, "0123456789x"[:10+i-2], string(mem.Bytes(x.path(name)))[:10+i-2])
				}
			}
			require.NoError(t, again.tidyDirs())
			require.Empty(t, again.sizes)
			require.Empty(t, again.aside.dir)
		}
	}
}

// A quarantined file is not quarantined again when all entries are read again.
func TestQuarantine_SameBytesOnlyOnce(t *testing.T) {
	const name = "journal/00000001.seg"
	mem := disktest.New()
	x := newReplicaFiles(mem, storeDir, &quarantine{top: mem})
	require.NoError(t, x.make())
	require.NoError(t, writeFile(mem, x.path(name), strings.NewReader("never confirmed")))
	x.sizes[name] = 0
	require.NoError(t, x.applyOp(&op{opWrite, name, 0, []byte("the log's")}))
	require.NoError(t, x.aside.move(x, name))
	require.Equal(t, "never confirmed", string(mem.Bytes("aside/1/"+name+".from-0")))
	require.Nil(t, mem.Bytes(x.path(name)))
}

// The file state has an unfinished file that is missing on this machine, because it got its name
// before a crash. The follower reads all entries again, because a later entry may name the file.
func TestTidyDirs_UnfinishedFileMissing(t *testing.T) {
	const name = "snapshots/00000001.snap"
	mem := disktest.New()
	x := newReplicaFiles(mem, storeDir, &quarantine{top: mem})
	require.NoError(t, x.make())
	x.parts[name] = 5
	require.ErrorIs(t, x.tidyDirs(), errGap)
	require.NoError(t, writeFile(mem, x.path(name+tempSuffix), strings.NewReader("01234")))
	require.NoError(t, x.tidyDirs())
	require.NoError(t, writeFile(mem, x.path(name), strings.NewReader("01234")))
	require.NoError(t, mem.Remove(x.path(name+tempSuffix)))
	require.ErrorIs(t, x.tidyDirs(), errGap)
}
