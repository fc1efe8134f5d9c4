package web

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/internal/query"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist/inspect"
)

// Expressions are evaluated over many states, or over the many entities of one. Over states they
// are compiled once, and then told of each tick what it wrote ([query.Expr.Follow]), so that a sum
// over a million entities costs a tick what changed. That needs every tick of the way, also where
// few are shown. What takes long is bounded: by counts here, by a deadline of each question.
//
//	series   way ──walk──▶ follow each expression ──▶ a value at some of the states
//	first    way ──walk──▶ follow the condition   ──▶ ends at the first state at which it holds
//	points   one state   ──▶ x, y, color of each entity

// Limits of series.
const (
	maxExpressions = 8
	maxSamples     = 5000 // Ticks of a series; of more, so many are asked.
	maxPoints      = 200_000
	maxClasses     = 64
)

// seriesDoc is what expressions give over a stretch of time.
type seriesDoc struct {
	Ticks  []uint64  `json:"ticks"`
	Seqs   []uint64  `json:"records"`
	Series []lineDoc `json:"series"`
}

// A lineDoc is one expression, with a value for each tick that was asked.
type lineDoc struct {
	Text   string     `json:"text"`
	Error  *errorBody `json:"error,omitempty"` // Why there are no values, or no more.
	Values []*float64 `json:"values"`          // null: nothing, or no number.
}

// series evaluates expressions over the ticks from one to another on the way to a record: of the
// whole world, or of one entity. Of many ticks so many are asked as there are samples; the expressions
// follow all of them.
func (h *shown) series(a *ask) (any, error) {
	seq := a.record("record")
	texts := a.expressions("expr", maxExpressions)
	from, to := a.ticks()
	samples := a.count("samples", maxSamples, maxSamples)
	s := sampler{doc: &seriesDoc{[]uint64{}, []uint64{}, []lineDoc{}}, h: h, want: query.WantTotal, entity: ecs.Vacant}
	if a.text("entity") != "" {
		s.entity = a.entity()
		s.want = query.WantNumber
	}
	for _, text := range texts {
		s.doc.Series = append(s.doc.Series, lineDoc{Text: text, Values: []*float64{}})
		s.exprs = append(s.exprs, nil)
	}
	return answer(a, h.far, func() (*seriesDoc, error) {
		if err := h.far.reach(a.ctx, seq); err != nil {
			return nil, err
		}
		if len(texts) == 0 {
			return s.doc, nil
		}
		return s.doc, s.along(a.ctx, h.far.way(seq, from, to), max(samples, 2))
	})
}

// A way is what leads to a state within a stretch of time.
type way struct {
	view  *inspect.View
	start uint64 // The record that the first tick continues.
	first bool   // The state there is of the stretch itself. It is the oldest: no tick led to it.
	ticks []journal.Entry
}

// way returns the ticks in [from, to] that lead to record seq: those of the line are looked up, those
// of a branch walked back. Without any, it starts at the oldest state, or where the walk back ended.
func (d *desk) way(seq, from, to uint64) way {
	w := way{view: d.view, start: seq}
	if i, ok := d.line.find(seq); ok {
		w.start = d.line.path[0].Parent
		w.ticks = d.line.within(from, min(to, d.line.path[i].Tick))
	} else {
		for e := range d.view.Log().Ancestors(seq) {
			if w.start = e.Parent; e.Tick < from {
				break
			}
			if e.Tick <= to {
				w.ticks = append(w.ticks, e)
			}
		}
		slices.Reverse(w.ticks)
	}
	if len(w.ticks) > 0 {
		w.start = w.ticks[0].Parent
	}
	if _, led := d.view.Log().Known(w.start); !led { // The state of a snapshot: no walk tells of it.
		tick := d.tickOf(w.start)
		w.first = from <= tick && tick <= to
	}
	return w
}

// states returns how many states w goes through.
func (w *way) states() int {
	if w.first {
		return len(w.ticks) + 1
	}
	return len(w.ticks)
}

// walk calls f with each of these states and what led to it; of the oldest, c says only where it lies.
func (w *way) walk(ctx context.Context, f func(im *inspect.Image, c *inspect.Commit) error) error {
	if w.first {
		im, err := w.view.At(ctx, w.start)
		if err == nil {
			err = f(im, &inspect.Commit{Seq: w.start, Tick: im.Tick})
		}
		if err != nil {
			return err
		}
	}
	if len(w.ticks) == 0 {
		return nil
	}
	return w.view.Walk(ctx, w.start, w.ticks[len(w.ticks)-1].ID.Seq, f)
}

// A sampler evaluates expressions at some of the states on a way.
type sampler struct {
	h      *shown
	doc    *seriesDoc
	want   query.Want
	entity ecs.Entity
	exprs  []*query.Expr // nil: not compiled yet, or wrong.
}

// along goes the way, and asks as many of its states as there are samples, the last one among
// them.
func (s *sampler) along(ctx context.Context, way way, samples int) error {
	left := way.states() // Counted down, so that the last state is asked whatever the stride.
	stride := max(1, (left+samples-1)/samples)
	return way.walk(ctx, func(im *inspect.Image, c *inspect.Commit) error {
		left--
		asked := left%stride == 0
		if asked {
			s.doc.Ticks, s.doc.Seqs = append(s.doc.Ticks, c.Tick), append(s.doc.Seqs, c.Seq)
		}
		for i := range s.exprs {
			if err := s.follow(im, c, i); asked {
				s.doc.Series[i].Values = append(s.doc.Series[i].Values, s.value(im, i, err))
			}
		}
		return ctx.Err()
	})
}

// follow brings expression i to im, to which c led. One that does not compile is tried again at each
// state: a component that it names may come later.
func (s *sampler) follow(im *inspect.Image, c *inspect.Commit, i int) (err error) {
	if s.exprs[i] != nil {
		return s.exprs[i].Follow(im, c)
	}
	s.exprs[i], err = query.Compile(im, "expr", s.doc.Series[i].Text, s.want)
	return err
}

// value returns what expression i gives for im; err is that of following it to im. A line keeps
// the error of its newest state only. A state in which the entity is not alive has no value, and no
// error.
func (s *sampler) value(im *inspect.Image, i int, err error) *float64 {
	line := &s.doc.Series[i]
	if s.entity != ecs.Vacant && !im.IsAlive(s.entity) {
		return nil
	}
	var v query.Answer
	if err == nil {
		v, err = s.exprs[i].Of(s.entity)
	}
	if err != nil {
		body := s.h.describe(err).Error
		line.Error = &body
		return nil
	}
	line.Error = nil // At first a component may not have been there.
	return finite(v)
}

// finite returns v as a number that JSON has; nil for what is none. A truth is 1 or 0, so that it can be
// drawn.
func finite(v query.Answer) *float64 {
	x, ok := v.Float()
	if !ok || math.IsNaN(x) || math.IsInf(x, 0) {
		return nil
	}
	return &x
}

// firstDoc is the first state at which a condition on the world holds.
type firstDoc struct {
	Found *stateDoc `json:"found"` // null: at none.
	Asked int       `json:"asked"` // States.
}

// first finds the first tick on the way to a record at which a condition on the world holds. All
// of them are asked, in turn, by a condition that follows them: it may hold and not hold again, so
// nothing can be skipped. Unlike a series it ends with the first error, as one that names a component
// which is not there yet.
func (h *shown) first(a *ask) (any, error) {
	seq := a.record("record")
	from := a.number("from", 0, math.MaxUint64)
	text := strings.TrimSpace(a.text("expr"))
	return answer(a, h.far, func() (doc firstDoc, err error) {
		if err := h.far.reach(a.ctx, seq); err != nil {
			return doc, err
		}
		way := h.far.way(seq, from, math.MaxUint64)
		var x *query.Expr
		err = way.walk(a.ctx, func(im *inspect.Image, c *inspect.Commit) (err error) {
			if x == nil {
				x, err = query.Compile(im, "expr", text, query.WantWorld)
			} else {
				err = x.Follow(im, c)
			}
			if err != nil {
				return err
			}
			doc.Asked++
			holds, err := x.Holds(ecs.Vacant)
			if err == nil && holds {
				doc.Found = &stateDoc{c.Tick, c.Seq}
				err = errFound
			}
			return err
		})
		if errors.Is(err, errFound) {
			err = nil
		}
		return doc, err
	})
}

// mapDoc is where entities are, by two numbers of each.
type mapDoc struct {
	stateDoc
	Entities []string   `json:"entities"`
	X        []float32  `json:"x"`
	Y        []float32  `json:"y"`
	Colors   []*float64 `json:"colors,omitempty"`  // Numbers, or places in classes.
	Classes  []string   `json:"classes,omitempty"` // What is no number.
	More     bool       `json:"more"`              // Entities that are left out.
}

// points tells where entities are.
func (h *shown) points(a *ask) (any, error) {
	seq := a.record("record")
	limit := a.count("limit", 50_000, maxPoints)
	d := a.desk(h)
	return answer(a, d, func() (doc *mapDoc, err error) {
		if err := d.reach(a.ctx, seq); err != nil {
			return nil, err
		}
		err = d.read(a.ctx, seq, func(st *inspect.State) (err error) {
			doc, err = pointsOf(a, st, seq, limit)
			return err
		})
		return doc, err
	})
}

// A point is where an entity is, and what it is coloured by.
type point struct {
	entity ecs.Entity
	x, y   float32
	color  query.Answer
}

// pointsOf evaluates x, y, color and where, which all are in the request, for the entities by index,
// until there are enough. Who has no place, in the sense of numbers that can be drawn, is left out.
func pointsOf(a *ask, st *inspect.State, seq uint64, limit int) (*mapDoc, error) {
	w := &query.Sweeper{State: st}
	var exprs [4]*query.Swept
	for i, p := range []struct {
		name string
		want query.Want
	}{{"x", query.WantNumber}, {"y", query.WantNumber}, {"color", query.WantValue}, {"where", query.WantCondition}} {
		text := strings.TrimSpace(a.text(p.name))
		if text == "" && i > 1 {
			continue
		}
		var err error
		if exprs[i], err = w.Compile(p.name, text, p.want); err != nil {
			return nil, err
		}
	}
	doc := &mapDoc{stateDoc: stateDoc{st.Outline().Tick, seq}, Entities: []string{}, X: []float32{}, Y: []float32{}}
	classes := map[string]int{}
	err := query.Sweep(a.ctx, w, func(at query.SweptEntity, found *[]point) error {
		p, ok, err := pointAt(at, exprs)
		if ok && err == nil {
			*found = append(*found, p)
		}
		return err
	}, func(found []point, _ int) error {
		for _, p := range found {
			if doc.More = len(doc.X) == limit; doc.More {
				return errFound
			}
			doc.Entities, doc.X, doc.Y = append(doc.Entities, p.entity.String()), append(doc.X, p.x), append(doc.Y, p.y)
			if exprs[2] != nil {
				doc.Colors = append(doc.Colors, doc.color(classes, p.color))
			}
		}
		return nil
	})
	if err != nil && !errors.Is(err, errFound) {
		return nil, err
	}
	return doc, nil
}

// pointAt evaluates x, y, color and where for an entity that a sweep has come to, and reports whether it has
// a place.
func pointAt(at query.SweptEntity, exprs [4]*query.Swept) (p point, ok bool, err error) {
	if exprs[3] != nil {
		if holds, err := exprs[3].HoldsAt(at); err != nil || !holds {
			return p, false, err
		}
	}
	var place [2]float32
	for i := range place {
		v, err := exprs[i].At(at)
		if err != nil {
			return p, false, err
		}
		n := finite(v)
		if n == nil {
			return p, false, nil
		}
		place[i] = narrow(*n)
	}
	p = point{entity: at.Entity(), x: place[0], y: place[1]}
	if exprs[2] != nil {
		p.color, err = exprs[2].At(at)
	}
	return p, true, err
}

// color returns what v is drawn as: a number is itself, nothing has none, and each other answer is a
// class, whose place is the number; of more than maxClasses the rest has none.
func (d *mapDoc) color(classes map[string]int, v query.Answer) *float64 {
	if x := finite(v); x != nil || v.Nothing() {
		return x
	}
	text := cut(v.String(), 128)
	i, ok := classes[text]
	if !ok {
		if i = len(classes); i == maxClasses {
			return nil
		}
		classes[text] = i
		d.Classes = append(d.Classes, text)
	}
	x := float64(i)
	return &x
}

// narrow returns x as precisely as a screen has use for, and no infinity, which JSON has not.
func narrow(x float64) float32 {
	return float32(max(-math.MaxFloat32, min(math.MaxFloat32, x)))
}
