package main

import (
	"fmt"

	"github.com/stet-ecs/stet/ecs"
)

// found builds the plants of a new factory.
func (f *factory) found(*tick) {
	for range f.options.plants {
		f.build()
	}
}

// build creates a plant: a chest, and the machines and belts that bring motors to it.
func (f *factory) build() {
	plant := f.world.Create()
	f.Plant.Set(plant, Plant{fmt.Sprintf("plant %v", plant)})
	f.supply(plant, f.NewChest.Create(PartOf{plant}, Chest{Item: Motor}), Motor)
	f.Built.Send(Built{plant})
}

// supply builds a line of belts to a chest or a machine. It puts a new machine at the start of the
// line. Then it builds the supply of the new machine.
//
// The belt at the end of a line is created first, so the system carry() visits it first. When its
// item has moved on, there is room for the item of the belt before it. So all items of a full line
// move in the same tick.
func (f *factory) supply(plant, to ecs.Entity, item Item) {
	for range beltLen {
		to = f.NewBelt.Create(PartOf{plant}, Feeds{to}, Belt{})
	}
	machine := f.NewMachine.Create(PartOf{plant}, Feeds{to}, Machine{Makes: item, Limit: limit})
	for need, n := range recipes[item].needs {
		if n > 0 {
			f.supply(plant, machine, Item(need))
		}
	}
}

// produce lets each machine that has its input make one portion of its product.
func (f *factory) produce(*tick) {
machines:
	for e, m := range f.working.All() {
		r := &recipes[m.Makes]
		if m.jammed() {
			continue
		}
		for item, n := range r.needs {
			if m.Stock[item] < n {
				continue machines
			}
		}
		for item, n := range r.needs {
			m.Stock[item] -= n
		}
		m.Stock[m.Makes] += r.yield
		f.Produced.Send(Produced{e, m.Makes})
	}
}

// jammed reports whether the machine has no room for another portion of its product.
func (m *Machine) jammed() bool { return m.Stock[m.Makes] > (m.Limit-1)*recipes[m.Makes].yield }

// ship empties the chests.
func (f *factory) ship(*tick) {
	totals := f.Totals.Mut()
	for e, c := range f.Chest.All() {
		totals.Shipped[c.Item] += c.Count
		f.Chest.Mut(e).Count = 0
	}
}

// carry moves each item to the next entity, if there is room. Its queries only read. Mut marks only
// the rows that change, so the other rows add nothing to the journal.
func (f *factory) carry(t *tick) {
	for e, row := range f.Carrying.All() {
		if row.A.Item != None && row.A.Since < t.Number && f.give(row.B.To, row.A.Item, t.Number) {
			f.Belt.Mut(e).Item = None
		}
	}
	for e, row := range f.Unloading.All() {
		if row.A.Stock[row.A.Makes] > 0 && f.give(row.B.To, row.A.Makes, t.Number) {
			f.Machine.Mut(e).Stock[row.A.Makes]--
		}
	}
}

// give hands an item to a belt, a machine or a chest. It returns false if there is no room.
func (f *factory) give(to ecs.Entity, item Item, now uint64) bool {
	if b, ok := f.Belt.Get(to); ok && b.Item == None {
		*f.Belt.Mut(to) = Belt{item, now}
		return true
	}
	if m, ok := f.Machine.Get(to); ok && m.Stock[item] < m.Limit*recipes[m.Makes].needs[item] {
		f.Machine.Mut(to).Stock[item]++
		return true
	}
	if c := f.Chest.Mut(to); c != nil {
		c.Count++
		return true
	}
	return false
}

// wear breaks machines at random, and repairs them after 100 ticks.
func (f *factory) wear(t *tick) {
	for e, b := range f.Broken.All() {
		if b.Until <= t.Number {
			f.Broken.Remove(e)
		}
	}
	random := t.Rand()
	for _, e := range f.Machine.Entities() {
		if random.IntN(500) == 0 && !f.Broken.Has(e) {
			f.Broken.Set(e, Broken{t.Number + 100})
			f.Break.Send(Break{e})
		}
	}
}

// renew closes a plant at random, and builds another one. All parts of the plant are destroyed
// with it, because that is the policy of the relation.
func (f *factory) renew(t *tick) {
	plants, totals := f.Plant.Entities(), f.Totals.Mut()
	plant := plants[t.Rand().IntN(len(plants))]
	for part := range f.parts.Of(plant) {
		f.addItems(part, &totals.Lost)
	}
	t.World.Destroy(plant)
	f.build()
}

// addItems adds the items of a belt, a chest or a machine to sums.
func (f *factory) addItems(part ecs.Entity, sums *[items]int64) {
	b, _ := f.Belt.Get(part)
	sums[b.Item] += int64(min(b.Item, 1))
	c, _ := f.Chest.Get(part)
	sums[c.Item] += c.Count
	m, _ := f.Machine.Get(part)
	for item, n := range m.Stock {
		sums[item] += int64(n)
	}
}

// count adds the events of the tick to the totals. An EventReader reads each event once.
func (f *factory) count(*tick) {
	totals := f.Totals.Mut()
	for p := range f.produced.All() {
		r := &recipes[p.Item]
		totals.Made[p.Item] += int64(r.yield)
		totals.Recent[p.Item] += int64(r.yield)
		for item, n := range r.needs {
			totals.Used[item] += int64(n)
		}
	}
	for range f.breaks.All() {
		totals.Breaks++
	}
	for range f.built.All() {
		totals.Built++
	}
}

// report prints the output since the last report, and which machines hold up others. It runs before
// the tick is committed. After a crash, the tick may run again and print the same report.
func (f *factory) report(t *tick) {
	totals := f.Totals.Mut()
	fmt.Fprintf(f.options.out, "tick %d: made%s; %d plants, %d built, %d breaks, %d broken\n", t.Number,
		list(totals.Recent), f.Plant.Len(), totals.Built, totals.Breaks, f.Broken.Len())
	totals.Recent = [items]int64{}

	// jammed[p][q] is the number of jammed machines that make q and that wait for a machine that
	// makes p.
	var jammed [items][items]int64
	for e, m := range f.Machine.All() {
		if m.jammed() {
			jammed[f.bottleneck(e)][m.Makes]++
		}
	}
	for item, counts := range jammed {
		if text := list(counts); text != "" {
			fmt.Fprintf(f.options.out, "tick %d: %v holds up%s\n", t.Number, Item(item), text)
		}
	}
}

// bottleneck follows the products of a jammed machine to the first machine that is not jammed. It
// returns what that machine makes, or None if all machines up to the chest are jammed.
func (f *factory) bottleneck(e ecs.Entity) Item {
	for next := range f.feeders.Ancestors(e) {
		if m, ok := f.Machine.Get(next); ok && !m.jammed() {
			return m.Makes
		}
	}
	return None
}

// list returns the counts that are not 0.
func list(counts [items]int64) (s string) {
	for item, n := range counts {
		if n != 0 {
			s += fmt.Sprintf(" %d %v", n, Item(item))
		}
	}
	return s
}
