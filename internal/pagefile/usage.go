package pagefile

// A Usage says what the bytes of a page file are for. They add up to its size.
type Usage struct {
	Values    int64 // Of pages.
	Tree      int64 // Keys, nodes, and what is left empty in them.
	Free      int64 // Pages of bbolt that belong to no node. Files that bbolt wrote have some.
	Checksums int64 // The trailer.
}

// Usage calls visit like [File.Keys] and returns what the bytes of f are for.
func (f *File) Usage(visit func(k Key, size int64) error) (Usage, error) {
	u := Usage{Checksums: f.size - f.length}
	w := f.newWalk(f.readAt, func(k Key, _, size int64) error {
		u.Values += size
		return visit(k, size)
	})
	if err := w.all(f.bucket); err != nil {
		return Usage{}, err
	}
	nodes := int64(minPages) + w.seen.count()
	u.Tree = nodes*pageSize - u.Values
	u.Free = f.length - nodes*pageSize
	return u, nil
}
