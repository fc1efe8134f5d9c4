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

// A series evaluates expressions over many states. The expressions are compiled once. For each tick
// they process only the rows that the tick wrote ([query.Expr.Follow]). So a sum over a million
// entities costs time in proportion to the changes. The walk visits every tick on the way, even if
// few values are shown. Limits on counts, and a deadline per request, limit the time.
//
// The request "series" returns the values of expressions at some of the states. The request "first"
// updates a condition, and ends at the first state in which the condition holds.

// Limits of series.
const (
	maxExpressions = 8
	// Maximum number of ticks in a series. A series over more ticks is sampled.
	maxSamples = 5000
)

// seriesDoc has the values of expressions over a range of ticks.
type seriesDoc struct {
	Ticks  []uint64  `json:"ticks"`
	Seqs   []uint64  `json:"records"`
	Series []lineDoc `json:"series"`
}

// A lineDoc is one expression with a value for each sampled tick.
type lineDoc struct {
	Text string `json:"text"`
	// Error is the reason why values are missing.
	Error *errorBody `json:"error,omitempty"`
	// Values has null where the expression has no value or its value is not a number.
	Values []*float64 `json:"values"`
	// Wild is the number of NaN or infinite values. They are null in Values too.
	Wild int `json:"wild"`
}

// series evaluates expressions over a range of ticks on the path to a record, for the whole world
// or for one entity. The parameter samples limits the number of values. If the range has more
// ticks, series evaluates only some of them.
func (h *server) series(a *params) (any, error) {
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
	return answerAt(a, h.slow, seq, func() (*seriesDoc, error) {
		if len(texts) == 0 {
			return s.doc, nil
		}
		return s.doc, s.along(a.ctx, h.slow.way(seq, from, to), max(samples, 2))
	})
}

// A way is the part of a path that is within a range of ticks.
type way struct {
	view *inspect.View
	// start is the parent record of the first tick.
	start uint64
	// first says that the range includes the oldest state, to which no tick leads. In that case
	// start is the record of this state.
	first bool
	ticks []journal.Entry
}

// way returns the ticks in [from, to] on the path to record seq. For the path to the newest state,
// the session stores the list of records. For a branch, it follows the parents from record seq
// backward.
func (d *session) way(seq, from, to uint64) way {
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
	// If the journal does not have the record start, its state is the oldest one, and only a
	// snapshot has it.
	if _, led := d.view.Log().Known(w.start); !led {
		tick := describe.StateOf(d.view, w.start).Tick
		w.first = from <= tick && tick <= to
	}
	return w
}

// states returns the number of states on w.
func (w *way) states() int {
	if w.first {
		return len(w.ticks) + 1
	}
	return len(w.ticks)
}

// walk calls first() with the oldest state, if that state is in the range. It then calls f with
// each later state and its tick. If a page is damaged, walk calls first() again. So first() must
// have no effects before it has read everything.
func (w *way) walk(ctx context.Context, first func(st *inspect.State) error, f func(im *inspect.Image, c *inspect.Commit) error) error {
	if w.first {
		if err := w.view.Read(ctx, w.start, first); err != nil {
			return err
		}
	}
	if len(w.ticks) == 0 {
		return nil
	}
	return w.view.Walk(ctx, w.start, w.ticks[len(w.ticks)-1].ID.Seq, func(im *inspect.Image, c *inspect.Commit) error {
		if c == nil {
			// This is the state after record start. It is before the range, or first() has already
			// evaluated it.
			return nil
		}
		return f(im, c)
	})
}

// A sampler evaluates expressions at some of the states of a way.
type sampler struct {
	h      *server
	doc    *seriesDoc
	want   query.Want
	entity ecs.Entity
	// An element of exprs is nil if the expression is not compiled yet, or invalid.
	exprs []*query.Expr
}

// along visits the states of a way, and evaluates the expressions for some of them. The last
// argument is the maximum number of evaluated states. The last state is always evaluated.
func (s *sampler) along(ctx context.Context, way way, samples int) error {
	// left is the number of states still to visit. A state is evaluated if left is then a multiple
	// of stride. For the last state left is 0, so it is always evaluated.
	left := way.states()
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
	// take adds the answers for the oldest state. If a page is damaged, the state is read again and
	// gives new answers. So take is called only after reading.
	take := func() {
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

// An outcome is the value of an expression for a state, or an error.
type outcome struct {
	query.Answer
	err error
}

// ask evaluates all expressions for the oldest state of the way, which may be read from pages. It
// returns an error if reading fails. An error of a single expression is in its outcome.
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

// follow updates expression i to im, the state after c. If an expression does not compile, follow
// tries again at each state: a later tick may add its component.
func (s *sampler) follow(im *inspect.Image, c *inspect.Commit, i int) (err error) {
	if s.exprs[i] != nil {
		return s.exprs[i].Follow(im, c)
	}
	s.exprs[i], err = query.Compile(im, "expr", s.doc.Series[i].Text, s.want)
	return err
}

// of returns the outcome of expression i for im. The last argument is the error that follow() has
// returned. If the entity is dead, the outcome has neither a value nor an error.
func (s *sampler) of(im *inspect.Image, i int, err error) (o outcome) {
	if s.entity != ecs.Vacant && !im.IsAlive(s.entity) {
		return o
	}
	if o.err = err; err == nil {
		o.Answer, o.err = s.exprs[i].Of(s.entity)
	}
	return o
}

// value converts outcome o of expression i to an element of its line. It sets the line's Error to
// the error in this state, or to nil. The newest state comes last, so the line ends up with the
// error of that state. An older state may lack a component, which is no error.
func (s *sampler) value(i int, o outcome) *float64 {
	line := &s.doc.Series[i]
	if line.Error = nil; o.err != nil {
		line.Error = new(s.h.describe(o.err))
		return nil
	}
	if isWild(o.Answer) {
		line.Wild++
	}
	return finite(o.Answer)
}

// finite returns v as a number that JSON can represent, or nil. A bool is 1 or 0, so the page can
// draw it.
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
	// Found is the state, or null if the condition never holds.
	Found *stateDoc `json:"found"`
	// Asked is the number of evaluated states.
	Asked int `json:"asked"`
	// Builds names the builds that wrote the found state and the previous state, if the builds
	// differ.
	Builds string `json:"builds,omitempty"`
}

// first finds the first tick on the path to a record at which a condition on the world holds. It
// evaluates every state in order, because the condition may hold only for some time. Unlike
// series, it stops at the first error, for instance if a component does not exist yet.
func (h *server) first(a *params) (any, error) {
	seq := a.record("record")
	from := a.number("from", 0, math.MaxUint64)
	text := strings.TrimSpace(a.text("expr"))
	return answerAt(a, h.slow, seq, func() (doc firstDoc, err error) {
		way := h.slow.way(seq, from, math.MaxUint64)
		var x *query.Expr
		// If a page is damaged, the oldest state is evaluated twice. Count it once.
		oldest := 0
		err = way.walk(a.ctx, func(st *inspect.State) error {
			holds, err := query.WorldHolds(a.ctx, st, "expr", text)
			if oldest = 1; err == nil && holds {
				doc.Found = new(describe.State(st.Outline().Tick, way.start))
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
				doc.Found = new(describe.State(c.Tick, c.Seq))
				doc.Builds = describe.BuildsOf(h.slow.view.Build(c.Parent), h.slow.view.Build(c.Seq)).Line("the state before", "this one")
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
