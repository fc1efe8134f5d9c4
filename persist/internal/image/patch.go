package image

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/internal/naming"
	"github.com/stet-ecs/stet/persist/internal/format"
)

// ErrRanges reports a patch or page whose number of rows does not match its ranges.
var ErrRanges = errors.New("ranges and rows differ in length")

// CheckRegistry checks the sizes in a patch of a registry with n rows. It does not check the
// entities. If the registry grows, the patch must contain all new rows. So a small hostile file
// cannot make the program allocate memory for many rows.
func CheckRegistry(p *format.RegistryPatch, n int) error {
	if err := format.CheckSizes(p.Alive, p.Free, p.Total); err != nil {
		return err
	}
	if len(p.Rows) != 8*format.CountRows(p.Ranges) {
		return ErrRanges
	}
	if given := len(p.Rows) / 8; p.Total-n > given {
		return fmt.Errorf("%d rows grow to %d, but only %d are given", n, p.Total, given)
	}
	return nil
}

// CheckStorage checks a patch of c, except its contents. c has n rows of the given width.
//
// The patch states the number of rows before the tick, which must be n. Two patches may state
// another number:
//
//   - a patch of a component that does not rewind, because it has all rows
//   - the first patch of a resource, for which n is 0
func CheckStorage(c *format.Entry, p *format.StoragePatch, n, width int) error {
	if c.Rewinds && p.Before != n && !(c.Resource && n == 0) {
		return fmt.Errorf("continues %d rows, has %d", p.Before, n)
	}
	given := format.CountRows(p.EntityRanges)
	if len(p.Entities) != 8*given || c.Resource && (p.After != 1 || given > 0) {
		return ErrRanges
	}
	if c.Resource {
		given = 1
	}
	if p.After-n > given {
		return fmt.Errorf("%d rows grow to %d, but only %d are given", n, p.After, given)
	}
	if width > 0 && p.After-n > len(p.Values)/width {
		return fmt.Errorf("%d rows grow to %d, but the values have %d bytes", n, p.After, len(p.Values))
	}
	// Edited rows must exist. Ranges ascend, so checking the last one is enough.
	if k := len(p.EditRanges) - 1; k >= 0 && (!c.Rewinds || p.EditRanges[k].First+p.EditRanges[k].N > n) {
		return fmt.Errorf("edits of rows that the state of %d rows does not have", n)
	}
	return nil
}

// Patch applies the rows of t to im in the order of the payload. The registry comes first, because
// it defines the indices.
func (im *Image) Patch(t *format.Tick) error {
	if t.Registry != nil {
		if err := im.applyRegistry(t.Registry); err != nil {
			return fmt.Errorf("tick %d: entities: %w", t.Tick, err)
		}
	}
	for i := range t.Storages {
		if err := im.applyStorage(&t.Storages[i]); err != nil {
			return fmt.Errorf("tick %d: %w", t.Tick, err)
		}
	}
	return nil
}

// applyRegistry applies a patch of the registry.
func (im *Image) applyRegistry(p *format.RegistryPatch) error {
	if err := CheckRegistry(p, len(im.Registry)); err != nil {
		return err
	}
	// applyRegistry does not check that every index occurs once. Unsound checks this, and a world
	// does when it loads the image.
	im.Registry = Resized(im.Registry, p.Total)
	im.Index = Resized(im.Index, p.Total)
	im.Alive, im.Free = p.Alive, p.Free
	src := p.Rows
	for _, r := range p.Ranges {
		for row := r.First; row < r.First+r.N; row, src = row+1, src[8:] {
			e := ecs.Entity(binary.LittleEndian.Uint64(src))
			if int(e.Index()) >= p.Total {
				return fmt.Errorf("row %d holds %v of %d", row, e, p.Total)
			}
			im.Registry[row] = e
			im.Index[e.Index()] = uint32(row)
		}
	}
	return nil
}

// applyStorage applies a patch of one component: the length first, then the entities, then the
// values.
func (im *Image) applyStorage(p *format.StoragePatch) error {
	if p.Number >= len(im.Components) {
		return fmt.Errorf("component number %d of %d", p.Number, len(im.Components))
	}
	c := im.Components[p.Number]
	if err := c.apply(p, len(im.Registry)); err != nil {
		return fmt.Errorf("component %s: %w", naming.Shown(c.Name), err)
	}
	return nil
}

// apply applies the patch p to c. Indices of entities must be below indices.
func (c *Component) apply(p *format.StoragePatch, indices int) error {
	if err := CheckStorage(&c.Entry, p, c.N, c.Width); err != nil {
		return err
	}
	c.Resize(p.After)
	src := p.Entities // CheckStorage has checked that the length matches the ranges.
	for _, r := range p.EntityRanges {
		if err := c.SetEntities(r.First, src[:8*r.N], indices); err != nil {
			return err
		}
		src = src[8*r.N:]
	}
	if err := c.setValues(p.ValueRanges, p.Values); err != nil {
		return err
	}
	return c.editRows(p)
}

// editRows applies the edits of p.
func (c *Component) editRows(p *format.StoragePatch) error {
	return p.EachEdited(c.Layout, c.Row, func(row int, edited []byte) {
		if c.Width >= 0 {
			copy(c.Packed[row*c.Width:], edited)
		} else {
			c.Rows[row] = bytes.Clone(edited) // A row never changes, because other images share it.
		}
	})
}

// setValues replaces the rows of ranges by those encoded in src, and checks them. Rows of fixed
// width are checked all at once, because one call per scattered row would be slow. If a row is
// invalid, setValues checks each range to find the row.
func (c *Component) setValues(ranges []raw.Range, src []byte) error {
	if c.Width > 0 && c.Layout.Check(src, format.CountRows(ranges)) == nil {
		c.setPacked(ranges, src)
		return nil
	}
	for _, r := range ranges {
		rest, err := c.SetRows(r.First, r.N, src)
		if err != nil {
			return fmt.Errorf("rows from %d: %w", r.First, err)
		}
		src = rest
	}
	if len(src) > 0 {
		return ErrRanges
	}
	return nil
}

// setPacked replaces rows of fixed width by src. src is valid and has as many rows as the ranges.
func (c *Component) setPacked(ranges []raw.Range, src []byte) {
	for _, r := range ranges {
		n := copy(c.Packed[r.First*c.Width:(r.First+r.N)*c.Width], src)
		src = src[n:]
	}
}
