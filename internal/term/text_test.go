package term

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/mattn/go-runewidth"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTextWidth_UnicodeCharacters(t *testing.T) {
	var runes []rune
	for r := rune(' '); r < 0x2600; r++ {
		if r < 0x7f || alone(r) {
			runes = append(runes, r)
		}
	}
	joining := []rune("\u0301\u200d\ufe0f🧔‍♂️🇩🇪각👩🏽\u00ad漢")
	rng := rand.New(rand.NewPCG(1, 2))
	for n := range 20000 {
		var text []rune
		for range rng.IntN(6) {
			text = append(text, runes[rng.IntN(len(runes))])
		}
		if n%2 == 0 {
			text = append(text, joining[rng.IntN(len(joining))], 'a')
		}
		require.Equal(t, runewidth.StringWidth(string(text)), Width(string(text)), "%q", string(text))
	}
	for _, r := range runes { // Testing all pairs of runes would take too long.
		for _, other := range []rune{'a', '→', '©', r} {
			s := string([]rune{r, other, r})
			require.Equal(t, runewidth.StringWidth(s), Width(s), "%q", s)
		}
	}
}

func TestText_FoldsLongLines(t *testing.T) {
	var b bytes.Buffer
	o := NewOut(&b, nil)
	o.Width = 20
	o.Text("A paragraph of lines\nthat are too long for it.\n\nShort\nlines.\n\nFlags:\n  -n, --limit uint   many words here\n  -a  of them many more\n")
	require.NoError(t, o.Close())
	assert.Equal(t, "A paragraph of lines\nthat are too long\nfor it.\n\nShort\nlines.\n\nFlags:\n  -n, --limit uint\n  many words here\n  -a  of them many\n      more\n\n", b.String())
}
