package repair

import (
	"cmp"
	"math"
	"slices"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist/internal/format"
	"github.com/stet-ecs/stet/persist/internal/image"
)

// A damaged state is repaired so that a world can load it. Some data is stored twice, so one array
// may have data that another has lost. The sparse array maps an index to a row. The dense array
// maps a row to an entity. The registry lists all entities. There are three steps:
//
//   - pointBack() restores entities of rows from the sparse array and the registry.
//   - mendRegistry() adds the entities to the registry that only components have.
//   - mendComponent() drops the rows that are still incomplete.
//
// No value is guessed: a row without an entity or without its value is dropped.

// A Missing says how many rows a component or resource lacks in a state that was restored from a
// damaged file.
type Missing struct {
	Component string
	// Rows is the number of lost rows. In an indexed component, a lost row may have been a gap,
	// so Rows is an upper limit.
	Rows int
	// Of is the number of rows in the original state, or an upper limit for an indexed component.
	Of int
}

// mended makes a complete state from the known rows of p. It returns the rows that each component
// lacks. It also returns the number of lost live entities, and the number of indices that can never
// be reused.
func (p *pieces) mended() (missing []Missing, entities, retired int) {
	p.pointBack()
	entities, retired = p.mendRegistry()
	for n, c := range p.im.Components {
		of := c.Members()
		if c.Indexed {
			// Unknown rows may include gaps.
			of += p.entities[n].unknown()
		}
		p.mendComponent(n, c)
		if lost := of - c.Members(); lost > 0 {
			missing = append(missing, Missing{c.Name, lost, of})
		}
	}
	return missing, entities, retired
}

// pointBack restores unknown entities of rows. For each index on a sparse page, the page has the
// row, and the registry has the entity. An indexed component has a gap at each index that is not on
// the page.
func (p *pieces) pointBack() {
	rows := p.rowsByIndex()
	for _, page := range p.sparse {
		c, known := p.im.Components[page.Component], p.entities[page.Component]
		first := page.Page * format.PageRows
		entry := make([]bool, format.PageRows)
		err := format.DecodeSparsePage(page.Content, func(i int, row uint32, count int) error {
			for j := range count {
				entry[i+j] = true
				// Do not replace an entity that the dense array has. In an indexed component, a row
				// that differs from its index is damage.
				if index, r := first+i+j, int(row)+j; r < len(known) && !known[r] && index < len(rows) && (!c.Indexed || r == index) {
					known[r] = p.pointTo(c, r, rows[index])
				}
			}
			return nil
		})
		// A sparse page has every index with a row. So in an indexed component, all other indices
		// of the page are gaps.
		for i := 0; c.Indexed && err == nil && i < format.PageRows && first+i < len(known); i++ {
			known[first+i] = known[first+i] || !entry[i]
		}
	}
}

// pointTo copies the entity of a registry row to row r of the component c. If the registry row is
// unknown or not alive, pointTo changes nothing and returns false.
func (p *pieces) pointTo(c *image.Component, r, row int) bool {
	if row < 0 || row >= p.im.Alive {
		return false
	}
	// Until now, this unknown row held ecs.Vacant and counted as a gap.
	c.CountGap(c.Entities[r], -1)
	c.Entities[r] = p.im.Registry[row]
	return true
}

// rowsByIndex returns the registry row of each index, or -1 if the row is unknown.
func (p *pieces) rowsByIndex() []int {
	rows := make([]int, len(p.im.Registry))
	for i := range rows {
		rows[i] = -1
	}
	for row, e := range p.im.Registry {
		if p.registry[row] {
			rows[e.Index()] = row
		}
	}
	return rows
}

// mendRegistry completes the registry, so each index has one row again. Live rows that are unknown
// get the entities that only components have. An index without a known entity is retired: its
// generation is lost, and an old handle must never become valid again. mendRegistry returns how
// many live entities and how many indices are lost.
func (p *pieces) mendRegistry() (lost, unused int) {
	im := p.im
	found := p.foundEntities()
	var alive, free, retired []ecs.Entity
	for row, e := range im.Registry {
		switch {
		case !p.registry[row] && row < im.Alive && len(found) > 0:
			alive, found = append(alive, found[0]), found[1:]
		case !p.registry[row] && row < im.Alive:
			lost++
		// A free or retired row is lost. If no other row has its index, the index is retired below.
		case !p.registry[row]:
		case row < im.Alive:
			alive = append(alive, e)
		case row < im.Free:
			free = append(free, e)
		default:
			retired = append(retired, e)
		}
	}
	used := make([]bool, len(im.Registry))
	for _, e := range slices.Concat(alive, free, retired) {
		used[e.Index()] = true
	}
	for index, used := range used {
		// An index with the highest generation is never reused.
		if !used {
			retired = append(retired, ecs.NewEntity(uint32(index), math.MaxUint32))
			unused++
		}
	}
	im.Alive, im.Free = len(alive), len(alive)+len(free)
	im.Registry = slices.Concat(alive, free, retired)
	im.Index = format.SparseOf(im.Registry, len(im.Registry))
	return lost, unused
}

// foundEntities returns the entities that have components but no known row in the registry, in
// the order of their indices.
func (p *pieces) foundEntities() (found []ecs.Entity) {
	rows := p.rowsByIndex()
	for n, c := range p.im.Components {
		// A no-rewind component may have rows of dead entities.
		if !c.Rewinds {
			continue
		}
		for row, e := range c.Entities {
			if p.entities[n][row] && e != ecs.Vacant && rows[e.Index()] == -1 {
				found = append(found, e)
			}
		}
	}
	// A valid state has one generation per index. If components have several generations of an
	// index, use the newest.
	slices.SortFunc(found, func(a, b ecs.Entity) int {
		return cmp.Or(cmp.Compare(a.Index(), b.Index()), cmp.Compare(b.Generation(), a.Generation()))
	})
	return slices.CompactFunc(found, func(a, b ecs.Entity) bool { return a.Index() == b.Index() })
}

// mendComponent drops incomplete rows of component number n. It also drops rows whose entity is
// dead or already has a row.
func (p *pieces) mendComponent(n int, c *image.Component) {
	if c.Resource {
		if p.values[n].unknown() > 0 {
			c.Resize(0)
		}
		return
	}
	seen := make([]bool, len(p.im.Registry))
	c.Keep(func(row int) bool {
		e := c.Entities[row]
		if !p.entities[n][row] || !p.values[n][row] || e == ecs.Vacant || !p.im.IsAlive(e) || seen[e.Index()] {
			return false
		}
		seen[e.Index()] = true
		return true
	})
}
