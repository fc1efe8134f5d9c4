package dump

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/internal/describe"
	"github.com/stet-ecs/stet/internal/term"
	"github.com/stet-ecs/stet/persist/inspect"
)

// A history is the events of one entity, told as they are read. Package inspect finds them; here is
// which of them are of interest, and how a field of a component has a history of its own: it is
// that of the component with the values narrowed to the field, without what left it the same.
//
//	inspect.Trace ──▶ wants ──▶ newest ──▶ a row, or an element of the JSON list
//	                    │       only with --limit
//	                    └─────▶ courses.note, whose lines are printed below the rows

// historyDoc is what history --json prints.
type historyDoc struct {
	Entity    string     `json:"entity,omitempty"`    // Missing: it is of a resource.
	Component string     `json:"component,omitempty"` // The only one of interest, or the resource.
	Field     string     `json:"field,omitempty"`     // Of it, as it was asked for.
	To        stateDoc   `json:"to"`                  // The last state looked at.
	Earlier   int        `json:"earlier"`             // Events that --limit left out.
	Events    []eventDoc `json:"events"`              // In the order of the ticks.
}

// An eventDoc is something that happened to the entity.
type eventDoc struct {
	Tick  uint64     `json:"tick"`
	Seq   uint64     `json:"record"`
	Time  *time.Time `json:"time,omitempty"` // By the clock of the writer; missing: not known.
	Event string     `json:"event"`          // As inspect.TraceKind writes it.

	// Members of events about a component. The values are those of the field that was
	// asked for, if one was.
	Component string         `json:"component,omitempty"`
	Row       *int           `json:"row,omitempty"`
	WasRow    *int           `json:"was_row,omitempty"`
	Old       any            `json:"old,omitempty"`
	New       any            `json:"new,omitempty"`
	Fields    []fieldDiffDoc `json:"fields,omitempty"` // In which old and new differ.
}

var historyCommand = command{
	use: "history STORE ENTITY[.Component[.field]]|RESOURCE[.field] [A..B]",
	doc: `Tell what happened to an entity, a component of it, a resource or a field

Tell what happened to an entity, also to one that is dead by now, or to a resource: tick by tick
on the way to the newest state, or to that of --at, or from point A to B.

  ecsdump history D 12v3                    its life
  ecsdump history D 12v3.Position           a component
  ecsdump history D 12v3.Position.X         a field
  ecsdump history D '12v3.Bag.Items[0]'     an element; for maps '12v3.Bag.Counts["gold"]'
  ecsdump history D Weather.Wind            a field of a resource
  ecsdump history D 12v3.Position 100..200  from tick 100 to 200

Of values that are numbers and changed, a line of blocks shows the course.

An entity that is there in the first state that the store still has "was alive";
what it had then it "had": nobody knows since when. So it is in the first state
behind damage, which hides what happened before. It is followed through the ticks
without replaying them, so a long journal takes as long as reading it.`,
	example: `  ecsdump history D 12v3
  ecsdump history D 12v3.Position.X 100..200 --all
  ecsdump history D 12v3.Health --limit 10`,
	complete: []completer{(*completion).subjects, (*completion).ranges},
	run: func(f flags) action {
		var h historian
		f.BoolVar(&h.all, "all", false, "also when a value was written that was there before, or moved to another row")
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

// A historian says what to tell of an entity. Events come from ticks as they are read, without a
// state: what they say is enough to follow one entity. It keeps those that the command line asks
// for, makes them events of a field if that is asked for, and prints them one by one.
type historian struct {
	all   bool
	at    string
	limit limit

	subject
	from, to uint64 // Records.
	told     int    // Events.
}

// run tells the events as they are read, so that a long life needs no memory; with a limit
// they are read to the end first, as it is the newest that are wanted.
//
// The courses are printed below the events, so they are collected on the way. A history without a
// single event is a failure, which is known only at the end: with --json the document with its
// empty list is printed before.
func (h *historian) run(s *source) error {
	if err := h.bounds(s, s.args[2:]); err != nil {
		return err
	}
	sub, last, err := s.subject(s.args[1], h.to)
	if err != nil {
		return err
	}
	h.subject = sub
	c, earlier := &courses{historian: h}, 0
	events := h.events(s, c)
	if h.limit > 0 {
		if events, earlier, err = newest(events, h.limit); err != nil {
			return err
		}
	}
	doc := historyDoc{h.holder(), h.component, strings.TrimPrefix(h.field, "."), stateDoc{last.Tick, last.Seq}, earlier, nil}
	if s.json {
		err = stream(s.app, doc, mapped(events, h.eventDoc))
	} else {
		s.earlier(earlier, "event", "events")
		g := s.Grid(">TICK", ">RECORD", "TIME", "EVENT", "FIELD", "~VALUE")
		_, err = rows(s.app, events, g, func(e *inspect.TraceEvent) { h.event(g, e) })
	}
	switch {
	case err != nil:
		return err
	case h.told == 0:
		return h.nothing(s, last)
	case !s.json:
		c.print(s.app, last.Tick)
	}
	return nil
}

// bounds sets the records to go from and to. The range A..B includes what tick A did, so from is
// the record before A. A single point is the range of that one tick; without a range, from is 0:
// the oldest state that leads to the end. Damage between the two is no reason to refuse: Trace goes
// over it, and tells it at the end.
func (h *historian) bounds(s *source, between []string) (err error) {
	if len(between) == 0 {
		h.to, err = s.Resolve(h.at)
		return err
	}
	first, last, isRange := strings.Cut(between[0], "..")
	if !isRange {
		last = first
	}
	if h.from, h.to, err = s.resolved(first, last); err != nil || first == "" {
		return err
	}
	if _, err := s.Path(h.from, h.to); err != nil && !damaged(err) {
		return fail(exitUsage, try("log", s.path), "%s does not come from %s, record %d: no range", last, first, h.from)
	}
	if e, ok := s.Log().Known(h.from); ok {
		h.from = e.Parent // What tick A did belongs to the range.
	}
	return nil
}

// events walks over what is to be told, of which people are shown the courses as well.
func (h *historian) events(s *source, c *courses) walk[*inspect.TraceEvent] {
	return func(visit func(*inspect.TraceEvent) error) error {
		return s.Trace(s.ctx, h.entity, h.from, h.to, func(e *inspect.TraceEvent) error {
			if !h.wants(e) {
				return nil
			}
			if h.told++; !s.json {
				c.note(e)
			}
			return visit(e)
		})
	}
}

// wants reports whether e is to be told. If there is a field, it makes e an event of
// the field.
//
// The event is changed in place. Narrowed to the field, a set that left the field as it was becomes
// "written", which only --all tells.
func (h *historian) wants(e *inspect.TraceEvent) bool {
	// Events about the entity itself, as created and destroyed, have the number -1 and are of
	// interest to each of its components.
	if e.Number >= 0 && h.number != allComponents && e.Number != h.number {
		return false
	}
	if e.Number >= 0 && len(h.steps) > 0 { // A set of another field is no event of this one.
		e.Old, _ = h.of(e.Old)
		e.New, _ = h.of(e.New)
		if e.Kind == inspect.TraceSet && e.Old.Kind() == e.New.Kind() && len(e.Fields()) == 0 {
			e.Kind = inspect.TraceWritten
		}
	}
	return h.all || e.Kind != inspect.TraceWritten && e.Kind != inspect.TraceMoved
}

// newest returns the last n events, and how many there are before them. It reads all, and keeps n.
// Events are copied, as one that is visited is good until the next; so memory is that of n events,
// however long the life is.
func newest(events walk[*inspect.TraceEvent], n limit) (last walk[*inspect.TraceEvent], earlier int, err error) {
	var kept []*inspect.TraceEvent
	err = events(func(e *inspect.TraceEvent) error {
		e = new(*e) // It is good until the next.
		if kept = append(kept, e); uint64(len(kept)) > uint64(n) {
			kept, earlier = kept[1:], earlier+1
		}
		return nil
	})
	return each(len(kept), func(i int) (*inspect.TraceEvent, error) { return kept[i], nil }), earlier, err
}

// eventDoc describes e. Its values are those of the field that was asked for, if one was.
func (h *historian) eventDoc(e *inspect.TraceEvent) (eventDoc, error) {
	doc := eventDoc{Tick: e.Tick, Seq: e.Seq, Time: describe.Known(e.Time), Event: e.Kind.String(), Component: e.Component}
	if e.Number < 0 {
		return doc, nil
	}
	doc.Row, doc.WasRow = present(e.Row), present(e.Was)
	doc.Old, doc.New = versusJSON(e.Old, e.New)
	if len(h.steps) == 0 { // Else it is the field.
		doc.Fields = fieldDiffDocs(e.Fields())
	}
	return doc, nil
}

// nothing is the failure of a history without events: it says why the entity or resource has none.
// The order of the cases matters: an entity of an older generation whose index somebody else has by
// now, without a range, was dead before the oldest state that is kept, which is worth its own
// words.
func (h *historian) nothing(s *source, last *inspect.EntityState) error {
	if h.isResource() {
		return s.noValue(h.subject, last)
	}
	if last.Row >= 0 && h.entity.Generation() > 0 && h.entity.Generation() < last.Holder.Generation() && h.from == 0 {
		return s.missing(try("history", s.path, last.Holder.String()), "%v is not alive in any state that the store still has; its index went to %v", h.entity, last.Holder)
	}
	return s.notAlive(last)
}

// eventTexts are the kinds of events as a table shows them, with their styles.
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

// event adds a row for e, or one for each field that it set. The columns of the tick are written
// once, in the first of these rows.
func (h *historian) event(g *term.Grid, e *inspect.TraceEvent) {
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
			before, after := versus(f.Old, f.New)
			g.Row(append(place, what+describe.Dotted(f.Path), before+" → "+after)...)
			place = []any{"", "", "", ""}
		}
	default:
		g.Row(append(place, what, valueText(e))...)
	}
}

// valueText returns the values of e: one, or both if they differ. A value that is not there is "-",
// and a tag, which has no bytes, is nothing.
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

// timeText returns the time of a tick; "" if it is not known.
func timeText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Format("2006-01-02T15:04:05.000Z07:00")
}

// courses collects the numbers among the values told, a series for each field, to be drawn
// below the events. Between two events a number stays what it is, and it is gone where its
// component or the entity is.
//
// It embeds the historian for the name of the field that was asked for. The list is searched from
// its beginning: an entity has few fields.
type courses struct {
	*historian
	begun bool
	first uint64 // Tick.
	list  []*term.Series
}

// courseCells is how many characters a course takes at most.
const courseCells = 40

// note notes the numbers that e tells. What moved or was written with the same value changes no
// number. The end of an entity ends all courses, the end of a component its own.
func (c *courses) note(e *inspect.TraceEvent) {
	if !c.begun {
		c.begun, c.first = true, e.Tick
	}
	if e.Number < 0 && e.Kind != inspect.TraceDestroyed || e.Kind == inspect.TraceMoved || e.Kind == inspect.TraceWritten {
		return
	}
	name := e.Component + c.field
	// NaN ends a course until there is a number again.
	for _, s := range c.list {
		if e.Kind == inspect.TraceDestroyed || e.New.Kind() == 0 && inside(s.Field, name) {
			s.Set(e.Tick, math.NaN())
		}
	}
	for field, v := range describe.Leaves("", e.New) {
		if x, ok := number(v); ok {
			c.of(name+describe.Dotted(field)).Set(e.Tick, x)
		}
	}
}

// of returns the course of a field.
func (c *courses) of(field string) *term.Series {
	for _, s := range c.list {
		if s.Field == field {
			return s
		}
	}
	c.list = append(c.list, &term.Series{Field: field})
	return c.list[len(c.list)-1]
}

// print prints the courses of numbers that changed. A number that never changed is told by its
// event well enough. The last tick is that of the end of the range, up to which the last value
// stays.
func (c *courses) print(a *app, last uint64) {
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

// number returns v as a number that can be drawn: infinity has no place among the others, and
// is left out like what is not there.
func number(v layout.Value) (x float64, ok bool) {
	if x, ok = describe.Number(v); math.IsInf(x, 0) {
		x = math.NaN()
	}
	return x, ok
}
