package format_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/persist/internal/format"
	"github.com/stet-ecs/stet/persist/internal/storetest"
)

// evolvedSchema is the newest format of a schema.
const evolvedSchema = 3

// evolvedSample returns a schema of components with former types.
func evolvedSample() *format.Schema {
	s := format.NewSchema()
	s.Add(format.Entry{Name: "a", Layout: &layout.Type{Kind: layout.Int8}, Version: 3, Former: []format.Former{
		{Name: "b", Version: 1, Layout: &layout.Type{Kind: layout.Bool}}, {Name: "a", Version: 2, Layout: &layout.Type{Kind: layout.Int16}},
	}})
	s.Add(format.Entry{Name: "c", Layout: &layout.Type{Kind: layout.Int8}, Indexed: true, Default: []byte{7}, Rewinds: true})
	return s
}

func TestSchema_RoundTripWithVersions(t *testing.T) {
	s := evolvedSample()
	encoded := s.Encode()
	got, err := format.DecodeSchema(encoded)
	require.NoError(t, err)
	require.Equal(t, s.Components[0].Former, got.Components[0].Former)
	require.Equal(t, encoded, got.Encode())
	for n := range encoded {
		_, err := format.DecodeSchema(encoded[:n])
		require.Error(t, err)
	}
}

func TestSchema_InvalidFormerTypeRefused(t *testing.T) {
	past := func(n int, entries ...any) []byte {
		described := (&layout.Type{Kind: layout.Int8}).Append(nil)
		head := storetest.Pack(storetest.Array(2), evolvedSchema, storetest.Array(1),
			storetest.Array(8), "it", described, false, true, false, []byte(nil), 3, storetest.Array(n))
		return append(head, storetest.Pack(entries...)...)
	}
	formerly := func(version uint64, described []byte) []any {
		return []any{storetest.Array(3), "that", version, described}
	}
	good := (&layout.Type{Kind: layout.Int16}).Append(nil)
	for name, tt := range map[string]struct {
		src  []byte
		want string
	}{
		"more former types than allowed": {append(past(format.MaxFormer+1), make([]byte, format.MaxFormer+1)...), "1025 former layouts, at most 1024"},
		"fewer former types than stated": {past(2, formerly(0, good)...), "schema: "},
		"a version past the last":        {past(1, formerly(1<<32, good)...), "version"},
		"an invalid layout":              {past(1, formerly(0, []byte{0xc1})...), `former layout of "that"`},
		"no layout":                      {past(1, formerly(0, nil)...), `former layout of "that"`},
		"entries of another length":      {past(1, storetest.Array(2), "that", 0), "schema: "},
		"bytes after the schema":         {append(past(0), 0), "schema: "},
		"a format that does not exist":   {append([]byte{0x92, evolvedSchema + 1}, past(0)[2:]...), "schema format 4"},
	} {
		t.Run(name, func(t *testing.T) {
			storetest.BoundedTightly(t, len(tt.src), func() {
				_, err := format.DecodeSchema(tt.src)
				require.ErrorContains(t, err, tt.want)
			})
		})
	}
	s, err := format.DecodeSchema(past(1, formerly(1<<32-1, good)...))
	require.NoError(t, err)
	require.Equal(t, uint32(1<<32-1), s.Components[0].Former[0].Version)
}
