package query

import (
	"context"
	"errors"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist/inspect"
)

// An expression on the world asks all entities once for each of its aggregates. Of a state that lies in pages
// that is one sweep for all of them, which keeps what the aggregates come to:
//
//	sweep ──▶ what each aggregate asks of an entity ──▶ gathering of each ──▶ given to the aggregate ──▶ x

// A gathering is what an aggregate comes to in a sweep.
type gathering struct {
	kind  string
	total *Total // Of an aggregate that gives no truth.
	found bool   // An entity was found that decides a truth.
	err   error  // The first error, by index.
}

// outcome is what an entity gives for the argument of an aggregate.
type outcome struct {
	Answer
	err error
}

// errDecided ends a sweep when no entity can change what aggregates come to.
var errDecided = errors.New("query: all is decided")

// World evaluates text, which is about the whole world, for st: want is [WantTotal] or [WantWorld]. It reads the columns
// that text names page by page, unless st is whole. Entities are asked by index, so where several give an error, it is
// that of the first by index.
func World(ctx context.Context, st *inspect.State, what, text string, want Want) (Answer, error) {
	x, err := (&Sweeper{State: st}).Compile(what, text, want)
	if err != nil {
		return Answer{}, err
	}
	if st.Whole() {
		return x.Of(ecs.Vacant)
	}
	// Few expressions ask whether an entity is alive outside of an aggregate, so all are counted when one does.
	x.Among(func(e ecs.Entity) bool { return st.Count(ctx) == nil && st.IsAlive(e) })
	if len(x.aggregates) > 0 {
		if err := x.gather(ctx, st); err != nil {
			return Answer{}, err
		}
	}
	return x.LookUp(ecs.Vacant) // What it names itself are resources.
}

// WorldHolds is [World] for a condition.
func WorldHolds(ctx context.Context, st *inspect.State, what, text string) (bool, error) {
	a, err := World(ctx, st, what, text, WantWorld)
	return err == nil && a.v == true, err
}

// gather sweeps st for the aggregates of x, which is of no other state from then on. An error of an entity is kept in
// the gathering: x may not ask for that aggregate. What it returns is an error of the sweep itself.
func (x *Expr) gather(ctx context.Context, st *inspect.State) error {
	w := &Sweeper{State: st}
	var gathered []*gathering
	var asked []*Swept
	for _, a := range x.aggregates {
		asked = append(asked, w.sweep(a.of))
		g := &gathering{kind: a.kind}
		if k, _ := aggregateOf(a.kind); k.of != boolType {
			g.total = NewTotal(a.kind)
		}
		a.given = g.result
		gathered = append(gathered, g)
	}
	err := Sweep(ctx, w, func(at SweptEntity, found *[][]outcome) error {
		if *found == nil {
			*found = make([][]outcome, len(asked))
		}
		for i, s := range asked {
			(*found)[i] = append((*found)[i], outcomeOf(s, gathered[i].total == nil, at))
		}
		return nil
	}, func(found [][]outcome, _ int) error {
		decided := true
		for i, outcomes := range found {
			for _, o := range outcomes {
				gathered[i].add(x.aggregates[i].of, o)
			}
			decided = decided && gathered[i].decided()
		}
		if decided && len(found) > 0 {
			return errDecided
		}
		return nil
	})
	if errors.Is(err, errDecided) {
		err = nil
	}
	return err
}

// outcomeOf asks an entity that a sweep has come to.
func outcomeOf(s *Swept, truth bool, at SweptEntity) (o outcome) {
	if truth {
		var holds bool
		holds, o.err = s.HoldsAt(at)
		o.Answer = Answer{holds}
		return o
	}
	o.Answer, o.err = s.At(at)
	return o
}

// decided reports whether no entity can change g.
func (g *gathering) decided() bool { return g.found || g.err != nil }

// add adds what the next entity by index gives for of.
func (g *gathering) add(of *Expr, o outcome) {
	switch {
	case g.decided():
	case o.err != nil:
		g.err = o.err
	case g.total == nil:
		g.found = o.v == (g.kind != "all")
	default:
		if err := g.total.Add(o.Answer); err != nil {
			g.err = of.failed(err)
		}
	}
}

// result returns what the aggregate gives.
func (g *gathering) result() (any, error) {
	switch {
	case g.err != nil:
		return nil, g.err
	case g.total != nil:
		return g.total.Result().v, nil
	case g.kind == "any":
		return g.found, nil
	}
	return !g.found, nil
}
