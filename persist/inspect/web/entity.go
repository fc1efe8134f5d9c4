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

// This file answers requests about one entity: its components, its life and its referrers. Its life
// is the list of its events. The fast session returns the components, because the page asks for
// them at each step in time. The slow session returns the life, because it reads many ticks.
//
// A life is read backward from the newest event, up to a limit of events or bytes. The snapshots
// divide it into stretches. The newest stretch is read first. The events of each stretch are added
// from the newest to the oldest.

// entityDoc describes an entity in a state. The entity may be dead.
type entityDoc struct {
	stateDoc
	Entity string `json:"entity"`
	Alive  bool   `json:"alive"`
	// Row is the registry row of the entity's index. It is -1 if the index was never used.
	Row int `json:"row"`
	// Holder is the entity that has the index now, or had it last.
	Holder     string    `json:"holder"`
	Living     int       `json:"living"`
	Components []heldDoc `json:"components"`
}

// A heldDoc is a component of an entity, or a resource.
type heldDoc struct {
	Name  string  `json:"name"`
	Row   int     `json:"row"`
	Value nodeDoc `json:"value"`
}

// entity returns an entity in a state. A request may name an index without a generation. The answer
// is then the entity that has this index in the state, or had it last.
func (h *server) entity(a *params) (any, error) {
	seq := a.record("record")
	index, alone := a.index()
	// A request with only an index may use any generation: the state says which entity has the
	// index.
	e := ecs.NewEntity(index, 1)
	if !alone {
		e = a.entity()
	}
	return answer(a, h.fast, func() (*entityDoc, error) {
		// Without a generation, first find the entity with the index, then read it.
		s, err := h.fast.peek(a.ctx, e, seq)
		if err == nil && alone {
			if s.Row < 0 {
				return nil, fail(codeNotFound, "index %d was never in use: at tick %d, the world has %d indices", index, s.Tick, s.Indices)
			}
			e = s.Holder
			s, err = h.fast.peek(a.ctx, e, seq)
		}
		if err != nil {
			return nil, err
		}
		doc := &entityDoc{
			stateDoc: describe.State(s.Tick, seq), Entity: e.String(), Alive: s.Alive, Row: s.Row, Holder: s.Holder.String(),
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

// peek returns e in the state after record seq, with at least the components that e has. It loads
// the state into the session if that is quick. Otherwise it reads only the entity, so that a look
// at a distant tick does not discard the session's state.
func (d *session) peek(ctx context.Context, e ecs.Entity, seq uint64) (*inspect.EntityState, error) {
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
	s := &inspect.EntityState{
		Entity: e, Seq: seq, Tick: im.Tick, Alive: im.IsAlive(e), Row: -1, Living: im.Living, Free: im.Free, Indices: im.Indices,
	}
	if index := int(e.Index()); index < im.Indices {
		s.Row = int(im.Internal().Index[index])
		s.Holder = im.Internal().Registry[s.Row]
	}
	for c, err := range describe.ComponentsOf(d.cursor.State(), e) {
		if err != nil {
			return nil, err
		}
		s.Components = append(s.Components, c)
	}
	return s, nil
}

// resources returns the resources in the state after a record.
func (h *server) resources(a *params) (any, error) {
	seq := a.record("record")
	type resourcesDoc struct {
		stateDoc
		Resources []heldDoc `json:"resources"`
	}
	return answerState(a, h.fast, seq, func(st *inspect.State) (*resourcesDoc, error) {
		doc := &resourcesDoc{describe.State(st.Outline().Tick, seq), []heldDoc{}}
		m := treeMaker{maxNodes}
		for _, c := range st.Outline().Components {
			if !c.Resource || c.Len() == 0 {
				continue
			}
			v, err := st.Value(c, 0)
			if err != nil {
				return nil, err
			}
			doc.Resources = append(doc.Resources, heldDoc{c.Name, 0, m.node(c.Name, "", v, 0)})
		}
		return doc, nil
	})
}

// Limits for reading the life of an entity. Ticks after the last snapshot are always read, and do
// not count toward maxHistory.
const (
	maxHistory   = 64 << 20 // Maximum size of the ticks that are read, in bytes.
	maxEvents    = 1000
	maxCourses   = 24
	maxReferrers = 200
)

// historyDoc is the life of an entity up to a record, with the newest event first.
type historyDoc struct {
	Entity string `json:"entity"`
	// Since is the oldest state that was read.
	Since stateDoc `json:"since"`
	// All says that there are no older events.
	All    bool       `json:"all"`
	Events []eventDoc `json:"events"`
	// More says that some events are omitted.
	More    bool             `json:"more"`
	Courses []fieldSeriesDoc `json:"courses"`
}

// An eventDoc is an event in the life of the entity.
type eventDoc struct {
	stateDoc
	Time *time.Time `json:"time"`
	// Event is the text of an inspect.TraceKind.
	Event     string `json:"event"`
	Component string `json:"component,omitempty"`
	Old       string `json:"old,omitempty"`
	New       string `json:"new,omitempty"`
	// Fields are the fields that differ.
	Fields []changeDoc `json:"fields,omitempty"`
	// Before is the last state in which the destroyed entity was alive.
	Before *stateDoc `json:"before,omitempty"`
}

// A changeDoc is a field that differs.
type changeDoc struct {
	Path string `json:"path"`
	Old  string `json:"old"`
	New  string `json:"new"`
}

// A fieldSeriesDoc is the series of a number over time. Each value holds until the next tick in
// the list. null means that the field had no number.
type fieldSeriesDoc struct {
	// Field is the path of the field, including the name of the component.
	Field string `json:"field"`
	// Ticks are in ascending order.
	Ticks  []uint64   `json:"ticks"`
	Values []*float64 `json:"values"`
}

// history returns the life of an entity, as far back as the limits allow.
func (h *server) history(a *params) (any, error) {
	seq, e := a.record("record"), a.entity()
	limit := a.count("limit", 200, maxEvents)
	return answerAt(a, h.slow, seq, func() (*historyDoc, error) {
		doc := &historyDoc{Entity: e.String(), Events: []eventDoc{}, Courses: []fieldSeriesDoc{}}
		t := historyBuilder{doc: doc, session: h.slow, limit: limit}
		read, enough := int64(0), false
		err := h.slow.view.TraceBack(a.ctx, e, seq, func(s *inspect.Stretch) bool {
			// Read the newest stretch even if it has more than maxHistory bytes.
			if s.Last.Seq != seq {
				read += s.Bytes
			}
			doc.Since = describe.State(s.First.Tick, s.First.Seq)
			enough = !t.addStretch(s) || read > maxHistory
			return !enough
		})
		doc.All = err == nil && !enough
		// If the list became full, the life was read only back to the last listed event.
		if n := len(doc.Events); doc.More && n > 0 {
			doc.Since = doc.Events[n-1].stateDoc
		}
		t.finish()
		return doc, err
	})
}

// A historyBuilder collects events, from the newest to the oldest, up to a limit. It also collects
// the numbers of the life. A series has one point per change. Suppose that a field is 5 from tick 3
// on and 7 from tick 9 on. Its points are at the ticks 9 and 3.
type historyBuilder struct {
	doc     *historyDoc
	session *session
	limit   int
	// begun has the events at the start of the oldest stretch so far, such as TraceAlive. They are
	// events of the life only if no older stretch follows. In that case finish adds them.
	begun []inspect.TraceEvent
}

// addStretch adds the events of s, newest first. It returns false if the list is full. The events
// at the start of s go to begun.
func (t *historyBuilder) addStretch(s *inspect.Stretch) bool {
	t.begun = nil
	for i := range slices.Backward(s.Events) {
		e := &s.Events[i]
		switch {
		case e.Kind == inspect.TraceAlive || e.Kind == inspect.TracePresent:
			t.begun = append(t.begun, *e)
		case !t.addEvent(e):
			t.begun = nil
			return false
		}
	}
	return true
}

// addEvent adds e if it is relevant. It returns false if the list has no room for e.
func (t *historyBuilder) addEvent(e *inspect.TraceEvent) (room bool) {
	if !isRelevant(e) {
		return true
	}
	if len(t.doc.Events) >= t.limit {
		t.doc.More = true
		return false
	}
	t.addNumbers(e)
	t.doc.Events = append(t.doc.Events, t.session.eventDoc(e))
	return true
}

// finish adds the events in begun.
func (t *historyBuilder) finish() {
	for i := range t.begun {
		t.addEvent(&t.begun[i])
	}
	t.sortByTick()
}

// isRelevant returns false for a move to another row, and for a write that changed no value.
func isRelevant(e *inspect.TraceEvent) bool {
	return e.Kind != inspect.TraceWritten && e.Kind != inspect.TraceMoved
}

// eventDoc converts an event. For a destroyed entity it adds the last state in which the entity was
// alive.
func (d *session) eventDoc(e *inspect.TraceEvent) eventDoc {
	doc := eventDoc{stateDoc: describe.State(e.Tick, e.Seq), Time: describe.Known(e.Time), Event: e.Kind.String(), Component: e.Component}
	if e.Kind == inspect.TraceDestroyed {
		if before, ok := d.before(e.Seq); ok {
			doc.Before = new(describe.StateOf(d.view, before))
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

// changes converts the first maxParts fields that differ.
func changes(fields []inspect.FieldDiff) []changeDoc {
	return describe.Listed(fields[:min(len(fields), maxParts)], func(f inspect.FieldDiff) changeDoc {
		before, after := versus(f.Old, f.New)
		return changeDoc{cut(f.Path, maxText), before, after}
	})
}

// addNumbers adds the numbers in e. If e removes a component, it ends all series of that
// component.
func (t *historyBuilder) addNumbers(e *inspect.TraceEvent) {
	if e.Number < 0 {
		return
	}
	if e.New.Kind() == 0 {
		for i := range t.doc.Courses {
			if s := &t.doc.Courses[i]; describe.Inside(s.Field, e.Component) {
				s.add(e.Tick, nil)
			}
		}
		return
	}
	for path, v := range describe.Leaves(e.New) {
		if x, ok := numberOf(v); ok {
			if s := t.seriesOf(e.Component + describe.Dotted(path)); s != nil {
				s.add(e.Tick, &x)
			}
		}
	}
}

// seriesOf returns the series of a field, or nil if there are too many series. A life is read
// backward, so the fields that changed last get a series.
func (t *historyBuilder) seriesOf(field string) *fieldSeriesDoc {
	list := &t.doc.Courses
	if i := slices.IndexFunc(*list, func(s fieldSeriesDoc) bool { return s.Field == field }); i >= 0 {
		return &(*list)[i]
	}
	if len(*list) == maxCourses {
		return nil
	}
	*list = append(*list, fieldSeriesDoc{Field: field})
	return &(*list)[len(*list)-1]
}

// sortByTick sorts the points of each series by tick, and removes series that never change.
func (t *historyBuilder) sortByTick() {
	t.doc.Courses = slices.DeleteFunc(t.doc.Courses, func(s fieldSeriesDoc) bool { return len(s.Ticks) < 2 })
	for _, s := range t.doc.Courses {
		slices.Reverse(s.Ticks)
		slices.Reverse(s.Values)
	}
}

// add adds an older point. x is nil if the field has no number.
func (s *fieldSeriesDoc) add(tick uint64, x *float64) {
	if n := len(s.Values); n > 0 && x != nil && s.Values[n-1] != nil && *s.Values[n-1] == *x {
		// The value is the same, so the field already had it at this earlier tick.
		s.Ticks[n-1] = tick
		return
	}
	s.Ticks, s.Values = append(s.Ticks, tick), append(s.Values, x)
}

// changedDoc is the state in which an entity was changed.
type changedDoc struct {
	// Found is the state after the change, or null if no change was found.
	Found *stateDoc `json:"found"`
	// All says that the whole range was searched.
	All bool `json:"all"`
}

// change finds the newest change of an entity before a record, or the oldest change after the
// record.
func (h *server) change(a *params) (any, error) {
	seq, e := a.record("record"), a.entity()
	dir := a.text("to")
	if dir != "next" && dir != "previous" {
		a.invalid("to must be next or previous")
	}
	return answer(a, h.fast, func() (changedDoc, error) {
		if dir == "next" {
			return h.fast.nextChange(a.ctx, e, seq)
		}
		return h.fast.changeBefore(a.ctx, e, seq)
	})
}

// nextChange follows the entity from record seq to the end of the path or branch. It stops at the
// first change.
func (d *session) nextChange(ctx context.Context, e ecs.Entity, seq uint64) (doc changedDoc, err error) {
	end := d.line.end(d.view.Log(), seq)
	if end == seq {
		return changedDoc{nil, true}, nil
	}
	err = d.view.Trace(ctx, e, seq, end, func(t *inspect.TraceEvent) error {
		if t.Seq == seq || !isRelevant(t) || t.Kind == inspect.TraceAlive || t.Kind == inspect.TracePresent {
			return nil
		}
		doc.Found = new(describe.State(t.Tick, t.Seq))
		return errFound
	})
	if errors.Is(err, errFound) {
		err = nil
	}
	doc.All = true
	return doc, err
}

// changeBefore searches backward for a change before seq, one stretch at a time. If it reaches
// the byte limit, it sets All to false.
func (d *session) changeBefore(ctx context.Context, e ecs.Entity, seq uint64) (doc changedDoc, err error) {
	read := int64(0)
	doc.All = true
	err = d.view.TraceBack(ctx, e, seq, func(s *inspect.Stretch) bool {
		read += s.Bytes
		for _, t := range slices.Backward(s.Events) {
			if t.Seq < seq && isRelevant(&t) && t.Kind != inspect.TraceAlive && t.Kind != inspect.TracePresent {
				doc.Found = new(describe.State(t.Tick, t.Seq))
				return false
			}
		}
		doc.All = read < maxHistory
		return doc.All
	})
	return doc, err
}

// referrersDoc lists values that refer to an entity.
type referrersDoc struct {
	stateDoc
	Total     int           `json:"total"`
	Referrers []referrerDoc `json:"referrers"`
}

// A referrerDoc is a value that refers to the entity. Fields are the fields that contain the
// reference.
type referrerDoc struct {
	Entity    string   `json:"entity,omitempty"` // Missing for a resource.
	Component string   `json:"component"`
	Fields    []string `json:"fields"`
}

// referrers returns the values that refer to an entity.
func (h *server) referrers(a *params) (any, error) {
	seq, e := a.record("record"), a.entity()
	return answerAt(a, h.slow, seq, func() (*referrersDoc, error) {
		list, total, err := h.slow.view.Referrers(a.ctx, e, seq, maxReferrers)
		if err != nil {
			return nil, err
		}
		return &referrersDoc{describe.StateOf(h.slow.view, seq), total, describe.Listed(list, func(r inspect.Referrer) referrerDoc {
			return referrerDoc{describe.Holder(r.Entity, r.Resource), r.Component, describe.Listed(r.Fields, func(f string) string { return cut(f, 256) })}
		})}, nil
	})
}
