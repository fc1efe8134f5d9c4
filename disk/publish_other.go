//go:build !linux

package disk

// Publish needs several steps, because this system has no single call for it.
func (d dir) Publish(from, to string) error { return d.publishInSteps(from, to) }
