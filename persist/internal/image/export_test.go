package image

import "github.com/stet-ecs/stet/ecs/raw"

// Access to the internals of an image for external tests.

// CheckOps returns an error in bad if ops are invalid. Otherwise it compares the result of ops with
// im. It applies no patches, so differs is not nil if ops have any effect.
func (im *Image) CheckOps(ops []byte) (bad, differs error) {
	if err := im.expect(ops); err != nil {
		return err, nil
	}
	return nil, im.ops.compare(im)
}

func (c *Component) SetValues(ranges []raw.Range, src []byte) error { return c.setValues(ranges, src) }
