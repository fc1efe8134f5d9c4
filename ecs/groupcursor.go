package ecs

import "slices"

// A groupCursor is what a cursor knows of the group of its driver, so that rows
// which the group moves are neither skipped nor visited twice:
//
//	driver    | visited ... | row | not visited yet ... |
//
// Who enters the group goes to its border, who leaves it goes behind. While no row
// in front of the one visited is behind the border, nothing moves there.
type groupCursor struct {
	all            bool // The query is over all sets of the group: there is nothing behind its members.
	n              int
	entries, exits uint64
	resets         uint64
}

// noteGroup remembers what the driver's group looks like.
func (c *cursor) noteGroup() {
	g := c.set.group
	if g == nil {
		return
	}
	c.group = groupCursor{n: g.rows.N, entries: g.entries, exits: g.exits, resets: g.resets, all: true}
	for _, s := range g.sets {
		c.group.all = c.group.all && c.j.requires(s)
	}
}

// requires reports whether all entities of the join are in s.
func (j *join) requires(s *set) bool {
	k := slices.Index(j.sets, s)
	return k >= 0 && !j.isOptional(k)
}

// limit returns the driver's row behind the last one that may be in the join.
func (c *cursor) limit() int {
	if c.group.all && c.set.group.rows.Extra == 1 {
		return c.set.group.rows.N
	}
	return c.set.rows.N
}

// follow goes on after the driver's group moved rows while e, then in row, was
// visited. It returns the row to go on with, unless resume finds e there.
func (c *cursor) follow(row int, e Entity) int {
	g, before := c.set.group, &c.group
	if g == nil || c.byWord || g.entries == before.entries && g.exits == before.exits {
		return row
	}
	removed := c.set.lostAt > c.since
	exits := g.exits - before.exits
	switch {
	case g.resets != before.resets || exits > 1 || exits == 1 && g.left != e:
	case row <= before.n:
		// All that moved lies at row or behind. If e is one of them, it must be gone
		// from the join, or have come back as a new row.
		if at := c.set.row(e); at <= row || removed || !c.j.finds(c.driver, at, e) {
			return row
		}
	case !removed && g.entries == before.entries+1 && g.entered == e:
		return row + 1 // It was exchanged with one visited before.
	}
	panic("ecs: a group moved rows across a query that was iterating at " + e.String() +
		": another entity left it, or entered it while one that is no member was visited, or the one visited left it and not the query; change such entities after the loop")
}

// finds reports whether e, which is row of the driver, is in the join.
func (j *join) finds(driver, row int, e Entity) bool {
	var at [maxSets + 1]uint32
	return j.probe(driver, row, e, &at)
}
