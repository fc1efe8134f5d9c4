package format

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/ecs/raw"
)

// anything returns a type whose rows are arbitrary bytes of length n.
func anything(n int) *layout.Type {
	return &layout.Type{Kind: layout.Array, Len: n, Elem: &layout.Type{Kind: layout.Uint8}}
}

// editedOnce returns the edits from the old row to the new one, or false if the row is stored
// whole.
func editedOnce(then, now []byte) ([]byte, bool) {
	var e EditedRows
	e.Add(3, then, now)
	return e.Edits, len(e.Ranges) > 0
}

// changed returns a random change of a row: in place, longer or shorter.
func changed(rng *rand.Rand, then []byte) []byte {
	now := bytes.Clone(then)
	for range rng.IntN(6) {
		at, n := rng.IntN(len(now)), 1+rng.IntN(20)
		switch rng.IntN(5) {
		case 0:
			now = append(now[:at:at], append(randomBytes(rng, n), now[at:]...)...)
		case 1:
			now = append(now[:at:at], now[min(at+n, len(now)-1):]...)
		default:
			copy(now[at:], randomBytes(rng, n))
		}
	}
	return now
}

// randomBytes returns bytes with few different values, so that equal bytes are frequent.
func randomBytes(rng *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.IntN(3))
	}
	return b
}

func TestEdits_RoundTrip(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 1))
	for range 3000 {
		then := randomBytes(rng, 1+raw.LargeRow+rng.IntN(600))
		now := changed(rng, then)
		edits, ok := editedOnce(then, now)
		if !ok {
			continue
		}
		require.Less(t, len(edits), len(now), "seed %d", seed)
		d := decoder{src: appendBin(edits)}
		require.Equal(t, edits, d.edits(1), "seed %d: %v", seed, d.err)
		got, rest, err := AppendEdited([]byte("x"), anything(len(now)), then, edits)
		require.NoError(t, err, "seed %d", seed)
		require.Empty(t, rest)
		require.Equal(t, append([]byte("x"), now...), got, "seed %d", seed)
		if len(then) == len(now) {
			require.Equal(t, spans(then, now), cut(t, edits), "seed %d", seed)
		}
	}
}

// spans computes the edits between rows of equal length byte by byte.
func spans(then, now []byte) (all [][2]int) {
	for i := range then {
		if then[i] == now[i] {
			continue
		}
		if k := len(all) - 1; k >= 0 && i-all[k][1] < editsApart {
			all[k][1] = i + 1
		} else {
			all = append(all, [2]int{i, i + 1})
		}
	}
	return all
}

// cut returns the start and end of each edit in the old row.
func cut(t *testing.T, edits []byte) (all [][2]int) {
	v := varints{src: edits}
	at := 0
	for range v.uint() {
		skipped, removed, _ := v.edit()
		from := at + int(skipped)
		at = from + int(removed)
		all = append(all, [2]int{from, at})
	}
	require.False(t, v.bad)
	return all
}

func appendBin(b []byte) []byte {
	e := NewEncoder()
	e.bin(b)
	return e.Buf
}

func TestEditedRows_StoresShorterForm(t *testing.T) {
	small, large := make([]byte, raw.LargeRow), make([]byte, raw.LargeRow+1)
	other := bytes.Repeat([]byte{1}, raw.LargeRow+1)
	for name, c := range map[string]struct{ then, now []byte }{
		"small":            {append([]byte{1}, small[1:]...), small},
		"new row is small": {large, small},
		"all changed":      {large, other},
	} {
		_, ok := editedOnce(c.then, c.now)
		require.False(t, ok, name)
	}
	edits, ok := editedOnce(large, large) // The row was written, but is unchanged.
	require.True(t, ok)
	require.Equal(t, []byte{0}, edits)
}

func TestEdits_OneByteOfLargeRow(t *testing.T) {
	then := bytes.Repeat([]byte{7}, 64<<10)
	now := bytes.Clone(then)
	now[40000] = 9
	edits, ok := editedOnce(then, now)
	require.True(t, ok)
	require.Len(t, edits, 7)
	edits, ok = editedOnce(then, append(append(bytes.Clone(then[:500]), 9, 9), then[500:]...))
	require.True(t, ok)
	require.Equal(t, []byte{1, 0xf4, 3, 0, 2, 9, 9}, edits)
}

func editBytes(numbers ...uint64) (b []byte) {
	for _, n := range numbers {
		b = binary.AppendUvarint(b, n)
	}
	return b
}

func TestEdits_InvalidRefused(t *testing.T) {
	for name, edits := range map[string][]byte{
		"none":                      {},
		"cut short":                 editBytes(1, 0, 1),
		"more edits than bytes":     editBytes(2, 0, 1, 1, 5),
		"far more edits than bytes": editBytes(1<<63, 0, 1, 1, 5),
		"an empty edit":             editBytes(1, 4, 0, 0),
		"too near to each other":    editBytes(2, 0, 1, 1, 5, 7, 1, 1, 5),
		"given past the end":        editBytes(1, 0, 1, 2, 5),
		"bytes after the edits":     editBytes(1, 0, 1, 1, 5, 9),
	} {
		d := decoder{src: appendBin(edits)}
		d.edits(1)
		require.Error(t, d.err, name)
	}
	row := bytes.Repeat([]byte{3}, 300)
	for name, edits := range map[string][]byte{
		"past the row":            editBytes(1, 301, 0, 1, 5),
		"past the end of the row": editBytes(1, 299, 2, 1, 5),
		"far past":                editBytes(1, 1<<63, 1<<63, 1, 5),
		"begins unchanged":        editBytes(1, 5, 2, 2, 3, 5),
		"ends unchanged":          editBytes(1, 5, 2, 2, 5, 3),
		"no row":                  editBytes(1, 5, 1, 2, 5, 5), // The old row has another length.
	} {
		d := decoder{src: appendBin(edits)}
		d.edits(1)
		require.NoError(t, d.err, name)
		_, _, err := AppendEdited(nil, anything(300), row, edits)
		require.Error(t, err, name)
	}
}

func TestStoragePatch_RowsWithEdits(t *testing.T) {
	row := func(b byte) []byte { return bytes.Repeat([]byte{b}, 300) }
	p := StoragePatch{
		Before: 9, After: 9,
		ValueRanges: []raw.Range{{First: 0, N: 1}, {First: 4, N: 2}}, Values: bytes.Join([][]byte{row(1), row(2), row(3)}, nil),
		EditRanges: []raw.Range{{First: 1, N: 2}, {First: 7, N: 1}}, Edits: append(editBytes(1, 0, 1, 1, 8, 0), editBytes(1, 299, 1, 1, 5)...),
	}
	require.Equal(t, []raw.Range{{First: 0, N: 3}, {First: 4, N: 2}, {First: 7, N: 1}}, p.Written())
	require.Equal(t, editBytes(1, 0, 1, 1, 8), p.EditsOf(1))
	require.Equal(t, editBytes(0), p.EditsOf(2))
	require.Nil(t, p.EditsOf(3))
	some := p.EditingOnly(func(row int) bool { return row != 2 })
	require.Equal(t, []raw.Range{{First: 1, N: 1}, {First: 7, N: 1}}, some.EditRanges)
	require.Equal(t, append(editBytes(1, 0, 1, 1, 8), editBytes(1, 299, 1, 1, 5)...), some.Edits)

	whole, err := p.Whole(anything(300), func(at int) []byte { return row(byte(100 + at)) })
	require.NoError(t, err)
	want := [][]byte{row(1), append([]byte{8}, row(101)[1:]...), row(102), row(2), row(3), append(row(107)[1:], 5)}
	require.Equal(t, p.Written(), whole.ValueRanges)
	require.Equal(t, bytes.Join(want, nil), whole.Values)
	require.Empty(t, whole.EditRanges)
	p.Values = p.Values[:301]
	_, err = p.Whole(anything(300), func(at int) []byte { return row(byte(100 + at)) })
	require.ErrorIs(t, err, ErrShort)
}

// FuzzApplyEdits applies arbitrary edits to a row.
func FuzzApplyEdits(f *testing.F) {
	row := bytes.Repeat([]byte{1, 2, 3}, 100)
	f.Add(editBytes(1, 5, 1, 1, 9), row)
	f.Add(editBytes(2, 0, 0, 1, 9, 8, 1, 0), row)
	f.Add(editBytes(0), row)
	f.Fuzz(func(t *testing.T, edits, row []byte) {
		d := decoder{src: appendBin(edits)}
		d.edits(1)
		if d.err != nil {
			return
		}
		now, rest, err := AppendEdited(nil, anything(len(row)), row, edits)
		require.LessOrEqual(t, len(now), len(row)+len(edits))
		if err != nil || len(row) <= raw.LargeRow {
			return
		}
		require.Empty(t, rest)
		again, ok := editedOnce(row, now)
		if !ok {
			return
		}
		twice, _, err := AppendEdited(nil, anything(len(row)), row, again)
		require.NoError(t, err)
		require.Equal(t, now, twice)
	})
}
