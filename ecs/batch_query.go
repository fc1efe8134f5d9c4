package ecs

// An AnyQuery is a query of any number of components: [Query1], [Query2] and so
// on.
type AnyQuery interface {
	// AppendEntities appends the entities found to dst, in the order of iteration.
	AppendEntities(dst []Entity) []Entity

	// Count returns the number of entities found.
	Count() int

	base() *join
}

// appendEntities appends the entities of the join to dst.
func (j *join) appendEntities(dst []Entity) []Entity {
	var c cursor
	c.begin(j, nil)
	for run := c.next(); run != nil; run = c.next() {
		dst = append(dst, c.entities(run[c.stride-1])...)
	}
	return dst
}
