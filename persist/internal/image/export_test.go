package image

import "github.com/stet-ecs/stet/ecs/raw"

// Access to the internals of an image for external tests.

// CheckOps compares im with the effect that ops have on im. It applies no patches, so im stays as
// before. If ops have any effect, differs is not nil.
func (im *Image) CheckOps(ops []byte) (bad, differs error) {
	if err := im.expect(ops); err != nil {
		return err, nil
	}
	return nil, im.ops.compare(im)
}

func (c *Component) SetValues(ranges []raw.Range, src []byte) error { return c.setValues(ranges, src) }
