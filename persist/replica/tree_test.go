package replica

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/disk/disktest"
)

// What was written here under the name of a file that comes stays if it begins with what comes, and is
// set aside if it does not: also if it is only shorter.
func TestAFileThatComesMeetsOneOfItsName(t *testing.T) {
	const name = "journal/00000002.seg"
	sent := bytes.Repeat([]byte("0123456789abcdef"), 12<<10) // More than is compared at once.
	changed := bytes.Clone(sent)
	changed[100<<10]++
	for what, here := range map[string]struct {
		content []byte
		stays   bool
	}{
		"the same":          {sent, true},
		"more":              {append(bytes.Clone(sent), "more"...), true},
		"a byte less":       {sent[:len(sent)-1], false},
		"a block":           {sent[:64<<10], false},
		"nothing":           {nil, false},
		"another byte late": {changed, false},
	} {
		t.Run(what, func(t *testing.T) {
			mem := disktest.New()
			a := &aside{top: mem}
			x := newTree(mem, storeDir, a)
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
			require.NoError(t, x.apply(&op{kind: opPart, name: name, data: sent}))
			require.NoError(t, x.apply(&op{kind: opWhole, name: name, number: uint64(len(sent))}))
			require.EqualValues(t, len(sent), x.sizes[name])
			if here.stays {
				require.Empty(t, a.dir)
				require.Equal(t, here.content, mem.Bytes(x.path(name)))
				return
			}
			require.Equal(t, sent, mem.Bytes(x.path(name)))
			require.Equal(t, len(here.content), len(mem.Bytes(a.dir+"/"+name)))
			require.True(t, bytes.Equal(here.content, mem.Bytes(a.dir+"/"+name)))
			require.Equal(t, sent, mem.Crash().Bytes(x.path(name)), "it is durable under its name")
		})
	}
}

// A state that was written is there after a crash, and never half of one.
func TestAStateThatWasWrittenOutlivesACrash(t *testing.T) {
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
