package dump

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/persist/inspect"
)

// A writerDoc is a tick that wrote something. If it is not exact, the tick is the
// oldest one that was looked at, and it was written then or before.
type writerDoc struct {
	Tick  uint64     `json:"tick"`
	Seq   uint64     `json:"seq"`
	Time  *time.Time `json:"time,omitempty"`
	Exact bool       `json:"exact"`
}

// String returns w for people: "tick 3", "at or before tick 3".
func (w *writerDoc) String() string {
	if !w.Exact {
		return fmt.Sprintf("at or before tick %d", w.Tick)
	}
	return fmt.Sprintf("tick %d", w.Tick)
}

// unless returns w for people; nothing if it is other.
func (w *writerDoc) unless(other *writerDoc) string {
	if w.Seq == other.Seq && w.Exact == other.Exact {
		return ""
	}
	return w.String()
}

// A blamer works out which ticks wrote what an entity has, from the newest back.
type blamer struct {
	number int   // Of the only component of interest, or allComponents.
	bytes  int64 // How many bytes of ticks to read, but for those that must be; 0: any.

	last       *inspect.EntityState
	components map[int]*writers // By number: those that it has.
}

// writers are the ticks that wrote a component last.
type writers struct {
	written writer
	fields  []fieldWriter
	begun   bool // An older event is about another component.
}

// A fieldWriter is the tick that gave a field the value it has.
type fieldWriter struct {
	path    string
	value   layout.Value
	changed writer
}

// A writer is a tick. It is known, or all ticks from it on did not write.
type writer struct {
	known bool
	seq   uint64
	tick  uint64
	time  time.Time
}

func (w *writer) doc() *writerDoc {
	return &writerDoc{w.tick, w.seq, known(w.time), w.known}
}

// at notes that e wrote, unless a later event did.
func (w *writer) at(e *inspect.TraceEvent) {
	if !w.known {
		*w = writer{true, e.Seq, e.Tick, e.Time}
	}
}

// notSince notes that nothing after the state s wrote.
func (w *writer) notSince(s *inspect.EntityState) {
	if !w.known {
		*w = writer{seq: s.Seq, tick: s.Tick}
	}
}

// errNoStretch says that there is nothing to look at, which cannot be.
var errNoStretch = errors.New("no state to begin with")

// look reads the journal back from record seq, until all is known or there is no
// more to read.
func (b *blamer) look(ctx context.Context, s *source, e ecs.Entity, seq uint64) error {
	read := int64(0)
	err := s.TraceBack(ctx, e, seq, func(stretch *inspect.Stretch) bool {
		if b.last == nil {
			b.begin(stretch.Last)
		} else {
			read += stretch.Bytes
		}
		for _, event := range slices.Backward(stretch.Events) {
			b.take(&event)
		}
		return !b.stop(stretch.First) && (b.bytes == 0 || read < b.bytes)
	})
	if err == nil && b.last == nil {
		return errNoStretch
	}
	return err
}

// begin notes what is to be explained.
func (b *blamer) begin(last *inspect.EntityState) {
	b.last, b.components = last, map[int]*writers{}
	for n, c := range last.Components {
		if c.Row < 0 || b.number != allComponents && b.number != n {
			continue
		}
		w := new(writers)
		for path, v := range leaves("", c.Value) {
			w.fields = append(w.fields, fieldWriter{path: path, value: v})
		}
		b.components[n] = w
	}
}

// take takes an event, which is older than those before.
func (b *blamer) take(e *inspect.TraceEvent) {
	w := b.components[e.Number]
	if w == nil || w.begun {
		return
	}
	switch e.Kind {
	case inspect.TraceWritten:
		w.written.at(e)
	case inspect.TraceSet, inspect.TraceConverted:
		w.written.at(e)
		for _, d := range e.Fields() {
			w.change(e, func(path string) bool { return related(d.Path, path) })
		}
		w.change(e, func(path string) bool { return !has(e.Old, path) })
	case inspect.TraceAdded:
		w.written.at(e)
		w.change(e, func(string) bool { return true })
		w.begun = true
	}
}

// change notes that e changed those fields.
func (w *writers) change(e *inspect.TraceEvent, changed func(path string) bool) {
	for i := range w.fields {
		if f := &w.fields[i]; !f.changed.known && changed(f.path) {
			f.changed.at(e)
		}
	}
}

// has reports whether v, which may be of an older type, has a field.
func has(v layout.Value, path string) bool {
	for p := range leaves("", v) {
		if related(p, path) {
			return true
		}
	}
	return false
}

// stop notes that nothing unknown was written since first, and reports whether
// everything is known.
func (b *blamer) stop(first *inspect.EntityState) bool {
	known := true
	for _, w := range b.components {
		w.written.notSince(first)
		known = known && w.written.known
		for i := range w.fields {
			w.fields[i].changed.notSince(first)
			known = known && w.fields[i].changed.known
		}
	}
	return known
}

// changed returns the newest of those that changed a field.
func (w *writers) changed() *writer {
	newest := &w.fields[0].changed
	for i := range w.fields {
		if f := &w.fields[i].changed; f.known && (!newest.known || f.seq > newest.seq) {
			newest = f
		}
	}
	return newest
}

// related reports whether one of two paths leads to the other, or beyond.
func related(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	rest, ok := strings.CutPrefix(b, a)
	return ok && (a == "" || rest == "" || rest[0] == '.' || rest[0] == '[')
}
