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
	c := j.begin(nil)
	for run := c.next(); run != nil; run = c.next() {
		dst = append(dst, c.entities(run[c.stride-1])...)
	}
	return dst
}

func (q *Query1[A]) base() *join          { return &q.join }
func (q *Query2[A, B]) base() *join       { return &q.join }
func (q *Query3[A, B, C]) base() *join    { return &q.join }
func (q *Query4[A, B, C, D]) base() *join { return &q.join }

// AppendEntities appends the entities found to dst, in the order of iteration,
// for batches: [World.DestroyAll], [Storage.SetAll], [Storage.RemoveAll].
func (q *Query1[A]) AppendEntities(dst []Entity) []Entity { return q.join.appendEntities(dst) }

// AppendEntities appends the entities found to dst, in the order of iteration.
func (q *Query2[A, B]) AppendEntities(dst []Entity) []Entity { return q.join.appendEntities(dst) }

// AppendEntities appends the entities found to dst, in the order of iteration.
func (q *Query3[A, B, C]) AppendEntities(dst []Entity) []Entity { return q.join.appendEntities(dst) }

// AppendEntities appends the entities found to dst, in the order of iteration.
func (q *Query4[A, B, C, D]) AppendEntities(dst []Entity) []Entity {
	return q.join.appendEntities(dst)
}
