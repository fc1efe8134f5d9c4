package web

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/internal/describe"
	"github.com/stet-ecs/stet/internal/query"
	"github.com/stet-ecs/stet/persist/inspect"
)

// The map evaluates expressions over all entities of one state. If there are too many points, it
// returns a sample. The sample has the same entities in each state, so points move and do not
// flicker.
//
// The map counts the entities that it omits: Wild if a coordinate is NaN or infinite, and Absent if
// a coordinate is missing.

// Limits of the map.
const (
	maxPoints  = 200_000
	maxClasses = 64
)

// mapDoc has the positions of entities. Two numbers of each entity are its position.
type mapDoc struct {
	stateDoc
	Entities []string  `json:"entities"` // Ordered by index.
	X        []float64 `json:"x"`
	Y        []float64 `json:"y"`
	// Colors are numbers, or indices into Classes.
	Colors []*float64 `json:"colors,omitempty"`
	// Classes are the color values that are not numbers.
	Classes []string `json:"classes,omitempty"`
	// Placed is the number of entities with a position.
	Placed int `json:"placed"`
	// More says that only a sample of the placed entities is included.
	More bool `json:"more"`
	// Wild is the number of entities with a NaN or infinite number.
	Wild int `json:"wild"`
	// Absent is the number of entities without one of the two numbers.
	Absent int `json:"absent"`
}

// points returns the positions of entities.
func (h *server) points(a *params) (any, error) {
	seq := a.record("record")
	limit := a.count("limit", 50_000, maxPoints)
	return answerState(a, a.session(h), seq, func(st *inspect.State) (*mapDoc, error) { return pointsOf(a, st, seq, limit) })
}

// A point is the position of an entity and its color value.
type point struct {
	entity ecs.Entity
	x, y   float64
	color  query.Answer
}

// placed is the result for one span: its points, and the number of entities without a position.
type placed struct {
	points       []point
	wild, absent int
}

// pointsOf evaluates the parameters x, y, color and where for all entities.
func pointsOf(a *params, st *inspect.State, seq uint64, limit int) (*mapDoc, error) {
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
	doc := &mapDoc{stateDoc: describe.State(st.Outline().Tick, seq), Entities: []string{}, X: []float64{}, Y: []float64{}}
	chosen := pointSample{limit: limit, bound: math.MaxUint64}
	err := query.Sweep(a.ctx, w, func(at query.SweptEntity, found *placed) error {
		return found.add(at, exprs)
	}, func(found placed, _ int) error {
		doc.Placed, doc.Wild, doc.Absent = doc.Placed+len(found.points), doc.Wild+found.wild, doc.Absent+found.absent
		for _, p := range found.points {
			chosen.add(p)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	doc.take(chosen.all(), exprs[2] != nil)
	return doc, nil
}

// add evaluates x, y, color and where for the current entity of a sweep.
func (f *placed) add(at query.SweptEntity, exprs [4]*query.Swept) (err error) {
	if exprs[3] != nil {
		if holds, err := exprs[3].HoldsAt(at); err != nil || !holds {
			return err
		}
	}
	var place [2]float64
	for i := range place {
		v, err := exprs[i].At(at)
		if err != nil {
			return err
		}
		x := finite(v)
		switch {
		case x != nil:
			place[i] = *x
		case v.Nothing():
			f.absent++
			return nil
		default:
			f.wild++
			return nil
		}
	}
	p := point{entity: at.Entity(), x: place[0], y: place[1]}
	if exprs[2] != nil {
		p.color, err = exprs[2].At(at)
	}
	f.points = append(f.points, p)
	return err
}

// take adds points to d. The last argument tells whether the points have colors.
func (d *mapDoc) take(points []point, colored bool) {
	classes := map[string]int{}
	for _, p := range points {
		d.Entities, d.X, d.Y = append(d.Entities, p.entity.String()), append(d.X, p.x), append(d.Y, p.y)
		if colored {
			d.Colors = append(d.Colors, d.color(classes, p.color))
		}
	}
	d.More = d.Placed > len(points)
}

// color returns the color of v. A number is its own color, and a missing value has no color. Any
// other value is a class, and its color is the index of the class. After maxClasses classes,
// further values have no color.
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

// A pointSample holds up to limit points: those whose entities have the smallest hashes. The hash
// of an entity never changes, so samples of two states have the same entities.
type pointSample struct {
	limit int
	// bound is the largest hash that the sample accepts.
	bound  uint64
	points []point
}

// add adds p to the sample. Later points with smaller hashes may replace p.
func (s *pointSample) add(p point) {
	if hashOf(p.entity) > s.bound || s.limit == 0 {
		return
	}
	s.points = append(s.points, p)
	if len(s.points) >= 2*s.limit {
		s.trim()
	}
}

// trim reduces the sample to limit points. add() calls it each time the sample has twice as many.
func (s *pointSample) trim() {
	if len(s.points) <= s.limit {
		return
	}
	slices.SortFunc(s.points, func(a, b point) int { return cmp.Compare(hashOf(a.entity), hashOf(b.entity)) })
	// Release the texts of the removed points.
	clear(s.points[s.limit:])
	s.points = s.points[:s.limit]
	s.bound = hashOf(s.points[s.limit-1].entity)
}

// all returns the sample, by index.
func (s *pointSample) all() []point {
	s.trim()
	slices.SortFunc(s.points, func(a, b point) int { return cmp.Compare(a.entity.Index(), b.entity.Index()) })
	return s.points
}

// hashOf returns a hash of an entity, by the finalizer of splitmix64. Hashes are spread evenly,
// and different entities have different hashes.
func hashOf(e ecs.Entity) uint64 {
	x := uint64(e)
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
