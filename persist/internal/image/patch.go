package image

import (
	"fmt"

	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/persist/internal/format"
)

// setValues overwrites the rows of ranges, which the component has, by those
// encoded in src, which it checks. Rows of fixed width are checked all at once:
// scattered ones would cost a call each. Only if one of them is bad are they gone
// through range by range, to say which.
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

// setPacked is setValues for rows of fixed width that are known to be good.
func (c *Component) setPacked(ranges []raw.Range, src []byte) {
	for _, r := range ranges {
		n := copy(c.Packed[r.First*c.Width:(r.First+r.N)*c.Width], src)
		src = src[n:]
	}
}
