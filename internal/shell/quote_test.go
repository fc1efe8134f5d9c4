package shell_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/stet-ecs/stet/internal/shell"
)

func TestQuote_SpecialCharacters(t *testing.T) {
	for _, test := range []struct{ in, want string }{
		{"saves/a-1.save", "saves/a-1.save"}, {"", "''"}, {"my store", "'my store'"}, {"it's", `'it'\''s'`}, {"$HOME", "'$HOME'"},
		{"head~3", "head~3"}, {"~", "'~'"}, {"~ann/a", "'~ann/a'"}, {`a\b`, `'a\b'`}, {"a\nb", "'a\nb'"}, {"größe", "'größe'"},
	} {
		assert.Equal(t, test.want, shell.Quote(test.in), "Quote(%q)", test.in)
	}
	assert.Equal(t, "ecsdump diff 'my store' b", shell.Command("ecsdump", "diff", "my store", "b"))
	assert.Empty(t, shell.Command())
}
