package dump

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/internal/describe"
	"github.com/stet-ecs/stet/internal/term"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
)

// The command history prints the events of one entity as they are read. For a field, it prints the
// events of the component that changed the field. inspect.Trace finds the events, and wants()
// selects the events to print. With --limit, newest() keeps only the newest events. At the end,
// text output has a chart of each number, for which seriesSet.note collects the values.

// historyDoc is what history --json prints.
type historyDoc struct {
	Entity string `json:"entity,omitempty"` // Missing for a resource.
	// The component, if the argument names one, or the resource.
	Component string `json:"component,omitempty"`
	// The requested field, as written in the argument.
	Field   string     `json:"field,omitempty"`
	To      stateDoc   `json:"to"`      // The last state of the range.
	Earlier int        `json:"earlier"` // Number of events that --limit left out.
	Events  []eventDoc `json:"events"`  // Ordered by tick.
}

// An eventDoc is an event in the life of the entity.
type eventDoc struct {
	Tick  uint64     `json:"tick"`
	Seq   uint64     `json:"record"`
	Time  *time.Time `json:"time,omitempty"` // Clock of the writer; missing if unknown.
	Event string     `json:"event"`          // Kind of event, as inspect.TraceKind writes it.

	// Members of events that concern a component. With a requested field, Old and New are the
	// values of the field.
	Component string         `json:"component,omitempty"`
	Row       *int           `json:"row,omitempty"`
	WasRow    *int           `json:"was_row,omitempty"`
	Old       any            `json:"old,omitempty"`
	New       any            `json:"new,omitempty"`
	Fields    []fieldDiffDoc `json:"fields,omitempty"` // Fields that differ between old and new.
}

var historyCommand = command{
	use: "history STORE ENTITY[.Component[.field]]|RESOURCE[.field] [A..B]",
	doc: `Show what happened to an entity, a component of it, a resource or a field

Show what happened to an entity or a resource, tick by tick. The entity may be dead. The
ticks are those that lead from A to B, or all that lead to the state of --at. Tick A is
included.

  ecsdump history D 12v3                    the whole entity
  ecsdump history D 12v3.Position           a component
  ecsdump history D 12v3.Position.X         a field
  ecsdump history D '12v3.Bag.Items[0]'     an element; for maps '12v3.Bag.Counts["gold"]'
  ecsdump history D Weather.Wind            a field of a resource
  ecsdump history D 12v3.Position 100..200  from tick 100 to 200

If a field is a number that changes, a line of block characters shows its values over
time.

If an entity exists in the oldest state of the store, the output says that it "was
alive" and which components it "had", because the ticks before that state are unknown.
The same holds for the first state after damage. History does not replay ticks, so a
long journal takes only as long as reading it.`,
	example: `  ecsdump history D 12v3
  ecsdump history D 12v3.Position.X 100..200 --all
  ecsdump history D 12v3.Health --limit 10`,
	complete: []completer{(*completion).subjects, (*completion).ranges},
	run: func(f flags) action {
		var h historyCmd
		f.BoolVar(&h.all, "all", false, "also list writes that did not change the value, and moves to another row")
		f.point(&h.at)
		f.limit(&h.limit, "events, the newest")
		return func(c *call) error {
			if err := c.atOrRange(2); err != nil {
				return err
			}
			return c.read(c.args[0], h.run)
		}
	},
}

// A historyCmd has the flags of a history. It reads events from ticks, without loading a state.
type historyCmd struct {
	all   bool
	at    string
	limit limit

	subject
	// Numbers of two records. The events are those after the first record, up to the second.
	from, to uint64
	wanted   int // Number of wanted events so far.
}

// run prints the events as they are read. With a limit, it reads all events first, because it
// prints only the newest. Text output ends with charts of the numbers. If there is no event, run
// returns a failure.
func (h *historyCmd) run(s *source) error {
	if err := h.bounds(s, s.args[2:]); err != nil {
		return err
	}
	sub, last, err := s.subject(s.args[1], h.to)
	if err != nil {
		return err
	}
	h.subject = sub
	c, earlier := &seriesSet{historyCmd: h}, 0
	events := h.events(s, c)
	if h.limit > 0 {
		if events, earlier, err = newest(events, h.limit); err != nil {
			return err
		}
	}
	doc := historyDoc{h.holder(), h.component, strings.TrimPrefix(h.field, "."), describe.State(last.Tick, last.Seq), earlier, nil}
	if s.json {
		err = stream(s.app, doc, mapped(events, h.eventDoc))
	} else {
		s.printEarlier(earlier, "event", "events")
		g := s.Grid(">TICK", ">RECORD", "TIME", "EVENT", "FIELD", "~VALUE")
		_, err = rows(s.app, events, g, func(e *inspect.TraceEvent) { h.addRows(g, e) })
	}
	switch {
	case err != nil:
		return err
	case h.wanted == 0:
		return h.noEvents(s, last)
	case !s.json:
		c.print(s.app, last.Tick)
	}
	return nil
}

// bounds sets h.from and h.to. The events are those after h.from, up to h.to. For the range A..B,
// h.from is the record before tick A, so that the events of tick A are included. If no state before
// tick A is known, h.from is A, and the events begin with the values in state A. A single point
// stands for one tick. Without a range, h.from is 0, which stands for the oldest state.
func (h *historyCmd) bounds(s *source, between []string) (err error) {
	if len(between) == 0 {
		h.to, err = s.Resolve(h.at)
		return err
	}
	first, last, err := parseRange(between[0])
	if err != nil {
		return err
	}
	if h.from, h.to, err = s.resolveEnds(first, last); err != nil || first == "" {
		return err
	}
	if _, err := s.Path(h.from, h.to); err != nil && !damaged(err) {
		return fail(exitUsage, describe.Command("log", s.path), "not a range: %s (record %d) does not lead to %s", first, h.from, last)
	}
	if before, ok := s.beforeTick(h.from); ok {
		h.from = before
	}
	return nil
}

// events visits the wanted events. For text output, it also collects the numbers for the charts.
func (h *historyCmd) events(s *source, c *seriesSet) walk[*inspect.TraceEvent] {
	return func(visit func(*inspect.TraceEvent) error) error {
		err := s.Trace(s.ctx, h.entity, h.from, h.to, func(e *inspect.TraceEvent) error {
			if !h.wants(e) {
				return nil
			}
			if h.wanted++; !s.json {
				c.note(e)
			}
			return visit(e)
		})
		// The error says that the entity never existed. Ignore it, because noEvents returns an
		// error with the reason.
		if h.wanted == 0 && h.from == 0 && errors.Is(err, persist.ErrNotFound) {
			return nil
		}
		return err
	}
}

// wants reports whether to print e. For the history of a field, it replaces the values of e by the
// values of the field. It changes the kind of e to "written" if the tick changed only other fields.
// Events of this kind are printed only with --all.
func (h *historyCmd) wants(e *inspect.TraceEvent) bool {
	// Events of the entity itself, such as created, have the number -1. They belong to every
	// history.
	if e.Number >= 0 && h.number != allComponents && e.Number != h.number {
		return false
	}
	if e.Number >= 0 && len(h.steps) > 0 {
		e.Old, _ = h.valueIn(e.Old)
		e.New, _ = h.valueIn(e.New)
		if e.Kind == inspect.TraceSet && e.Old.Kind() == e.New.Kind() && len(e.Fields()) == 0 {
			e.Kind = inspect.TraceWritten
		}
	}
	return h.all || e.Kind != inspect.TraceWritten && e.Kind != inspect.TraceMoved
}

// newest returns the last n events and the number of earlier events. It stores at most n events in
// memory.
func newest(events walk[*inspect.TraceEvent], n limit) (last walk[*inspect.TraceEvent], earlier int, err error) {
	var kept []*inspect.TraceEvent
	err = events(func(e *inspect.TraceEvent) error {
		e = new(*e) // An event is valid only until visit returns.
		if kept = append(kept, e); uint64(len(kept)) > uint64(n) {
			kept, earlier = kept[1:], earlier+1
		}
		return nil
	})
	return each(len(kept), func(i int) (*inspect.TraceEvent, error) { return kept[i], nil }), earlier, err
}

// eventDoc returns the document of e.
func (h *historyCmd) eventDoc(e *inspect.TraceEvent) (eventDoc, error) {
	doc := eventDoc{Tick: e.Tick, Seq: e.Seq, Time: describe.Known(e.Time), Event: e.Kind.String(), Component: e.Component}
	if e.Number < 0 {
		return doc, nil
	}
	doc.Row, doc.WasRow = rowPointer(e.Row), rowPointer(e.Was)
	doc.Old, doc.New = differingJSON(e.Old, e.New)
	// For the history of a field, Old and New are the values of the field.
	if len(h.steps) == 0 {
		doc.Fields = fieldDiffDocs(e.Fields())
	}
	return doc, nil
}

// noEvents returns the error for a history without events. An entity may have died before the
// oldest retained state, and another entity may now have its index.
func (h *historyCmd) noEvents(s *source, last *inspect.EntityState) error {
	if h.isResource() {
		return s.noValue(h.subject, last)
	}
	if last.Row >= 0 && h.entity.Generation() > 0 && h.entity.Generation() < last.Holder.Generation() && h.from == 0 {
		return s.missing(describe.Command("history", s.path, last.Holder.String()), "%v is not alive in any state that the store still has; its index went to %v", h.entity, last.Holder)
	}
	return s.notAlive(last)
}

// eventTexts are the kinds of events in a table, with their styles.
var eventTexts = map[inspect.TraceKind]term.Styled{
	inspect.TraceCreated:   term.Added.Of("created"),
	inspect.TraceDestroyed: term.Removed.Of("destroyed"),
	inspect.TraceAlive:     term.Plain.Of("was alive"),
	inspect.TraceAdded:     term.Added.Of("added"),
	inspect.TraceRemoved:   term.Removed.Of("removed"),
	inspect.TracePresent:   term.Plain.Of("had"),
	inspect.TraceSet:       term.Changed.Of("set"),
	inspect.TraceWritten:   term.Faint.Of("written"),
	inspect.TraceMoved:     term.Faint.Of("moved"),
	inspect.TraceConverted: term.Changed.Of("converted"),
}

// addRows adds a row for e, or a row for each field that e set.
func (h *historyCmd) addRows(g *term.Grid, e *inspect.TraceEvent) {
	place := []any{e.Tick, e.Seq, timeText(e.Time), eventTexts[e.Kind]}
	if e.Number < 0 {
		g.Row(place...)
		return
	}
	what := e.Component + h.field
	fields := e.Fields()
	switch {
	case e.Kind == inspect.TraceMoved:
		g.Row(append(place, what, fmt.Sprintf("row %d → %d", e.Was, e.Row))...)
	case len(fields) > 0 && e.Kind == inspect.TraceSet:
		for _, f := range fields {
			before, after := differingTexts(f.Old, f.New)
			g.Row(append(place, what+describe.Dotted(f.Path), before+" → "+after)...)
			place = []any{"", "", "", ""}
		}
	default:
		g.Row(append(place, what, valueText(e))...)
	}
}

// valueText returns the old and the new value of e, or one value if they are equal. A missing value
// is "-", and a tag is "".
func valueText(e *inspect.TraceEvent) string {
	text := func(v layout.Value) string {
		switch {
		case v.Kind() == 0:
			return "-"
		case v.Type().Width() == 0:
			return ""
		}
		return v.String()
	}
	switch {
	case e.Kind == inspect.TraceSet, e.Kind == inspect.TraceConverted:
		return text(e.Old) + " → " + text(e.New)
	case e.New.Kind() != 0 || e.Old.Kind() == 0:
		return text(e.New)
	}
	return text(e.Old)
}

// timeText returns the time of a tick, or "" if it is unknown.
func timeText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Format("2006-01-02T15:04:05.000Z07:00")
}

// seriesSet collects the numbers of each field over time, for the charts below the events. A series
// has a gap while the component or the entity does not exist.
type seriesSet struct {
	*historyCmd
	begun bool
	first uint64 // Tick of the first event.
	list  []*term.Series
}

// courseCells is the largest width of a chart in characters.
const courseCells = 40

// note adds the numbers of e to their series. The destruction of the entity ends all series. The
// removal of a component ends its series.
func (c *seriesSet) note(e *inspect.TraceEvent) {
	if !c.begun {
		c.begun, c.first = true, e.Tick
	}
	if e.Number < 0 && e.Kind != inspect.TraceDestroyed || e.Kind == inspect.TraceMoved || e.Kind == inspect.TraceWritten {
		return
	}
	name := e.Component + c.field
	// NaN begins a gap. The next number ends the gap.
	for _, s := range c.list {
		if e.Kind == inspect.TraceDestroyed || e.New.Kind() == 0 && describe.Inside(s.Field, name) {
			s.Set(e.Tick, math.NaN())
		}
	}
	for field, v := range describe.Leaves(e.New) {
		if x, ok := number(v); ok {
			c.of(name+describe.Dotted(field)).Set(e.Tick, x)
		}
	}
}

// of returns the series of a field.
func (c *seriesSet) of(field string) *term.Series {
	for _, s := range c.list {
		if s.Field == field {
			return s
		}
	}
	c.list = append(c.list, &term.Series{Field: field})
	return c.list[len(c.list)-1]
}

// print prints a chart of each number that changed, up to the given last tick.
func (c *seriesSet) print(a *app, last uint64) {
	g := a.Grid("FIELD", ">LOW", ">HIGH", fmt.Sprintf("TICKS %d TO %d", c.first, last))
	drawn := 0
	for _, s := range c.list {
		if low, high := s.Bounds(); low < high {
			if drawn++; drawn == 1 {
				a.Line("")
			}
			g.Row(s.Field, term.Number(low), term.Number(high), s.Sparkline(c.first, last, courseCells))
		}
	}
	if drawn > 0 {
		g.Flush()
	}
}

// number returns v as a number for a chart. It returns false for a value without a number, and for
// infinity.
func number(v layout.Value) (x float64, ok bool) {
	if x, ok = describe.Number(v); math.IsInf(x, 0) {
		x = math.NaN()
	}
	return x, ok
}
