package query

import (
	"slices"

	"github.com/expr-lang/expr/ast"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/persist/inspect"
)

// Along ticks an aggregate is not asked of all entities again: what each gave is kept, and a tick
// says whom it changed.
//
//	tick ──change──▶ again: indices that it may have changed
//	                   │ take: what it gave is taken out of tally
//	                   └ ask:  what it gives is added
//	tally ──result──▶ the answer

// A dependence says what the answer of an expression for an entity depends on, beside the rows of
// the entity itself.
type dependence struct {
	tick, alive bool // These variables.
	more        bool // Something that is not known here: then nothing can be kept of it.
}

// dependenceOf looks for it in n, the tree that x is compiled from.
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
		case existsName, compareName, narrowName: // Whom the first asks about is noted when it does.
		default:
			// Names that begin with a control character are ours. That of a column is of the entity's own
			// rows; what is left reads other entities.
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

// Follow is [Expr.Bind] to the state that tick c leads to. If that continues the state that x was
// bound to by the call before, an aggregate asks only the entities again of which the tick may have
// changed the answer:
//
//	the tick               asks again
//	gives rows             who has them
//	adds, removes          who it was
//	creates, destroys      who it was, and those that asked whether they exist
//	writes a resource      all, if the answers depend on it; so with the variables tick and alive
//
// All are asked as well where anything else led to the state, and always if a component that does
// not rewind is read. The answer is in any case the one that x would give after Bind. c may be nil.
//
// What x keeps takes some 20 bytes an entity for each aggregate, some 100 for percentiles and distinct,
// and is let go by the next Follow that compiles x again.
func (x *Expr) Follow(im *inspect.Image, c *inspect.Commit) error {
	if err := x.Bind(im); err != nil {
		return err
	}
	for _, a := range x.aggregates {
		switch {
		case a.of.needs.more:
		case a.kept == nil:
			a.kept = new(kept)
			a.of.asking = a.kept.asks
		default:
			a.kept.follow(a, c)
		}
	}
	return nil
}

// kept is what the entities of a state gave, of which an aggregate is put together.
//
// For the entities alive in state seq, answers has what each gave, tally has all of these added, and
// failing has those that gave an error and are in neither. To ask one again is to take its answer
// out, and to add the new one.
type kept struct {
	im      *inspect.Image // nil: of no state.
	seq     uint64
	columns []*inspect.Component // That were read.

	answers []Answer                       // By index, of those alive. Of any, all and none a truth for each.
	failing map[uint32]bool                // Those that had an error in place of an answer.
	asked   map[ecs.Entity]map[uint32]bool // Which of them ask whether it is alive, or did once: at worst one is asked in vain.
	asker   ecs.Entity                     // Who is being asked.
	tally   tally

	again []uint32 // Indices to be asked, while a tick is followed.
	noted []bool   // By index: it is in again.
}

// isOf reports whether k is of the state that x is bound to.
func (k *kept) isOf(x *Expr) bool { return k.im == x.im && k.im != nil && k.seq == x.im.ID.Seq }

// result returns what the aggregate gives. It is false if that takes asking all entities in turn:
// one of them has an error, and whether that shows may depend on their order.
func (k *kept) result(a *aggregate) (Answer, bool) {
	if !k.isOf(a.of) {
		k.begin(a)
	}
	if len(k.failing) > 0 {
		return Answer{}, false
	}
	return k.tally.result(k, a.of.im), true
}

// begin asks all entities of the state that a is bound to.
func (k *kept) begin(a *aggregate) {
	im := a.of.im
	*k = kept{
		failing: map[uint32]bool{}, asked: map[ecs.Entity]map[uint32]bool{}, tally: newTally(a.kind),
		answers: k.answers[:0], again: k.again[:0], noted: k.noted[:0],
	}
	k.grow(len(im.Registry))
	k.bind(a)
	for _, e := range im.Registry[:im.Alive] {
		k.ask(a, e)
	}
}

// bind notes the state that a is bound to: its image and its seq, as an image is changed in place
// from tick to tick.
func (k *kept) bind(a *aggregate) {
	k.im, k.seq, k.columns = a.of.im, a.of.im.ID.Seq, a.of.Reads()
}

// grow makes room for so many indices.
func (k *kept) grow(indices int) {
	k.answers = append(k.answers, make([]Answer, max(0, indices-len(k.answers)))...)
	k.noted = append(k.noted, make([]bool, max(0, indices-len(k.noted)))...)
}

// follow brings k up to the state that a is bound to now, to which c led; or k is of no state
// any more: then the next result begins anew. k.im is nil while k is between two states.
func (k *kept) follow(a *aggregate, c *inspect.Commit) {
	if k.im == nil {
		return
	}
	k.im = nil
	if c == nil || c.Parent != k.seq || c.Seq != a.of.im.ID.Seq || !slices.Equal(k.columns, a.of.Reads()) {
		return
	}
	k.grow(len(a.of.im.Registry))
	if k.change(a, c) {
		for _, index := range k.again { // Whoever had the index goes, whoever has it comes: mostly the same.
			k.noted[index] = false
			k.take(index)
			if e, alive := holder(a.of.im, index); alive {
				k.ask(a, e)
			}
		}
		k.bind(a)
	}
	k.again = k.again[:0]
}

// change notes whom c may have changed. It is false if that can be anybody. Ranges are of rows after
// the tick; who lost a row is in no range, but in the operations.
func (k *kept) change(a *aggregate, c *inspect.Commit) bool {
	if a.of.needs.tick || !k.operations(a, c) {
		return false
	}
	for _, change := range c.Rows {
		of := a.of.im.Components[change.Component]
		if !slices.Contains(k.columns, of) {
			continue
		}
		if of.Resource || !of.Rewinds { // Of the latter, an image leaves out rows that the tick counts.
			return false
		}
		for _, ranges := range [][]raw.Range{change.Entities, change.Values} {
			for _, r := range ranges {
				for _, e := range of.Entities[r.First : r.First+r.N] {
					if e != ecs.Vacant {
						k.note(e.Index())
					}
				}
			}
		}
	}
	return true
}

// operations notes whom the operations of c name. These and the patches of a tick are compared
// when it is applied: nobody is created, destroyed, added or removed by a patch alone, but in a
// component that does not rewind.
func (k *kept) operations(a *aggregate, c *inspect.Commit) bool {
	components := a.of.im.Components
	ops, err := c.Ops()
	if err != nil {
		return false
	}
	for _, op := range ops {
		isRegistry := op.Component < 0
		switch {
		// Who is created or destroyed changes how many are alive, which all may depend on.
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

// note notes that the entity with an index is to be asked again. A tick may name one many times; it is
// asked once, as it is after the tick.
func (k *kept) note(index uint32) {
	if int(index) < len(k.noted) && !k.noted[index] { // Else it is not there any more, nor was it.
		k.noted[index] = true
		k.again = append(k.again, index)
	}
}

// holder returns who has an index, and whether that is alive.
func holder(im *inspect.Image, index uint32) (e ecs.Entity, alive bool) {
	if int(index) >= len(im.Index) {
		return 0, false
	}
	row := int(im.Index[index])
	e = im.Registry[row]
	return e, row < im.Alive && e.Index() == index
}

// ask asks e, and adds what it gives.
func (k *kept) ask(a *aggregate, e ecs.Entity) {
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

// answer returns what the asker gives. Rows are handed in from the image, so that simple expressions are
// evaluated directly.
func (k *kept) answer(a *aggregate) (Answer, error) {
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

// asks notes that the asker asks whether of is alive.
func (k *kept) asks(of ecs.Entity) {
	if k.asked[of] == nil {
		k.asked[of] = map[uint32]bool{}
	}
	k.asked[of][k.asker.Index()] = true
}

// take takes out what the entity with an index gave.
func (k *kept) take(index uint32) {
	delete(k.failing, index)
	k.tally.take(k.answers[index])
	k.answers[index] = Answer{}
}
