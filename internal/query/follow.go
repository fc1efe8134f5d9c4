package query

import (
	"slices"

	"github.com/expr-lang/expr/ast"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/persist/inspect"
)

// An aggregate that follows ticks does not evaluate all entities again. It caches the answer of
// each entity, and updates the answers of the entities that a tick changed:
//
//	tick ──change──▶ again: indices that the tick may have changed
//	                   │ take: removes the old answer from tally
//	                   └ ask:  adds the new answer
//	tally ──result──▶ the result

// A dependence describes the inputs of an answer other than the rows of the entity.
type dependence struct {
	tick, alive bool // The answer depends on these variables.
	// more says that the answer has inputs other than those above, so it cannot be cached.
	more bool
}

// dependenceOf returns the dependence of n, the tree from which x is compiled.
func (x *Expr) dependenceOf(n ast.Node) (d dependence) {
	ast.Walk(&n, visitor(func(n ast.Node) {
		id, ok := n.(*ast.IdentifierNode)
		if !ok {
			return
		}
		switch id.Value {
		case "tick":
			d.tick = true
		case "alive":
			d.alive = true
		// exists needs no case: it records the entities that it checks when it runs.
		case existsName, compareName, narrowName:
		default:
			// Names that begin with a control character are internal. Columns read the entity's own
			// rows, and all other internal names read other entities.
			isColumn := slices.ContainsFunc(x.columns, func(c *column) bool { return id.Value == c.key || id.Value == c.flag })
			d.more = d.more || id.Value[0] < ' ' && !isColumn
		}
	}))
	return d
}

// A visitor is called with each node of a tree.
type visitor func(n ast.Node)

// Visit implements ast.Visitor.
func (v visitor) Visit(p *ast.Node) { v(*p) }

// Follow is [Expr.Bind] to the state after tick c. If c continues the state of the previous call,
// an aggregate evaluates only entities whose answers the tick may have changed:
//
//	the tick               evaluates again
//	writes rows            their entities
//	adds, removes          the entity
//	creates, destroys      the entity, and those that checked whether it exists;
//	                       all entities, if answers depend on the variable alive
//	writes a resource      all entities, if answers depend on the resource
//	any tick               all entities, if answers depend on the variable tick
//
// It evaluates all entities if the state was reached by other steps than one tick, or if it reads a
// component that does not rewind. The results are always those after Bind. c may be nil.
//
// Each aggregate caches about 20 bytes per entity, or about 100 for percentiles and distinct. A
// later Follow that compiles x again releases this memory.
func (x *Expr) Follow(im *inspect.Image, c *inspect.Commit) error {
	if err := x.Bind(im); err != nil {
		return err
	}
	for _, a := range x.aggregates {
		switch {
		case a.of.needs.more:
		case a.kept == nil:
			a.kept = new(answerCache)
			a.of.asking = a.kept.asks
		default:
			a.kept.follow(a, c)
		}
	}
	return nil
}

// answerCache caches the answers of the entities in state seq, so that an aggregate can be updated.
//
// tally combines all answers. failing has the entities with an error instead of an answer. To
// evaluate an entity again, the cache removes its old answer from tally and adds the new one.
type answerCache struct {
	im      *inspect.Image // nil means that the cache has no state.
	seq     uint64
	columns []*inspect.Component // Components that the expression reads.

	// answers has the answers by index. For any, all and none, each is a boolean.
	answers []Answer
	// failing has the indices of entities whose evaluation failed.
	failing map[uint32]bool
	// asked maps an entity to the indices of those entities whose answers depend on whether it is
	// alive. An outdated entry only causes a needless evaluation.
	asked map[ecs.Entity]map[uint32]bool
	asker ecs.Entity // The entity that is being evaluated.
	tally tally

	again []uint32 // Indices to evaluate again. Only used while follow runs.
	noted []bool   // noted[i] says that index i is in the list above.
}

// isOf reports whether k has the state that x is bound to.
func (k *answerCache) isOf(x *Expr) bool { return k.im == x.im && k.im != nil && k.seq == x.im.Seq }

// result returns the result of the aggregate. It returns false if the evaluation of an entity
// failed. Then the caller evaluates all entities in order, because the order decides which error
// occurs first.
func (k *answerCache) result(a *aggregate) (Answer, bool) {
	if !k.isOf(a.of) {
		k.begin(a)
	}
	if len(k.failing) > 0 {
		return Answer{}, false
	}
	return k.tally.result(k, a.of.im), true
}

// begin fills the cache by evaluating all entities of the state that a is bound to.
func (k *answerCache) begin(a *aggregate) {
	im := a.of.im
	*k = answerCache{
		failing: map[uint32]bool{}, asked: map[ecs.Entity]map[uint32]bool{}, tally: newTally(a.kind),
		answers: k.answers[:0], again: k.again[:0], noted: k.noted[:0],
	}
	k.grow(im.Indices)
	k.bind(a)
	for _, e := range im.Entities() {
		k.ask(a, e)
	}
}

// bind records the image and the seq of the state that a is bound to. The image alone is not
// enough, because ticks change it in place.
func (k *answerCache) bind(a *aggregate) {
	k.im, k.seq, k.columns = a.of.im, a.of.im.Seq, a.of.Reads()
}

// grow extends answers and noted to that many indices.
func (k *answerCache) grow(indices int) {
	k.answers = append(k.answers, make([]Answer, max(0, indices-len(k.answers)))...)
	k.noted = append(k.noted, make([]bool, max(0, indices-len(k.noted)))...)
}

// follow updates k to the state that a is bound to. c is the tick that led to this state. If an
// update is impossible, follow leaves k.im nil, and the next result evaluates all entities. k.im is
// nil while follow runs.
func (k *answerCache) follow(a *aggregate, c *inspect.Commit) {
	if k.im == nil {
		return
	}
	k.im = nil
	if c == nil || c.Parent != k.seq || c.Seq != a.of.im.Seq || !slices.Equal(k.columns, a.of.Reads()) {
		return
	}
	k.grow(a.of.im.Indices)
	if k.change(a, c) {
		// Replace the answer of the index by that of its current entity, in most cases the same
		// entity.
		for _, index := range k.again {
			k.noted[index] = false
			k.take(index)
			if e, alive := a.of.im.EntityAt(index); alive {
				k.ask(a, e)
			}
		}
		k.bind(a)
	}
	k.again = k.again[:0]
}

// change records the entities that c may have changed. It returns false if c may have changed all
// answers. The ranges of c are rows of the state after the tick. So an entity that lost a row is
// only in the operations of c.
func (k *answerCache) change(a *aggregate, c *inspect.Commit) bool {
	if a.of.needs.tick || !k.operations(a, c) {
		return false
	}
	for _, change := range c.Rows {
		of := a.of.im.Components[change.Component]
		if !slices.Contains(k.columns, of) {
			continue
		}
		// The ranges do not apply to a no-rewind component: the image omits its rows of dead
		// entities, so the rows after them have lower numbers.
		if of.Resource || !of.Rewinds {
			return false
		}
		for _, ranges := range [][]raw.Range{change.Entities, change.Values} {
			for _, r := range ranges {
				for _, e := range of.Entities()[r.First : r.First+r.N] {
					if e != ecs.Vacant {
						k.note(e.Index())
					}
				}
			}
		}
	}
	return true
}

// operations records the entities in the operations of c. It misses no change, because Apply checks
// the operations of a tick against its patches. So every entity that is created, destroyed, added
// or removed has an operation, except in components that do not rewind.
func (k *answerCache) operations(a *aggregate, c *inspect.Commit) bool {
	components := a.of.im.Components
	ops, err := c.Ops()
	if err != nil {
		return false
	}
	for _, op := range ops {
		isRegistry := op.Component < 0
		switch {
		// Creating and destroying changes the variable alive, on which all answers may depend.
		case isRegistry && (op.Kind == raw.OpClear || a.of.needs.alive):
			return false
		case !isRegistry && (op.Component >= len(components) || !slices.Contains(k.columns, components[op.Component])):
		case op.Kind == raw.OpClear:
			return false
		default:
			k.note(op.Entity.Index())
		}
		if isRegistry {
			for index := range k.asked[op.Entity] {
				k.note(index)
			}
		}
	}
	return true
}

// note adds an index to again. A tick may contain an index many times, but it is evaluated once, in
// the state after the tick.
func (k *answerCache) note(index uint32) {
	// An index beyond the length of noted is unused before and after the tick.
	if int(index) < len(k.noted) && !k.noted[index] {
		k.noted[index] = true
		k.again = append(k.again, index)
	}
}

// ask evaluates e and adds the answer to the cache.
func (k *answerCache) ask(a *aggregate, e ecs.Entity) {
	k.asker = e
	answer, err := k.answer(a)
	if err == nil {
		err = k.tally.add(answer, e.Index())
	}
	if err != nil {
		k.failing[e.Index()] = true
		return
	}
	k.answers[e.Index()] = answer
}

// answer evaluates the entity k.asker. It passes the rows of the image, so that simple expressions
// are evaluated directly.
func (k *answerCache) answer(a *aggregate) (Answer, error) {
	rows := func(n int) ([]byte, bool, error) {
		of := a.of.columns[n]
		row := of.row(k.asker)
		if row < 0 {
			return nil, false, nil
		}
		return of.component.Row(row), true, nil
	}
	switch a.kind {
	case "any", "none", "all":
		holds, err := a.of.HoldsRows(k.asker, rows)
		return Answer{holds}, err
	}
	return a.of.OfRows(k.asker, rows)
}

// asks records that the answer of the entity k.asker depends on whether another entity is alive.
func (k *answerCache) asks(of ecs.Entity) {
	if k.asked[of] == nil {
		k.asked[of] = map[uint32]bool{}
	}
	k.asked[of][k.asker.Index()] = true
}

// take removes the answer or error of an index from the cache.
func (k *answerCache) take(index uint32) {
	delete(k.failing, index)
	k.tally.take(k.answers[index])
	k.answers[index] = Answer{}
}
