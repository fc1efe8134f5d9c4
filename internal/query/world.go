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
	var asked []*Swept
	for _, a := range x.aggregates {
		asked = append(asked, w.sweep(a.of))
		a.given = newAggregateResult(a)
	}
	err := Sweep(ctx, w, func(at SweptEntity, found *[][]outcome) error {
		if *found == nil {
			*found = make([][]outcome, len(asked))
		}
		for i, s := range asked {
			c := s.to(at)
			(*found)[i] = append((*found)[i], x.aggregates[i].ask(c.Expr, at.Entity(), c.rows))
		}
		return nil
	}, func(found [][]outcome, _ int) error {
		decided := true
		for i, outcomes := range found {
			result := x.aggregates[i].given
			for _, o := range outcomes {
				result.add(o)
			}
			decided = decided && result.decided()
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
