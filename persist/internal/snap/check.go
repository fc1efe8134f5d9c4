package snap

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/internal/digest"
	"github.com/stet-ecs/stet/internal/parallel"
	"github.com/stet-ecs/stet/persist/internal/format"
	"github.com/stet-ecs/stet/persist/internal/image"
)

// A check verifies the state of a file page by page. It finds the same faults as [Reader.Load] and
// [image.Image.Unsound]. It keeps 4 bytes for each entity index, and 4 bytes for each row of one
// component:
//
//	registry   each index once; the entities that are alive
//	dense      the entities of rows: alive, one row each
//	sparse     each entry leads to the row of its entity, and each such row has an entry
//	data       rows can be decoded; gaps contain the default
//	digest     the checksums of groups of 4096 rows, which are read together
type check struct {
	*Reader
	image *image.Image // Image of the state, without rows.
	alive []uint32     // Generation of the alive entity with this index, or 0.
	rows  []uint32     // Entity index of each row of the current component.
	seen  []uint32     // One bit per index, set if the index was seen in an array of entities.
}

// ErrUnchecked is the error of [Reader.Check] for a file whose number of rows in a page does not
// divide 4096. Such a file must be loaded to be checked.
var ErrUnchecked = errors.New("persist: only the loaded state can be checked")

// Check verifies the whole state and returns its first error. It verifies only the blocks of the
// file that it reads, and its errors have less detail than those of Load. Memory: a few pages and 8
// bytes for each entity, independent of the components' values.
func (r *Reader) Check(ctx context.Context) error {
	m := r.Manifest
	if err := r.CheckRegistry(); err != nil {
		return err
	}
	c := &check{Reader: r, image: image.New(m.Schema), alive: make([]uint32, m.Total), seen: make([]uint32, (m.Total+31)/32)}
	registry, err := c.registry(ctx)
	if err != nil {
		return fmt.Errorf("entities: %w", err)
	}
	var parts []digest.Part
	for n, of := range c.image.Components {
		sum, err := c.component(ctx, n)
		if err != nil {
			return r.InComponent(n, err)
		}
		if of.Rewinds && m.Components[n].Rows > 0 {
			parts = append(parts, digest.Part{Name: of.Name, Sum: sum})
		}
	}
	if d := ecs.Digest(digest.World(m.Tick, registry, parts)); d != m.Digest {
		return fmt.Errorf("digest %v, recorded as %v", d, m.Digest)
	}
	return ctx.Err()
}

// registry checks the registry and returns its checksum. It stores the generations of alive
// entities in c.alive.
func (c *check) registry(ctx context.Context) (uint64, error) {
	m := c.Manifest
	if err := format.CheckSizes(m.Alive, m.Free, m.Total); err != nil {
		return 0, err
	}
	sum, err := c.sum(ctx, m.Total, func(p *image.Page, lo, hi int) error {
		content, err := c.Page(m.Registry(), lo/format.PageRows)
		if err != nil {
			return err
		}
		for row := lo; row < hi; row++ {
			e := format.EntityAt(content, row-lo)
			if int64(e.Index()) >= int64(m.Total) || e.Generation() == 0 || c.meet(e) {
				return fmt.Errorf("row %d holds %v, which is out of range or there twice", row, e)
			}
			if row < m.Alive {
				c.alive[e.Index()] = e.Generation()
			}
		}
		p.Bytes(content)
		return nil
	})
	return digest.RegistryOf(sum, m.Alive, m.Free), err
}

// meet adds e to the entities that were seen in an array. It reports whether an entity with the
// same index was seen before. Several goroutines may call meet.
func (c *check) meet(e ecs.Entity) bool {
	bit := uint32(1) << (e.Index() % 32)
	return atomic.OrUint32(&c.seen[e.Index()/32], bit)&bit != 0
}

// sum splits n rows into groups of 4096, and calls the function group for each, several at the same
// time. The function adds the rows to p. sum returns the checksum of all groups.
func (c *check) sum(ctx context.Context, n int, group func(p *image.Page, lo, hi int) error) (uint64, error) {
	fault := make([]error, (n+format.PageRows-1)/format.PageRows)
	sum := image.SumRows(n, func(p *image.Page, lo, hi int) {
		if fault[lo/format.PageRows] = ctx.Err(); ctx.Err() == nil {
			fault[lo/format.PageRows] = group(p, lo, hi)
		}
	})
	for _, err := range fault {
		if err != nil {
			return 0, err
		}
	}
	return sum, nil
}

// component checks component number n and returns its checksum.
func (c *check) component(ctx context.Context, n int) (uint64, error) {
	if err := claims(c.Manifest, n); err != nil {
		return 0, err
	}
	of, rows := c.image.Components[n], c.Manifest.Components[n].Rows
	if !of.Resource && int64(rows) > c.room()/8 { // Each row has an entity of 8 bytes.
		return 0, fmt.Errorf("%d rows in files that have no room for them", rows)
	}
	clear(c.seen)
	if c.rows = nil; !of.Resource {
		c.rows = make([]uint32, rows)
	}
	var gaps atomic.Int64
	sum, err := c.sum(ctx, rows, func(p *image.Page, lo, hi int) error {
		holders, err := c.holders(p, n, lo, hi)
		if err != nil {
			return err
		}
		if !of.Indexed {
			return c.values(p, n, lo, hi, nil)
		}
		return c.values(p, n, lo, hi, func(row int, value []byte) error {
			if format.EntityAt(holders, row-lo) != ecs.Vacant {
				return nil
			}
			if gaps.Add(1); string(value) != string(of.Gap()) {
				return fmt.Errorf("gap %d does not contain the default", row)
			}
			return nil
		})
	})
	if err != nil || of.Resource {
		return sum, err
	}
	return sum, c.sparse(ctx, n, rows-int(gaps.Load()))
}

// holders checks the entities of rows [lo, hi) of component number n and returns them encoded. It
// returns nil for a resource.
func (c *check) holders(p *image.Page, n, lo, hi int) ([]byte, error) {
	of := c.image.Components[n]
	if of.Resource {
		return nil, nil
	}
	content, err := c.Page(c.Manifest.Array(n, format.DenseArray), lo/format.PageRows)
	if err != nil {
		return nil, err
	}
	for row := lo; row < hi; row++ {
		e := format.EntityAt(content, row-lo)
		c.rows[row] = e.Index()
		switch {
		case of.Indexed && e == ecs.Vacant:
			c.rows[row] = format.NoRow
		case int64(e.Index()) >= int64(len(c.alive)) || c.alive[e.Index()] != e.Generation() || e.Generation() == 0:
			return nil, fmt.Errorf("row %d belongs to %v, which is not alive", row, e)
		case of.Indexed && int(e.Index()) != row:
			return nil, fmt.Errorf("row %d belongs to %v, which has another index", row, e)
		case c.meet(e):
			return nil, fmt.Errorf("%v has two rows", e)
		}
	}
	p.Bytes(content)
	return content, nil
}

// values checks the values of rows [lo, hi) of component number n. It calls the function each, if
// not nil, with each row and its encoding.
func (c *check) values(p *image.Page, n, lo, hi int, each func(row int, value []byte) error) error {
	a, t := c.Manifest.Array(n, format.DataArray), c.image.Components[n].Layout
	if a.Rows == 0 { // The rows have zero bytes, so there is no data array.
		for row := lo; row < hi && each != nil; row++ {
			if err := each(row, nil); err != nil {
				return err
			}
		}
		return nil
	}
	if format.PageRows%a.PageRows != 0 {
		return ErrUnchecked
	}
	for page := lo / a.PageRows; page*a.PageRows < hi; page++ {
		content, err := c.Page(a, page)
		if err != nil {
			return err
		}
		p.Bytes(content)
		first, end := a.Span(page)
		if err := t.Check(content, end-first); err != nil {
			return inPage(a.Key(page), err)
		}
		for row := first; row < end && each != nil; row++ {
			var value []byte
			value, content, _ = t.Next(content) // The content was checked above.
			if err := each(row, value); err != nil {
				return err
			}
		}
	}
	return nil
}

// sparse compares the sparse array of component number n with its rows. entities is the number of
// rows with an entity.
func (c *check) sparse(ctx context.Context, n, entities int) error {
	a := c.Manifest.Array(n, format.SparseArray)
	var entries atomic.Int64
	err := parallel.Do(ctx, a.Pages(), func(page int) error {
		content, err := c.Page(a, page)
		if err != nil {
			return err
		}
		return format.DecodeSparsePage(content, func(i int, row uint32, run int) error {
			entries.Add(int64(run))
			for k := range run {
				index, at := uint32(page*format.PageRows+i+k), int64(row)+int64(k)
				if at >= int64(len(c.rows)) || c.rows[at] != index {
					return inPage(a.Key(page), fmt.Errorf("sparse entry %d names row %d of another entity", index, at))
				}
			}
			return nil
		})
	})
	if err == nil && entries.Load() != int64(entities) {
		err = fmt.Errorf("%d sparse entries for %d entities", entries.Load(), entities)
	}
	return err
}
