package dump

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/internal/query"
)

func TestWithMark_LongExpression(t *testing.T) {
	shown := func(text string, at int) (line, caret string) {
		lines := strings.Split(withMark(&query.Error{What: "--where", Message: "no", Text: text, At: at}).Error(), "\n")
		require.Len(t, lines, 3)
		assert.Equal(t, "--where: no", lines[0])
		return lines[1][4:], lines[2][4:]
	}
	line, caret := shown(strings.Repeat("é ", 500)+"\tx", 1001)
	assert.True(t, strings.HasSuffix(line, "é  x"), line)
	assert.Equal(t, strings.LastIndex(line, "x"), strings.Index(caret, "^")+strings.Count(line, "é"))
	line, caret = shown("", 7)
	assert.Equal(t, "", line)
	assert.Equal(t, "^", caret)
}
