package term

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// A Bar shows the progress of a long operation on standard error:
//
//	replaying ticks      [=======>            ]  41%
//
// It appears after a second. It is removed before results are printed, because results may go to
// the same terminal.
type Bar struct {
	w     io.Writer
	width int // Columns of the terminal.
	now   func() time.Time

	mu    sync.Mutex
	start time.Time
	drawn time.Time // The time of the last drawing. Zero if no bar is drawn.
	over  bool
}

const (
	barDelay = time.Second
	barEvery = 100 * time.Millisecond
	barWidth = 30 // Columns between the brackets.
)

// NewBar returns a progress bar on w, or nil if progress turns the bar off. With [Auto], it returns
// nil if w is no terminal, or if quiet is set. If the results go to a terminal, the first result
// removes the bar.
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

// newBar returns a bar with its own clock, for tests.
func newBar(w io.Writer, width int, now func() time.Time) *Bar {
	return &Bar{w: w, width: width, now: now, start: now()}
}

// Show draws the progress of a phase. It draws nothing in the first second, or if the last drawing
// is too recent.
func (b *Bar) Show(phase string, done, total int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	if b.over || now.Sub(b.start) < barDelay || !b.drawn.IsZero() && now.Sub(b.drawn) < barEvery {
		return
	}
	b.drawn = now
	// Return to the start of the line, and clear the line's remaining text. The last column remains
	// free, because terminals wrap there.
	fmt.Fprintf(b.w, "\r%s\x1b[K", cutTo(max(b.width-1, 0), barText(phase, done, total)))
}

// End removes the bar permanently. It can be called several times, and on nil.
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

// barText returns a line of fixed width, so that each line overwrites the previous one.
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
