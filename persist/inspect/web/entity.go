package web

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/internal/describe"
	"github.com/stet-ecs/stet/persist/inspect"
)

// All about one entity: what it has, its life, who refers to it. What it has at a record is
// answered by the near desk, as it is asked at each step through time; its life by the far one,
// as ticks are read for it. A life is told from the newest event back, because that is what
// is asked for, and ends where there are enough events or bytes.
//
//	snapshot ── stretch ── snapshot ── stretch ── record     told from right to left,
//	    ◀── begun                          ◀── events        and within a stretch so too

// entityDoc is what a state has of an entity, alive or not.
type entityDoc struct {
	stateDoc
	Entity     string    `json:"entity"`
	Alive      bool      `json:"alive"`
	Row        int       `json:"row"`    // Of its index among the entities, as they lie; -1: it was never in use.
	Holder     string    `json:"holder"` // Who has the index, or had it last.
	Living     int       `json:"living"`
	Components []heldDoc `json:"components"`
}

// A heldDoc is a component of an entity, or a resource.
type heldDoc struct {
	Name  string  `json:"name"`
	Row   int     `json:"row"`
	Value nodeDoc `json:"value"`
}

// entity tells what a state has of an entity. An index alone is whoever has it in that state, or had
// it last.
func (h *shown) entity(a *ask) (any, error) {
	seq := a.record("record")
	index, alone := a.index()
	e := ecs.NewEntity(index, 1) // Of any generation, the state says who has the index.
	if !alone {
		e = a.entity()
	}
	return answer(a, h.near, func() (*entityDoc, error) {
		// An index alone takes two looks: who has it, and what that entity has.
		s, err := h.near.peek(a.ctx, e, seq)
		if err == nil && alone {
			if s.Row < 0 {
				return nil, fail(codeNotFound, "index %d was never in use: at tick %d, there are %d", index, s.Tick, s.Indices)
			}
			e = s.Holder
			s, err = h.near.peek(a.ctx, e, seq)
		}
		if err != nil {
			return nil, err
		}
		doc := &entityDoc{
			stateDoc: stateDoc{s.Tick, seq}, Entity: e.String(), Alive: s.Alive, Row: s.Row, Holder: s.Holder.String(),
			Living: s.Living, Components: []heldDoc{},
		}
		m := treeMaker{maxNodes}
		for _, c := range s.Components {
			if !c.Resource && c.Row >= 0 {
				doc.Components = append(doc.Components, heldDoc{c.Name, c.Row, m.node(c.Name, "", c.Value, 0)})
			}
		}
		return doc, nil
	})
}

// peek returns what the state after record seq has of e: from the state itself where that is reached
// soon, else nothing is loaded for it. Whoever goes through time tick by tick has the state at hand; to
// look at a far point would throw it away.
func (d *desk) peek(ctx context.Context, e ecs.Entity, seq uint64) (*inspect.EntityState, error) {
	if err := d.reach(ctx, seq); err != nil {
		return nil, err
	}
	if !d.isQuick(seq) {
		return d.view.Peek(ctx, e, seq)
	}
	im, err := d.state(ctx, seq)
	if err != nil {
		return nil, err
	}
	// The same as View.Peek says of an entity: resources are listed without their values.
	s := &inspect.EntityState{
		Entity: e, Seq: seq, Tick: im.Tick, Alive: im.IsAlive(e), Row: -1, Living: im.Alive, Free: im.Free, Indices: len(im.Registry),
	}
	if index := int(e.Index()); index < len(im.Index) {
		s.Row = int(im.Index[index])
		s.Holder = im.Registry[s.Row]
	}
	for _, c := range im.Components {
		held := inspect.EntityComponent{Name: c.Name, Layout: c.Layout, Resource: c.Resource, Row: -1}
		if !c.Resource {
			held.Row = c.Find(e)
		}
		if held.Row >= 0 {
			if held.Value, err = c.Value(held.Row); err != nil {
				return nil, err
			}
		}
		s.Components = append(s.Components, held)
	}
	return s, nil
}

// resources tells what the resources hold at a record.
func (h *shown) resources(a *ask) (any, error) {
	seq := a.record("record")
	type resourcesDoc struct {
		stateDoc
		Resources []heldDoc `json:"resources"`
	}
	return answer(a, h.near, func() (doc *resourcesDoc, err error) {
		if err := h.near.reach(a.ctx, seq); err != nil {
			return nil, err
		}
		err = h.near.read(a.ctx, seq, func(st *inspect.State) error {
			doc = &resourcesDoc{stateDoc{st.Outline().Tick, seq}, []heldDoc{}}
			m := treeMaker{maxNodes}
			for _, c := range st.Outline().Components {
				if !c.Resource || c.Len() == 0 {
					continue
				}
				v, err := st.Value(c, 0)
				if err != nil {
					return err
				}
				doc.Resources = append(doc.Resources, heldDoc{c.Name, 0, m.node(c.Name, "", v, 0)})
			}
			return nil
		})
		return doc, err
	})
}

// Limits of what is read to tell of a life. The ticks behind the nearest snapshot do not count.
const (
	maxHistory   = 64 << 20 // Bytes of older ticks.
	maxEvents    = 1000
	maxCourses   = 24
	maxReferrers = 200
)

// historyDoc is the life of an entity up to a record, the newest event first.
type historyDoc struct {
	Entity  string      `json:"entity"`
	Since   stateDoc    `json:"since"` // What came before was not looked at.
	All     bool        `json:"all"`   // There is nothing before.
	Events  []eventDoc  `json:"events"`
	More    bool        `json:"more"` // Events that are left out.
	Courses []courseDoc `json:"courses"`
}

// An eventDoc is something that happened to the entity.
type eventDoc struct {
	stateDoc
	Time      *time.Time  `json:"time"`
	Event     string      `json:"event"` // As inspect.TraceKind writes it.
	Component string      `json:"component,omitempty"`
	Old       string      `json:"old,omitempty"`
	New       string      `json:"new,omitempty"`
	Fields    []changeDoc `json:"fields,omitempty"` // In which they differ.
	Before    *stateDoc   `json:"before,omitempty"` // Of a destroyed entity: its last state.
}

// A changeDoc is a field that differs.
type changeDoc struct {
	Path string `json:"path"`
	Old  string `json:"old"`
	New  string `json:"new"`
}

// A courseDoc is a number over time: it keeps each value until the next tick, and is null where
// there is none.
type courseDoc struct {
	Field  string     `json:"field"` // From the component on.
	Ticks  []uint64   `json:"ticks"` // Ascending.
	Values []*float64 `json:"values"`
}

// history tells the life of an entity, as far back as a few MiB of ticks tell it.
func (h *shown) history(a *ask) (any, error) {
	seq, e := a.record("record"), a.entity()
	limit := a.count("limit", 200, maxEvents)
	return answer(a, h.far, func() (*historyDoc, error) {
		if err := h.far.reach(a.ctx, seq); err != nil {
			return nil, err
		}
		doc := &historyDoc{Entity: e.String(), Events: []eventDoc{}, Courses: []courseDoc{}}
		t := teller{courses{doc}, h.far, limit, nil}
		read, enough := int64(0), false
		err := h.far.view.TraceBack(a.ctx, e, seq, func(s *inspect.Stretch) bool {
			if s.Last.Seq != seq { // The newest stretch is read whatever it costs.
				read += s.Bytes
			}
			doc.Since = stateDoc{s.First.Tick, s.First.Seq}
			enough = !t.stretch(s) || read > maxHistory
			return !enough
		})
		doc.All = err == nil && !enough
		if n := len(doc.Events); doc.More && n > 0 { // The stretch was not told to its beginning.
			doc.Since = doc.Events[n-1].stateDoc
		}
		t.finish()
		return doc, err
	})
}

// A teller tells events from the newest back, until there are enough.
type teller struct {
	courses
	desk  *desk
	limit int
	begun []inspect.TraceEvent // What the oldest stretch began with: it is told if it is the last.
}

// stretch tells the events of s, and reports whether there is room for more. What was there
// when it began is no event if an older stretch follows, which tells how it came.
func (t *teller) stretch(s *inspect.Stretch) bool {
	t.begun = nil
	for i := range slices.Backward(s.Events) {
		e := &s.Events[i]
		switch {
		case e.Kind == inspect.TraceAlive || e.Kind == inspect.TracePresent:
			t.begun = append(t.begun, *e)
		case !t.tell(e):
			t.begun = nil
			return false
		}
	}
	return true
}

// tell tells e if it is worth it, and reports whether there was room.
func (t *teller) tell(e *inspect.TraceEvent) (room bool) {
	if !worthTelling(e) {
		return true
	}
	if len(t.doc.Events) >= t.limit {
		t.doc.More = true
		return false
	}
	t.note(e)
	t.doc.Events = append(t.doc.Events, t.desk.eventDoc(e))
	return true
}

// finish tells what was there at first.
func (t *teller) finish() {
	for i := range t.begun {
		t.tell(&t.begun[i])
	}
	t.arrange()
}

// worthTelling reports whether e changed anything but where rows lie.
func worthTelling(e *inspect.TraceEvent) bool {
	return e.Kind != inspect.TraceWritten && e.Kind != inspect.TraceMoved
}

// eventDoc tells an event. Of the end of an entity it has the state before: the last in which there is
// something to see of it.
func (d *desk) eventDoc(e *inspect.TraceEvent) eventDoc {
	doc := eventDoc{stateDoc: stateDoc{e.Tick, e.Seq}, Time: describe.Known(e.Time), Event: e.Kind.String(), Component: e.Component}
	if e.Kind == inspect.TraceDestroyed {
		if before, ok := d.before(e.Seq); ok {
			doc.Before = &stateDoc{d.tickOf(before), before}
		}
	}
	if e.Number < 0 {
		return doc
	}
	doc.Old, doc.New = valueText(e.Old), valueText(e.New)
	if fields := e.Fields(); len(fields) > 0 {
		doc.Fields = changes(fields)
	}
	return doc
}

// changes tells the first maxParts fields that differ.
func changes(fields []inspect.FieldDiff) []changeDoc {
	return describe.Listed(fields[:min(len(fields), maxParts)], func(f inspect.FieldDiff) changeDoc {
		before, after := versus(f.Old, f.New)
		return changeDoc{cut(f.Path, maxText), before, after}
	})
}

// courses collects the numbers of a life, from the newest back. A point of a course says from which
// tick on the number was that; so the earliest of equal ones that follow each other is kept.
type courses struct{ doc *historyDoc }

// note notes the numbers that e tells: where the component is gone after it, that there is none in
// any course of it.
func (c *courses) note(e *inspect.TraceEvent) {
	if e.Number < 0 || !worthTelling(e) {
		return
	}
	if e.New.Kind() == 0 {
		for i := range c.doc.Courses {
			if s := &c.doc.Courses[i]; s.of(e.Component) {
				s.add(e.Tick, nil)
			}
		}
		return
	}
	for path, v := range describe.Leaves("", e.New) {
		if x, ok := numberOf(v); ok {
			if s := c.of(e.Component + describe.Dotted(path)); s != nil {
				s.add(e.Tick, &x)
			}
		}
	}
}

// of returns the course of a field; nil if there are enough others. Since a life is told backward, the
// fields that changed last have one.
func (c *courses) of(field string) *courseDoc {
	list := &c.doc.Courses
	if i := slices.IndexFunc(*list, func(s courseDoc) bool { return s.Field == field }); i >= 0 {
		return &(*list)[i]
	}
	if len(*list) == maxCourses {
		return nil
	}
	*list = append(*list, courseDoc{Field: field})
	return &(*list)[len(*list)-1]
}

// arrange puts the courses into the order of time, without those that never change: of one point there is
// nothing to draw.
func (c *courses) arrange() {
	c.doc.Courses = slices.DeleteFunc(c.doc.Courses, func(s courseDoc) bool { return len(s.Ticks) < 2 })
	for _, s := range c.doc.Courses {
		slices.Reverse(s.Ticks)
		slices.Reverse(s.Values)
	}
}

// add adds an older point; nil: there is no number.
func (s *courseDoc) add(tick uint64, x *float64) {
	if n := len(s.Values); n > 0 && x != nil && s.Values[n-1] != nil && *s.Values[n-1] == *x {
		s.Ticks[n-1] = tick // It was that already.
		return
	}
	s.Ticks, s.Values = append(s.Ticks, tick), append(s.Values, x)
}

// of reports whether s is of that component: a field of it, or an element. Another component may
// have a name that begins with its own.
func (s *courseDoc) of(component string) bool {
	return s.Field == component || len(s.Field) > len(component) && s.Field[:len(component)] == component &&
		(s.Field[len(component)] == '.' || s.Field[len(component)] == '[')
}

// changedDoc is the place in time at which an entity was changed.
type changedDoc struct {
	Found *stateDoc `json:"found"` // null: it was not.
	All   bool      `json:"all"`   // Nothing is left that was not looked at.
}

// errFound ends a walk that has found what it was for; it never reaches anybody.
var errFound = errors.New("found")

// change finds the last change of an entity before a record, or the first one after it.
func (h *shown) change(a *ask) (any, error) {
	seq, e := a.record("record"), a.entity()
	dir := a.text("to")
	if dir != "next" && dir != "previous" {
		a.wrong("to takes next or previous")
	}
	return answer(a, h.near, func() (changedDoc, error) {
		if dir == "next" {
			return h.near.nextChange(a.ctx, e, seq)
		}
		return h.near.changeBefore(a.ctx, e, seq)
	})
}

// nextChange follows the entity from record seq on to the end of the way, and ends at the first
// change, however far that is.
func (d *desk) nextChange(ctx context.Context, e ecs.Entity, seq uint64) (doc changedDoc, err error) {
	end := d.line.end(d.view.Log(), seq)
	if end == seq {
		return changedDoc{nil, true}, nil
	}
	err = d.view.Trace(ctx, e, seq, end, func(t *inspect.TraceEvent) error {
		if t.Seq == seq || !worthTelling(t) || t.Kind == inspect.TraceAlive || t.Kind == inspect.TracePresent {
			return nil
		}
		doc.Found = &stateDoc{t.Tick, t.Seq}
		return errFound
	})
	if errors.Is(err, errFound) {
		err = nil
	}
	doc.All = true
	return doc, err
}

// changeBefore goes back stretch by stretch, until one has a change before seq or enough was read: then
// All is false.
func (d *desk) changeBefore(ctx context.Context, e ecs.Entity, seq uint64) (doc changedDoc, err error) {
	read := int64(0)
	doc.All = true
	err = d.view.TraceBack(ctx, e, seq, func(s *inspect.Stretch) bool {
		read += s.Bytes
		for _, t := range slices.Backward(s.Events) {
			if t.Seq < seq && worthTelling(&t) && t.Kind != inspect.TraceAlive && t.Kind != inspect.TracePresent {
				doc.Found = &stateDoc{t.Tick, t.Seq}
				return false
			}
		}
		doc.All = read < maxHistory
		return doc.All
	})
	return doc, err
}

// referrersDoc says who holds an entity in a field.
type referrersDoc struct {
	stateDoc
	Total     int           `json:"total"`
	Referrers []referrerDoc `json:"referrers"`
}

// A referrerDoc is a value that holds the entity, and where in it.
type referrerDoc struct {
	Entity    string   `json:"entity,omitempty"` // Missing for a resource.
	Component string   `json:"component"`
	Fields    []string `json:"fields"`
}

// referrers tells who holds an entity in a field.
func (h *shown) referrers(a *ask) (any, error) {
	seq, e := a.record("record"), a.entity()
	return answer(a, h.far, func() (*referrersDoc, error) {
		if err := h.far.reach(a.ctx, seq); err != nil {
			return nil, err
		}
		list, total, err := h.far.view.Referrers(a.ctx, e, seq, maxReferrers)
		if err != nil {
			return nil, err
		}
		return &referrersDoc{stateDoc{h.far.tickOf(seq), seq}, total, describe.Listed(list, func(r inspect.Referrer) referrerDoc {
			return referrerDoc{describe.Holder(r.Entity, r.Resource), r.Component, describe.Listed(r.Fields, func(f string) string { return cut(f, 256) })}
		})}, nil
	})
}
