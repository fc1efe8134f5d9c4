package format_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/persist/internal/format"
	"github.com/stet-ecs/stet/persist/internal/storetest"
)

func TestNotes_InvalidRefused(t *testing.T) {
	encode := func(values []any) []byte {
		plain := storetest.Payload(new(format.Tick))
		plain[1] = 2 // The format of ticks with notes.
		return append(plain[:len(plain)-2], storetest.Pack(values...)...)
	}
	type array = storetest.Array
	noted := func(values ...any) []any { return append([]any{array(3), []byte(nil)}, values...) }
	tooMany := []any{array(257)}
	for range 257 {
		tooMany = append(tooMany, "a")
	}
	for name, lie := range map[string][]any{
		"operations alone":                  {[]byte(nil)},
		"no notes":                          noted(array(0), array(0)),
		"no inputs":                         {array(2), []byte(nil), array(1), "a"},
		"more marks than bytes":             noted(array(1 << 30)),
		"too many marks":                    noted(append(tooMany, array(0))...),
		"a mark of bytes":                   noted(array(1), []byte("a"), array(0)),
		"a mark without a name":             noted(array(1), "", array(0)),
		"a mark with an escape sequence":    noted(array(1), "\x1b[2J", array(0)),
		"an input with a control character": noted(array(0), array(1), array(2), "\x00", []byte(nil)),
		"an input of three":                 noted(array(0), array(1), array(3), "a", []byte(nil), nil),
		"an input that is nil":              noted(array(0), array(1), array(2), "a", nil),
		"an input cut short":                noted(array(0), array(1), array(2), "a", storetest.Cut(5)),
		"a value after the inputs":          noted(array(1), "a", array(0), array(0)),
	} {
		payload := encode(lie)
		storetest.BoundedTightly(t, len(payload), func() {
			_, err := format.DecodeTick(payload)
			require.Error(t, err, name)
			require.NotErrorIs(t, err, format.ErrNewer, name)
		})
	}
	good, err := format.DecodeTick(encode(noted(array(1), "a", array(0))))
	require.NoError(t, err)
	require.Equal(t, []string{"a"}, good.Marks)
}
