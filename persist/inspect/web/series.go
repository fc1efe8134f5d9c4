package web

import (
	"context"
	"errors"
	"math"
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
		way := h.far.way(seq, from, to)
		if len(texts) == 0 || len(way) == 0 {
			return s.doc, nil
		}
		return s.doc, s.along(a.ctx, h.far.view, way, max(samples, 2))
	})
}

// way returns the records with ticks in [from, to] that lead to record seq.
func (d *desk) way(seq, from, to uint64) []journal.Entry {
	if d.line.leadsOn(seq) {
		if e, ok := d.view.Log().Known(seq); ok {
			to = min(to, e.Tick)
		}
		return d.line.within(from, to)
	}
	var way []journal.Entry
	for e := range d.view.Log().Ancestors(seq) {
		if e.Tick < from {
			break
		}
		if e.Tick <= to {
			way = append(way, e)
		}
	}
	for i, j := 0, len(way)-1; i < j; i, j = i+1, j-1 {
		way[i], way[j] = way[j], way[i]
	}
	return way
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
func (s *sampler) along(ctx context.Context, v *inspect.View, way []journal.Entry, samples int) error {
	// Counted from the end, so that the last state is asked whatever the stride.
	stride := max(1, (len(way)+samples-1)/samples)
	n, last := 0, len(way)-1
	return v.Walk(ctx, way[0].Parent, way[last].ID.Seq, func(im *inspect.Image, c *inspect.Commit) error {
		n++
		asked := (last-(n-1))%stride == 0
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

// follow brings expression i to im, to which c led.
func (s *sampler) follow(im *inspect.Image, c *inspect.Commit, i int) (err error) {
	if s.exprs[i] != nil {
		return s.exprs[i].Follow(im, c)
	}
	s.exprs[i], err = query.Compile(im, "expr", s.doc.Series[i].Text, s.want)
	return err
}

// value returns what expression i gives for im; err is that of following it to im. A line keeps
// the error of its newest state only.
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

// finite returns v as a number that JSON has; nil for what is none.
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
// of them are asked, in turn, by a condition that follows them.
func (h *shown) first(a *ask) (any, error) {
	seq := a.record("record")
	from := a.number("from", 0, math.MaxUint64)
	text := strings.TrimSpace(a.text("expr"))
	return answer(a, h.far, func() (doc firstDoc, err error) {
		if err := h.far.reach(a.ctx, seq); err != nil {
			return doc, err
		}
		way := h.far.way(seq, from, math.MaxUint64)
		if len(way) == 0 {
			return doc, nil
		}
		var x *query.Expr
		err = h.far.view.Walk(a.ctx, way[0].Parent, way[len(way)-1].ID.Seq, func(im *inspect.Image, c *inspect.Commit) (err error) {
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
	return answer(a, d, func() (*mapDoc, error) {
		im, err := d.state(a.ctx, seq)
		if err != nil {
			return nil, err
		}
		return pointsOf(a, im, seq, limit)
	})
}

func pointsOf(a *ask, im *inspect.Image, seq uint64, limit int) (doc *mapDoc, err error) {
	var exprs [4]*query.Expr
	for i, p := range []struct {
		name string
		want query.Want
	}{{"x", query.WantNumber}, {"y", query.WantNumber}, {"color", query.WantValue}, {"where", query.WantCondition}} {
		text := strings.TrimSpace(a.text(p.name))
		if text == "" && i > 1 {
			continue
		}
		if exprs[i], err = query.Compile(im, p.name, text, p.want); err != nil {
			return nil, err
		}
	}
	doc = &mapDoc{stateDoc: stateDoc{im.Tick, seq}, Entities: []string{}, X: []float32{}, Y: []float32{}}
	classes := map[string]int{}
	for i, e := range candidates(im, a.text("x")) {
		if i%1024 == 0 && a.ctx.Err() != nil {
			return nil, a.ctx.Err()
		}
		if !im.IsAlive(e) {
			continue // A gap.
		}
		if exprs[3] != nil {
			if holds, err := exprs[3].Holds(e); err != nil {
				return nil, err
			} else if !holds {
				continue
			}
		}
		x, err := exprs[0].Of(e)
		if err != nil {
			return nil, err
		}
		y, err := exprs[1].Of(e)
		if err != nil {
			return nil, err
		}
		px, py := finite(x), finite(y)
		if px == nil || py == nil {
			continue
		}
		if doc.More = len(doc.X) == limit; doc.More {
			break
		}
		doc.Entities, doc.X, doc.Y = append(doc.Entities, e.String()), append(doc.X, narrow(*px)), append(doc.Y, narrow(*py))
		if exprs[2] != nil {
			c, err := exprs[2].Of(e)
			if err != nil {
				return nil, err
			}
			doc.Colors = append(doc.Colors, doc.color(classes, c))
		}
	}
	return doc, nil
}

// candidates returns the entities that an expression can have a number for: those of the
// component that it begins with, or all. Names of components have dots in them, so the
// longest that is one is looked for.
func candidates(im *inspect.Image, text string) []ecs.Entity {
	name := strings.TrimSpace(text)
	if i := strings.LastIndexByte(name, '.'); i > 0 {
		name = name[:i]
	}
	for ; name != ""; name = name[:max(strings.LastIndexByte(name, '.'), 0)] {
		if c := im.Find(name); c != nil && !c.Resource {
			return c.Entities
		}
	}
	return im.Registry[:im.Alive]
}

// color returns what v is drawn as.
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

// narrow returns x as precisely as a screen has use for.
func narrow(x float64) float32 {
	return float32(max(-math.MaxFloat32, min(math.MaxFloat32, x)))
}
