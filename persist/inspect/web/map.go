package web

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/internal/query"
	"github.com/stet-ecs/stet/persist/inspect"
)

// The map evaluates expressions over the entities of one state, all of them, so that nothing is left out
// without a count. Of many places it tells a sample: the same entities in each state, so that points move and
// do not flicker.
//
//	state ──sweep──▶ x, y, color of each entity ──▶ placed ──▶ sample ──▶ by index, with colors
//	                                            ├─▶ wild:   NaN or infinite
//	                                            └─▶ absent: it has no such number

// Limits of the map.
const (
	maxPoints  = 200_000
	maxClasses = 64
)

// mapDoc is where entities are, by two numbers of each.
type mapDoc struct {
	stateDoc
	Entities []string   `json:"entities"` // By index.
	X        []float64  `json:"x"`
	Y        []float64  `json:"y"`
	Colors   []*float64 `json:"colors,omitempty"`  // Numbers, or places in classes.
	Classes  []string   `json:"classes,omitempty"` // What is no number.
	Placed   int        `json:"placed"`            // Entities that have a place.
	More     bool       `json:"more"`              // Not all of these are here: it is a sample of them.
	Wild     int        `json:"wild"`              // Entities one of whose numbers is NaN or infinite.
	Absent   int        `json:"absent"`            // Entities that lack one of the numbers.
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

// A point is where an entity is, and what it is colored by.
type point struct {
	entity ecs.Entity
	x, y   float64
	color  query.Answer
}

// placed is what a sweep found in a span: points, and how many entities have none.
type placed struct {
	points       []point
	wild, absent int
}

// pointsOf evaluates x, y, color and where, which all are in the request, for all entities.
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
	doc := &mapDoc{stateDoc: stateDoc{st.Outline().Tick, seq}, Entities: []string{}, X: []float64{}, Y: []float64{}}
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

// add evaluates x, y, color and where for an entity that a sweep has come to.
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

// take writes points to d.
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

// A pointSample keeps limit of the points that are added to it: those of the entities with the least hashes. An
// entity has one hash for all of its life, so samples of two states have the same entities.
type pointSample struct {
	limit  int
	bound  uint64 // The greatest hash that is still kept.
	points []point
}

// add keeps p, perhaps only until others with lesser hashes come.
func (s *pointSample) add(p point) {
	if hashOf(p.entity) > s.bound || s.limit == 0 {
		return
	}
	s.points = append(s.points, p)
	if len(s.points) >= 2*s.limit {
		s.trim()
	}
}

// trim keeps limit of the points. It is called once for as many new ones as are kept.
func (s *pointSample) trim() {
	if len(s.points) <= s.limit {
		return
	}
	slices.SortFunc(s.points, func(a, b point) int { return cmp.Compare(hashOf(a.entity), hashOf(b.entity)) })
	clear(s.points[s.limit:]) // They may hold text.
	s.points = s.points[:s.limit]
	s.bound = hashOf(s.points[s.limit-1].entity)
}

// all returns the points that are kept, by index.
func (s *pointSample) all() []point {
	s.trim()
	slices.SortFunc(s.points, func(a, b point) int { return cmp.Compare(a.entity.Index(), b.entity.Index()) })
	return s.points
}

// hashOf returns a number for an entity. Those of all entities are spread evenly, and no two are the same: it
// is the finalizer of splitmix64.
func hashOf(e ecs.Entity) uint64 {
	x := uint64(e)
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
