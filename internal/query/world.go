package query

import (
	"context"
	"errors"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist/inspect"
)

// An expression on the world evaluates all entities for each of its aggregates. For a state in
// pages, one sweep evaluates all aggregates and stores their results:
//
//	sweep ──▶ the argument of each aggregate ──▶ aggregateResults ──▶ the aggregates ──▶ x

// An aggregateResult collects the result of an aggregate during a sweep.
type aggregateResult struct {
	kind string
	// total is nil for any, all and none.
	total *Total
	// found says that an entity has decided the result of any, all or none.
	found bool
	// err is the error of the entity with the lowest index that failed.
	err error
}

// An outcome is the answer of an entity for the argument of an aggregate, or an error.
type outcome struct {
	Answer
	err error
}

// errDecided ends a sweep when further entities cannot change the results.
var errDecided = errors.New("query: the results are decided")

// World evaluates the expression in text, which is about the whole world, for the state st. The
// parameter want is [WantTotal] or [WantWorld]. If st is not completely in memory, World reads the
// columns in the expression page by page. If several entities fail, the error is that of the first
// by index.
func World(ctx context.Context, st *inspect.State, what, text string, want Want) (Answer, error) {
	x, err := (&Sweeper{State: st}).Compile(what, text, want)
	if err != nil {
		return Answer{}, err
	}
	if st.Whole() {
		return x.Of(ecs.Vacant)
	}
	// Outside of aggregates, only exists(…) needs the set of live entities. So Count, which reads
	// this set, runs at the first call of exists.
	x.Among(func(e ecs.Entity) bool { return st.Count(ctx) == nil && st.IsAlive(e) })
	if len(x.aggregates) > 0 {
		if err := x.gather(ctx, st); err != nil {
			return Answer{}, err
		}
	}
	// Outside of aggregates, x reads only resources.
	return x.LookUp(ecs.Vacant)
}

// WorldHolds is [World] for a condition.
func WorldHolds(ctx context.Context, st *inspect.State, what, text string) (bool, error) {
	a, err := World(ctx, st, what, text, WantWorld)
	return err == nil && a.v == true, err
}

// gather sweeps st once for all aggregates of x. It also sets the functions with which x reads st.
// If an aggregate fails for an entity, gather stores the error as the result of the aggregate. It
// does not return the error, because x may turn out not to need this aggregate.
func (x *Expr) gather(ctx context.Context, st *inspect.State) error {
	w := &Sweeper{State: st}
	var gathered []*aggregateResult
	var asked []*Swept
	for _, a := range x.aggregates {
		asked = append(asked, w.sweep(a.of))
		g := &aggregateResult{kind: a.kind}
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

// outcomeOf evaluates s for an entity of a sweep. The caller sets truth if s is a condition.
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

// decided reports whether the result is final: further entities cannot change g.
func (g *aggregateResult) decided() bool { return g.found || g.err != nil }

// add adds the outcome of the next entity, in the order of indices.
func (g *aggregateResult) add(of *Expr, o outcome) {
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

// result returns the result of the aggregate.
func (g *aggregateResult) result() (any, error) {
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
