package dump

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/stet-ecs/stet/internal/query"
)

// checkTrace makes sense of the flags for a trace.
func (x *exporter) checkTrace(c *call) error {
	switch {
	case len(x.components) > 0:
		return c.misused("--component is not for perfetto: name what to count with --select")
	case x.every == 0:
		return c.misused("--every takes 1 or more")
	}
	return nil
}

// tickMicros is how long a tick is in a trace, in its unit.
const tickMicros = 1000

// trace prints the values of expressions over the ticks as counters in the JSON format of traces that
// Chrome has and Perfetto reads. A counter stays what it is until its next event, so there are only those
// at which it changes, and at the last state.
func (x *exporter) trace(s *source) (err error) {
	if s.IsSave() {
		return s.noJournal(try("query", s.path, "--count"), "it has one state, and nothing to draw over time")
	}
	p := &plotter{every: x.every, at: x.at}
	if len(s.args) > 1 {
		p.span, p.at = s.args[1], ""
	}
	if p.route, err = s.route(p.span, p.at); err != nil {
		return err
	}
	texts, names, err := x.counters(p.route.end())
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
	last := uint64(0)
	err = p.points(func(at plotPointDoc) error {
		last = at.Tick
		for i, v := range at.Values.answers {
			f, ok := v.Float()
			if counters[i].there = ok && !math.IsInf(f, 0) && !math.IsNaN(f); counters[i].there && f != counters[i].value {
				counters[i].print(s.app, at.Tick, f)
			}
		}
		return s.Broken()
	})
	for i := range counters {
		if c := &counters[i]; c.tick < last && c.there {
			c.print(s.app, last, c.value)
		}
	}
	s.Print("\n]}\n")
	return cmp.Or(err, p.failures(), p.unread)
}

// A counter is one of a trace, with its last event.
type counter struct {
	name  string // As JSON.
	value float64
	tick  uint64
	there bool // It has a number at the state that was asked last.
}

// print prints an event.
func (c *counter) print(a *app, tick uint64, value float64) {
	c.tick, c.value = tick, value
	b, _ := query.Marshal(value) // It is a number.
	a.Print(fmt.Sprintf(",\n"+`{"ph":"C","pid":1,"ts":%d,"name":%s,"args":{"value":%s}}`, tick*tickMicros, c.name, b))
}

// counters returns the expressions to draw, and their names: those of --select, or else how many
// entities there are in im, the last state, and how many have each component.
func (x *exporter) counters(im state) (texts, names []string, err error) {
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
