package dump

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/stet-ecs/stet/internal/describe"
	"github.com/stet-ecs/stet/internal/query"
)

// A trace shows the values of the command plot in a trace viewer, with ticks as the time. Each
// expression is a counter.
//
//	{"displayTimeUnit":"ms","traceEvents":[
//	{"ph":"M","pid":1,"name":"process_name","args":{"name":"D"}},        the store is a process
//	{"ph":"C","pid":1,"ts":7000,"name":"alive","args":{"value":12}},… tick 7: a counter changes
//	]}
//
// Damage in the range is reported after the last event, and the document is still complete.

// checkTrace validates the flags for a trace.
func (x *exportCmd) checkTrace(c *call) error {
	switch {
	case len(x.components) > 0:
		return c.misused("--component is not for perfetto: use --select")
	case x.every == 0:
		return c.misused("--every must be at least 1")
	}
	return nil
}

// tickMicros is the length of a tick in a trace, in microseconds: one millisecond.
const tickMicros = 1000

// trace prints the values of expressions over the ticks as counters, in the JSON trace format of
// Chrome and Perfetto. A counter has an event when it changes, and at the last state.
//
// The format accepts only numbers, and a counter continues to the end of the trace. So a counter
// becomes 0 while its expression has no finite number. It also becomes 0 while damage hides the
// value. A counter that never had a number has no event.
func (x *exportCmd) trace(s *source) (err error) {
	if s.IsSave() {
		return s.noJournal(describe.Command("query", s.path, "--count"), "it has one state, so nothing changes over time")
	}
	p := &plotCmd{sampling: sampling{every: x.every, at: x.at}}
	if len(s.args) > 1 {
		p.span, p.at = s.args[1], ""
	}
	if p.route, err = s.route(p.span, p.at); err != nil {
		return err
	}
	texts, names, err := x.counters(p.route.lastState())
	if err != nil {
		return err
	}
	p.texts = texts
	if err := p.compile(); err != nil {
		return err
	}
	process, err := query.Marshal(s.path)
	if err != nil {
		return err
	}
	s.Print(fmt.Sprintf(`{"displayTimeUnit":"ms","traceEvents":[`+"\n"+`{"ph":"M","pid":1,"name":"process_name","args":{"name":%s}}`, process))
	counters := make([]counter, len(names))
	for i, name := range names {
		b, err := query.Marshal(name)
		if err != nil {
			return err
		}
		counters[i] = counter{name: string(b), value: math.NaN()}
	}
	p.hide = func(tick uint64) {
		for i := range counters {
			if c := &counters[i]; c.hasEvent() && c.value != 0 {
				c.print(s.app, tick, 0)
			}
		}
	}
	last := uint64(0)
	err = p.points(func(at plotPointDoc) error {
		last = at.Tick
		for i, v := range at.Values.answers {
			c := &counters[i]
			f, ok := v.Float()
			if !ok || math.IsInf(f, 0) || math.IsNaN(f) {
				if !c.hasEvent() {
					continue
				}
				f = 0
			}
			if f != c.value {
				c.print(s.app, at.Tick, f)
			}
		}
		return s.Broken()
	})
	for i := range counters {
		if c := &counters[i]; c.tick < last && c.hasEvent() {
			c.print(s.app, last, c.value)
		}
	}
	s.Print("\n]}\n")
	return cmp.Or(err, p.failures(), p.unread)
}

// A counter is a named line in the trace, with the value of its last event.
type counter struct {
	name  string  // Encoded as JSON.
	value float64 // NaN before the first event.
	tick  uint64
}

// hasEvent reports whether the counter has had an event yet.
func (c *counter) hasEvent() bool { return !math.IsNaN(c.value) }

// print prints an event of c.
func (c *counter) print(a *app, tick uint64, value float64) {
	c.tick, c.value = tick, value
	b, _ := query.Marshal(value) // A finite number can always be marshalled.
	a.Print(fmt.Sprintf(",\n"+`{"ph":"C","pid":1,"ts":%d,"name":%s,"args":{"value":%s}}`, tick*tickMicros, c.name, b))
}

// counters returns the expressions to draw and their names. Without --select, these are the number
// of living entities and the number of entities with each component. Equal names are an error.
func (x *exportCmd) counters(im state) (texts, names []string, err error) {
	for _, selected := range x.selected {
		text, name := query.SplitName(selected)
		if text == "" {
			return nil, nil, fail(exitUsage, "", "--select: an empty counter")
		}
		texts, names = append(texts, text), append(names, name)
	}
	if len(texts) == 0 {
		texts, names = []string{"alive"}, []string{"alive"}
		for _, c := range im.Components {
			if !c.Resource {
				texts, names = append(texts, fmt.Sprintf("count(has(component(%q)))", c.Name)), append(names, c.Name)
			}
		}
	}
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			return nil, nil, fail(exitUsage, "", "--select: two counters are called %s; write \"… as NAME\"", name)
		}
	}
	return texts, names, nil
}
