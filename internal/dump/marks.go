package dump

import (
	"context"
	"encoding/hex"
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/stet-ecs/stet/internal/term"
	"github.com/stet-ecs/stet/persist"
)

// A markDoc is a name that the program gave a tick.
type markDoc struct {
	Name string    `json:"name"` // mark:NAME is the point in time.
	Tick uint64    `json:"tick"`
	Seq  uint64    `json:"seq"`
	Time time.Time `json:"time"`
	Head bool      `json:"head"` // The newest state comes from this tick, or is it.
}

// An inputDoc is what the program journaled with a tick.
type inputDoc struct {
	Name string `json:"name"`
	Data []byte `json:"data"` // In base64.
}

// marks describes the marks in the journal.
func (s *source) marks(ctx context.Context) (docs []markDoc, err error) {
	marks, err := s.Marks(ctx)
	for _, m := range marks {
		docs = append(docs, markDoc{m.Name, m.Tick, m.Seq, m.Time, m.OnHead})
	}
	return docs, err
}

// shownMarks is how many marks people are shown: the newest.
const shownMarks = 20

// marks prints the newest marks for people.
func (a *app) marks(marks []markDoc) {
	a.Line("")
	if earlier := len(marks) - shownMarks; earlier > 0 {
		a.Line("%s before these; --json lists all", term.Count(earlier, "mark", "marks"))
		marks = marks[earlier:]
	}
	g := a.Grid("MARK", ">TICK", ">RECORD", "TIME", "NOTE")
	for _, m := range marks {
		note := ""
		if !m.Head {
			note = rewound
		}
		g.Row(m.Name, m.Tick, m.Seq, m.Time.Format(time.RFC3339), note)
	}
	g.Flush()
}

// inputs describes the inputs of c.
func inputs(c *persist.Commit) (docs []inputDoc) {
	for _, in := range c.Inputs {
		docs = append(docs, inputDoc(in))
	}
	return docs
}

// String returns i on one line: as text if it is text, else in hexadecimal digits.
func (i inputDoc) String() string {
	const shown = 64
	data, more := i.Data, ""
	if len(data) > shown {
		data, more = data[:shown], "… of "+term.Size(int64(len(i.Data)))
	}
	text := hex.EncodeToString(data)
	if utf8.Valid(i.Data) {
		text = strconv.Quote(string(data))
	}
	return fmt.Sprintf("input %s %s%s", i.Name, text, more)
}
