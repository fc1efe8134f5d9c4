package web

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/internal/describe"
	"github.com/stet-ecs/stet/internal/query"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist/inspect"
)

// Expressions are evaluated over many states. They
// are compiled once, and then told of each tick what it wrote ([query.Expr.Follow]), so that a sum
// over a million entities costs a tick what changed. That needs every tick of the way, also where
// few are shown. What takes long is bounded: by counts here, by a deadline of each question.
//
//	series   way ──walk──▶ follow each expression ──▶ a value at some of the states
//	first    way ──walk──▶ follow the condition   ──▶ ends at the first state at which it holds

// Limits of series.
const (
	maxExpressions = 8
	maxSamples     = 5000 // Ticks of a series; of more, so many are asked.
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
	Wild   int        `json:"wild"`            // Values that are NaN or infinite: they are null as well.
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

// walk calls first with the oldest state, if that is of the stretch: it is read by pages, and a second time where a page
// is damaged, so first must be without effect until it has all. Then it calls f with each other state and what led to it.
func (w *way) walk(ctx context.Context, first func(st *inspect.State) error, f func(im *inspect.Image, c *inspect.Commit) error) error {
	if w.first {
		if err := w.view.Read(ctx, w.start, first); err != nil {
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
	var answers []outcome
	var tick uint64
	step := func(tick, seq uint64, value func(i int) *float64) {
		left--
		if left%stride > 0 {
			return
		}
		s.doc.Ticks, s.doc.Seqs = append(s.doc.Ticks, tick), append(s.doc.Seqs, seq)
		for i := range s.exprs {
			s.doc.Series[i].Values = append(s.doc.Series[i].Values, value(i))
		}
	}
	take := func() { // The oldest state is read: it counts once all of it was.
		if answers != nil {
			step(tick, way.start, func(i int) *float64 { return s.value(i, answers[i]) })
			answers = nil
		}
	}
	err := way.walk(ctx, func(st *inspect.State) (err error) {
		tick = st.Outline().Tick
		answers, err = s.ask(ctx, st)
		return err
	}, func(im *inspect.Image, c *inspect.Commit) error {
		take()
		followed := make([]error, len(s.exprs))
		for i := range s.exprs {
			followed[i] = s.follow(im, c, i)
		}
		step(c.Tick, c.Seq, func(i int) *float64 { return s.value(i, s.of(im, i, followed[i])) })
		return ctx.Err()
	})
	take()
	return err
}

// An outcome is what an expression gives for a state, or why it gives nothing.
type outcome struct {
	query.Answer
	err error
}

// ask evaluates all expressions for the oldest state of the way, which may lie in pages. An error is that of reading
// it: where it is damaged, or has no such name, only that expression has one.
func (s *sampler) ask(ctx context.Context, st *inspect.State) ([]outcome, error) {
	answers := make([]outcome, len(s.exprs))
	if s.entity != ecs.Vacant {
		if err := st.Count(ctx); err != nil || !st.IsAlive(s.entity) {
			return answers, err
		}
	}
	for i, line := range s.doc.Series {
		o := &answers[i]
		if s.entity == ecs.Vacant {
			o.Answer, o.err = query.World(ctx, st, "expr", line.Text, s.want)
		} else if x, err := (&query.Sweeper{State: st}).Compile("expr", line.Text, s.want); err != nil {
			o.err = err
		} else {
			o.Answer, o.err = x.LookUp(s.entity)
		}
	}
	return answers, ctx.Err()
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

// of returns what expression i gives for im; err is that of following it to im. A state in which the entity is not alive
// has no value, and no error.
func (s *sampler) of(im *inspect.Image, i int, err error) (o outcome) {
	if s.entity != ecs.Vacant && !im.IsAlive(s.entity) {
		return o
	}
	if o.err = err; err == nil {
		o.Answer, o.err = s.exprs[i].Of(s.entity)
	}
	return o
}

// value returns o, of expression i, as a line has it. The line keeps the error of its newest state only: at first a
// component may not have been there.
func (s *sampler) value(i int, o outcome) *float64 {
	line := &s.doc.Series[i]
	if line.Error = nil; o.err != nil {
		body := s.h.describe(o.err).Error
		line.Error = &body
		return nil
	}
	if isWild(o.Answer) {
		line.Wild++
	}
	return finite(o.Answer)
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

// isWild reports whether v is NaN or infinite.
func isWild(v query.Answer) bool {
	_, isText := v.Text()
	return !isText && slices.Contains([]string{"NaN", "+Inf", "-Inf"}, v.String())
}

// firstDoc is the first state at which a condition on the world holds.
type firstDoc struct {
	Found  *stateDoc `json:"found"`            // null: at none.
	Asked  int       `json:"asked"`            // States.
	Builds string    `json:"builds,omitempty"` // Which builds wrote the state before and the one found, if they differ.
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
		oldest := 0 // States asked: the oldest may be asked twice, and counts once.
		err = way.walk(a.ctx, func(st *inspect.State) error {
			holds, err := query.WorldHolds(a.ctx, st, "expr", text)
			if oldest = 1; err == nil && holds {
				doc.Found = &stateDoc{st.Outline().Tick, way.start}
				err = errFound
			}
			return err
		}, func(im *inspect.Image, c *inspect.Commit) (err error) {
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
				doc.Builds = describe.BuildsOf(h.far.view.Build(c.Parent), h.far.view.Build(c.Seq)).Line("the state before", "this one")
				err = errFound
			}
			return err
		})
		doc.Asked += oldest
		if errors.Is(err, errFound) {
			err = nil
		}
		return doc, err
	})
}
