package dump

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/stet-ecs/stet/persist"
)

// A bar shows on standard error how far something that takes long has come:
//
//	replaying ticks      [=======>            ]  41%
//
// It appears after a second and goes when results are printed, for those may be on
// the same terminal.
type bar struct {
	w     io.Writer
	width int // Columns of the terminal.
	now   func() time.Time

	mu    sync.Mutex
	start time.Time
	drawn time.Time // Zero: nothing is shown.
	over  bool
}

const (
	barDelay = time.Second
	barEvery = 100 * time.Millisecond
	barWidth = 30 // Columns between the brackets.
)

func newBar(w io.Writer, width int, now func() time.Time) *bar {
	return &bar{w: w, width: width, now: now, start: now()}
}

// show draws p, if it is time to.
func (b *bar) show(p persist.Progress) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	if b.over || now.Sub(b.start) < barDelay || !b.drawn.IsZero() && now.Sub(b.drawn) < barEvery {
		return
	}
	b.drawn = now
	fmt.Fprintf(b.w, "\r%s\x1b[K", cutTo(max(b.width-1, 0), barText(p)))
}

// end takes the bar off the terminal for good. It does no harm twice.
func (b *bar) end() {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.over = true; !b.drawn.IsZero() {
		fmt.Fprint(b.w, "\r\x1b[K")
		b.drawn = time.Time{}
	}
}

// barText returns the line for p.
func barText(p persist.Progress) string {
	share := 1.0
	if p.Total > 0 {
		share = min(1, max(0, float64(p.Done)/float64(p.Total)))
	}
	full := int(share * barWidth)
	head := ">"
	if full == barWidth {
		head = ""
	}
	line := strings.Repeat("=", full) + head
	return fmt.Sprintf("%-20s [%-*s] %3d%%", p.Phase, barWidth, line, int(share*100))
}
