package image

import "github.com/stet-ecs/stet/ecs/raw"

// Access to the internals of an image for external tests.

// CheckOps compares im with the effect of ops on im. It applies no patches, so ops with any effect
// differ from im.
func (im *Image) CheckOps(ops []byte) (bad, differs error) {
	if err := im.expect(ops); err != nil {
		return err, nil
	}
	return nil, im.ops.compare(im)
}

func (c *Component) SetValues(ranges []raw.Range, src []byte) error { return c.setValues(ranges, src) }
