package term

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// A Bar shows on standard error how far something that takes long has come:
//
//	replaying ticks      [=======>            ]  41%
//
// It appears after a second and goes when results are printed, for those may be on
// the same terminal.
type Bar struct {
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

// NewBar returns a bar on w that lasts until o prints something, if both are
// terminals; nil if there is to be none. What is quiet has one only if it must.
func (o *Out) NewBar(w io.Writer, progress When, quiet bool) *Bar {
	t := terminalOf(w)
	if !progress.is(t.is && !quiet) {
		return nil
	}
	b := newBar(w, t.width, time.Now)
	if terminalOf(o.screen.out).is {
		o.screen.began = b.End
	}
	return b
}

// newBar returns a bar whose clock tests can set.
func newBar(w io.Writer, width int, now func() time.Time) *Bar {
	return &Bar{w: w, width: width, now: now, start: now()}
}

// Show draws how much of a phase is done, if it is time to.
func (b *Bar) Show(phase string, done, total int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	if b.over || now.Sub(b.start) < barDelay || !b.drawn.IsZero() && now.Sub(b.drawn) < barEvery {
		return
	}
	b.drawn = now
	// Back to the beginning of the line, and what may be left of a longer one is cleared. The last
	// column stays free: in it, terminals go on to the next line.
	fmt.Fprintf(b.w, "\r%s\x1b[K", cutTo(max(b.width-1, 0), barText(phase, done, total)))
}

// End takes the bar off the terminal for good. It does no harm twice.
func (b *Bar) End() {
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

// barText returns a line of fixed width: what is drawn over is covered.
func barText(phase string, done, total int64) string {
	share := 1.0
	if total > 0 {
		share = min(1, max(0, float64(done)/float64(total)))
	}
	full := int(share * barWidth)
	head := ">"
	if full == barWidth {
		head = ""
	}
	line := strings.Repeat("=", full) + head
	return fmt.Sprintf("%-20s [%-*s] %3d%%", phase, barWidth, line, int(share*100))
}
