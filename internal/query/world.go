package query

import (
	"context"
	"errors"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist/inspect"
)

// This file evaluates an expression on a world whose state is on disk. One sweep over the entities
// computes the results of all aggregates in the expression. Then the expression is evaluated once,
// with these results.

// An aggregateResult collects the result of an aggregate during a sweep.
type aggregateResult struct {
	kind string
	// total is nil for any, all and none.
	total *Total
	// found is true if an entity has decided the result of any, all or none.
	found bool
	// err is the first error by index of the entity.
	err error
}

// An outcome is the answer or the error of an entity for the argument of an aggregate.
type outcome struct {
	Answer
	err error
}

// errDecided ends a sweep when further entities cannot change the results.
var errDecided = errors.New("query: the results are decided")

// World evaluates an expression on the whole world for the state st. The last argument is
// [WantTotal] or [WantWorld]. If st is not in memory, World reads the columns that it needs page by
// page. If several entities fail, World returns the error of the entity with the lowest index.
func World(ctx context.Context, st *inspect.State, what, text string, want Want) (Answer, error) {
	x, err := (&Sweeper{State: st}).Compile(what, text, want)
	if err != nil {
		return Answer{}, err
	}
	if st.Whole() {
		return x.Of(ecs.Vacant)
	}
	// exists(…) needs the set of living entities. Its first call reads the set from disk, with
	// Count.
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

// gather sweeps st once and computes the results of all aggregates of x. If an aggregate fails, its
// result is the error. It is returned only if x uses this aggregate. For example, in alive > 5 ||
// any(…), the second part is used only if the first is false.
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

// outcomeOf evaluates s for an entity of a sweep. The second argument reports whether s is a
// condition.
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

// decided reports whether the result is final.
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
