package query

import (
	"slices"

	"github.com/expr-lang/expr/ast"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/persist/inspect"
)

// An aggregate can follow a world from tick to tick. It caches the answer for each entity. After a
// tick, change() collects the entities whose answers may have changed. For each of them, the
// aggregate removes the old answer from its tally, evaluates the entity again, and adds the new
// answer.

// A dependence lists the inputs of an answer, in addition to the rows of the entity.
type dependence struct {
	tick, alive bool // The answer depends on these variables.
	// more is true if the expression reads other entities or calls an aggregate. Then its answers
	// cannot be cached.
	more bool
}

// dependenceOf returns the dependence of x, which is compiled from the tree n.
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
		// These functions need no flag in d. For exists(…), answerCache.asks records which entities
		// it checks.
		case existsName, compareName, narrowName:
		default:
			// A name that begins with a control character is internal. It is a column of the
			// entity, or a function that reads another entity.
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

// Follow binds x to the state after tick c, like [Expr.Bind]. If the tick follows the state of the
// previous call, aggregates evaluate only the entities whose answers may have changed. Each row has
// an effect of a tick, and the entities that are then evaluated again:
//
//	a row is written         the entity of the row
//	a component is added     the entity
//	a component is removed   the entity
//	an entity is created     the entity, and the entities that checked whether it exists
//	an entity is destroyed   the entities that checked whether it exists
//
// In all other cases, aggregates evaluate all entities. Examples are:
//
//   - The argument c is nil.
//   - The tick writes a resource that the answers depend on.
//   - The tick creates or destroys an entity, and the answers depend on the variable alive.
//   - The answers depend on the variable tick.
//   - The tick changes a component that does not rewind.
//
// The results are always the same as after Bind.
//
// Each aggregate caches about 20 bytes per entity, or about 100 for percentiles and distinct.
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

// answerCache caches the answers for the entities in one state. The field tally combines all
// answers.
type answerCache struct {
	im      *inspect.Image // nil if the cache is empty.
	seq     uint64
	columns []*inspect.Component // Components that the expression reads.

	// answers has the answers by index of the entity. For any, all and none, they are booleans.
	answers []Answer
	// failing has the indices of entities whose evaluation failed.
	failing map[uint32]bool
	// asked maps an entity to the indices of the entities that checked whether it is alive. An
	// outdated entry only causes a needless evaluation.
	asked map[ecs.Entity]map[uint32]bool
	asker ecs.Entity // The entity that is being evaluated.
	tally tally

	again []uint32 // Indices to evaluate again. Only used while follow() runs.
	noted []bool   // noted[i] is true if index i is in again.
}

// isOf reports whether k has the answers for the state of x.
func (k *answerCache) isOf(x *Expr) bool { return k.im == x.im && k.im != nil && k.seq == x.im.Seq }

// result returns the result of the aggregate. It returns false if an entity failed. The caller then
// evaluates all entities in order, to find the first error.
func (k *answerCache) result(a *aggregate) (Answer, bool) {
	if !k.isOf(a.of) {
		k.begin(a)
	}
	if len(k.failing) > 0 {
		return Answer{}, false
	}
	return k.tally.result(k, a.of.im), true
}

// begin fills the cache by evaluating all entities of the current state of a.
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

// bind records the current state of a. The image alone does not identify the state, because a tick
// changes the image in place. So bind records the seq too.
func (k *answerCache) bind(a *aggregate) {
	k.im, k.seq, k.columns = a.of.im, a.of.im.Seq, a.of.Reads()
}

// grow extends the slices to the given number of indices.
func (k *answerCache) grow(indices int) {
	k.answers = append(k.answers, make([]Answer, max(0, indices-len(k.answers)))...)
	k.noted = append(k.noted, make([]bool, max(0, indices-len(k.noted)))...)
}

// follow updates k to the current state of a, after tick c. If it cannot, it empties the cache, and
// the next result evaluates all entities.
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
		// The tick may have destroyed the entity, and another entity may have its index now.
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

// change collects the entities whose answers tick c may have changed. It returns false if all
// answers may have changed. The commit lists only rows that exist after the tick. Removed rows are
// only in its operations.
func (k *answerCache) change(a *aggregate, c *inspect.Commit) bool {
	if a.of.needs.tick || !k.operations(a, c) {
		return false
	}
	for _, change := range c.Rows {
		of := a.of.im.Components[change.Component]
		if !slices.Contains(k.columns, of) {
			continue
		}
		// If the component does not rewind, the image lacks the rows of dead entities, which c
		// counts. So the row numbers of c do not apply to the image.
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

// operations collects the entities in the operations of c: those that are created or destroyed, and
// those to which a component is added or removed. It returns false if all answers may have changed.
func (k *answerCache) operations(a *aggregate, c *inspect.Commit) bool {
	components := a.of.im.Components
	ops, err := c.Ops()
	if err != nil {
		return false
	}
	for _, op := range ops {
		isRegistry := op.Component < 0
		switch {
		// A clear of the world changes all answers. Creating or destroying an entity changes the
		// variable alive, on which all answers may depend.
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

// note adds an index to again, unless the list has it already.
func (k *answerCache) note(index uint32) {
	// No entity has a higher index, before or after the tick.
	if int(index) < len(k.noted) && !k.noted[index] {
		k.noted[index] = true
		k.again = append(k.again, index)
	}
}

// ask evaluates entity e and adds the answer to the cache.
func (k *answerCache) ask(a *aggregate, e ecs.Entity) {
	k.asker = e
	o := a.ask(a.of, e, a.of.imageRows(e))
	if o.err == nil {
		o.err = k.tally.add(o.Answer, e.Index())
	}
	if o.err != nil {
		k.failing[e.Index()] = true
		return
	}
	k.answers[e.Index()] = o.Answer
}

// asks records that the answer of the entity k.asker depends on whether the given entity is alive.
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
