package dump

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestMan_PageForEachCommand(t *testing.T) {
	root := new(app).root(commands)
	pages := pagesOf(root)
	texts := map[string]string{}
	for _, p := range pages {
		assert.NotContains(t, texts, p.file)
		texts[p.file] = p.text
	}
	assert.Len(t, texts, 1+len(documentedCommands(root))+len(topics))
	for _, c := range documentedCommands(root) {
		text := texts["man1/ecsdump-"+c.Name()+".1"]
		assert.Contains(t, text, roffEscape(c.Short))
		assert.Contains(t, text, ".SH \"EXIT STATUS\"\n.PP\n.nf\n  0  success\n")
		assert.Contains(t, text, ".SH \"EXAMPLES\"\n")
		assert.Contains(t, texts["man1/ecsdump.1"], `\fBecsdump\-`+c.Name()+`\fR(1)`)
	}
	for _, topic := range topics {
		assert.Contains(t, texts["man7/ecsdump-"+topic.name+".7"], roffEscape(topic.title))
		assert.Contains(t, texts["man1/ecsdump-ls.1"], `\fBecsdump\-`+topic.name+`\fR(7)`)
	}
}

func TestMan_SamePagesEachTime(t *testing.T) {
	assert.Equal(t, pagesOf(new(app).root(commands)), pagesOf(new(app).root(commands)))
}

func TestMan_EscapesRoff(t *testing.T) {
	r := new(roff)
	r.prose(`
Two lines
of 'one' paragraph \n:

  ecsdump ls D --at @latest~10
  .hidden

.first
'second'
  as it is
and on.`)
	r.item(bold("-x"), ".5 of it")
	assert.Equal(t, strings.TrimPrefix(`
.PP
Two lines
of \(aqone\(aq paragraph \en:
.PP
.nf
  ecsdump ls D \-\-at @latest\(ti10
  .hidden
.fi
.PP
\&.first
\(aqsecond\(aq
.nf
  as it is
.fi
and on.
.TP
\fB\-x\fR
\&.5 of it
`, "\n"), r.String())
}
