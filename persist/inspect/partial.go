package inspect

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/internal/pagefile"
	"github.com/stet-ecs/stet/persist/internal/format"
)

// A state of pieces becomes one that a world can be in. Three arrays say the same in part, and
// what one has lost another may have: sparse leads from an index to a row, dense from a row to
// an entity, the registry from a row to an entity that is alive. First rows get their entities
// back (pointBack), then the registry those that only components know (mendRegistry), and what
// is still unknown then is dropped (mendComponent). Nothing is guessed: a row without an entity,
// or one whose value is lost, goes.

// A Missing says what a state that was put together from pieces lacks of a
// component or resource.
type Missing struct {
	Component string
	Rows      int // That are lost; at most, where a gap of an indexed one cannot be told from a row.
	Of        int // How many there were.
}

// mended makes a state of what p knows: rows that are not known, in whole or in part,
// are dropped, and the registry is put together from what components say of entities.
// It returns what is missing, how many entities are: those alive of which nothing is
// known, and how many indices are retired.
func (p *pieces) mended() (missing []Missing, entities, retired int) {
	p.pointBack()
	entities, retired = p.mendRegistry()
	for n, c := range p.im.Components {
		of := c.Members()
		if c.Indexed {
			of += p.entities[n].unknown() // Gaps or not.
		}
		p.mendComponent(n, c)
		if lost := of - c.Members(); lost > 0 {
			missing = append(missing, Missing{c.Name, lost, of})
		}
	}
	return missing, entities, retired
}

// pointBack fills in entities from sparse arrays: an entry says which row an index
// has, and the registry which entity it is. A row that no tick gave has the entity
// that it had in the snapshot, and an index without an entry a gap.
func (p *pieces) pointBack() {
	rows := p.rowsByIndex()
	for _, k := range slices.SortedFunc(maps.Keys(p.sparse), pagefile.Key.Compare) {
		n := int(k.Column-format.FirstColumn) / 4
		c, known := p.im.Components[n], p.entities[n]
		first := int(k.Page) * format.PageRows
		entry := make([]bool, format.PageRows)
		err := format.DecodeSparsePage(p.sparse[k], func(i int, row uint32, count int) error {
			for j := range count {
				entry[i+j] = true
				// What dense says comes first. Of an indexed component row and index are one.
				if index, r := first+i+j, int(row)+j; r < len(known) && !known[r] && index < len(rows) && (!c.Indexed || r == index) {
					known[r] = p.pointTo(c, r, rows[index])
				}
			}
			return nil
		})
		// A page of sparse names every index that has a row: what it does not name is a gap.
		for i := 0; c.Indexed && err == nil && i < format.PageRows && first+i < len(known); i++ {
			known[first+i] = known[first+i] || !entry[i]
		}
	}
}

// pointTo gives row r of c the entity in a row of the registry, if that is known and
// alive.
func (p *pieces) pointTo(c *Component, r, row int) bool {
	if row < 0 || row >= p.im.Alive {
		return false
	}
	c.CountGap(c.Entities[r], -1) // A row that is not known counts as a gap.
	c.Entities[r] = p.im.Registry[row]
	return true
}

// rowsByIndex returns the known row of the registry that each index has, or -1.
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

// mendRegistry makes the registry one of all indices again. In the place of rows that
// are not known come the entities that components have. Indices of which nothing is
// known are never used again: their generations are lost, and a handle from before
// must not come to life. It returns how many entities that were alive are lost, and
// how many indices.
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
		case !p.registry[row]: // Free or retired: its index is retired below, unless somebody has it.
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
		if !used { // The last generation there is: none comes after it.
			retired = append(retired, ecs.NewEntity(uint32(index), math.MaxUint32))
			unused++
		}
	}
	im.Alive, im.Free = len(alive), len(alive)+len(free)
	im.Registry = slices.Concat(alive, free, retired)
	im.Index = format.SparseOf(im.Registry, len(im.Registry))
	return lost, unused
}

// foundEntities returns the entities that have components and indices of which the
// registry does not know the row, in the order of their indices.
func (p *pieces) foundEntities() (found []ecs.Entity) {
	rows := p.rowsByIndex()
	for n, c := range p.im.Components {
		if !c.Rewinds { // Its entities may be dead.
			continue
		}
		for row, e := range c.Entities {
			if p.entities[n][row] && e != ecs.Vacant && rows[e.Index()] == -1 {
				found = append(found, e)
			}
		}
	}
	// No good state has two generations of an index; of this one the newest is kept.
	slices.SortFunc(found, func(a, b ecs.Entity) int {
		return cmp.Or(cmp.Compare(a.Index(), b.Index()), cmp.Compare(b.Generation(), a.Generation()))
	})
	return slices.CompactFunc(found, func(a, b ecs.Entity) bool { return a.Index() == b.Index() })
}

// mendComponent drops the rows of component number n that are not known, or whose
// entity is not alive or has a row before.
func (p *pieces) mendComponent(n int, c *Component) {
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
