package layout

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestConversion_InvalidRows(t *testing.T) {
	fixed := func(k Kind) *Type {
		return &Type{Kind: Struct, Fields: []Field{{"A", &Type{Kind: k}}, {"B", &Type{Kind: Bool}}}}
	}
	varying := func(k Kind) *Type { return &Type{Kind: Slice, Elem: &Type{Kind: k}} }
	for name, tt := range map[string]struct {
		from, to  *Type
		good, bad []byte
	}{
		"a bool of 2":              {fixed(Int8), fixed(Int16), []byte{1, 1}, []byte{1, 2}},
		"a bool of 2, the same":    {fixed(Int8), fixed(Int8), []byte{1, 1}, []byte{1, 2}},
		"too many bytes":           {fixed(Int8), fixed(Int16), []byte{1, 1}, []byte{1, 1, 1}},
		"too many bytes of slices": {varying(Int8), varying(Int16), []byte{0x91, 1}, []byte{0x91, 1, 1}},
		"too few bytes of slices":  {varying(Int8), varying(Int16), []byte{0x91, 1}, []byte{0x91}},
		"slices, the same":         {varying(Int8), varying(Int8), []byte{0x91, 1}, []byte{0x91, 1, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := NewConversion(tt.from, tt.to)
			require.NoError(t, err)
			_, err = c.Append(nil, tt.good, 1)
			require.NoError(t, err)
			out, err := c.Append([]byte("before"), tt.bad, 1)
			var wrong *DataError
			require.ErrorAs(t, err, &wrong)
			require.Equal(t, "before", string(out))
		})
	}
}
