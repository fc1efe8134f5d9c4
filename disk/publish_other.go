//go:build !linux

package disk

// Publish has no single call here.
func (d dir) Publish(from, to string) error { return d.publishInSteps(from, to) }
