package image

import "github.com/stet-ecs/stet/ecs/raw"

// What follows opens the inside of an image to tests that see it from outside.

// CheckOps compares what ops lead to with im, to which no tick was applied.
func (im *Image) CheckOps(ops []byte) (bad, differs error) {
	if err := im.expect(ops); err != nil {
		return err, nil
	}
	return nil, im.ops.compare(im)
}

func (c *Component) SetValues(ranges []raw.Range, src []byte) error { return c.setValues(ranges, src) }
