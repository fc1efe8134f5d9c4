package ecs

// A noCopy as the first field makes go vet report copies of a struct. A copy would share buffers or
// hooks with the original.
type noCopy struct{}

// Lock and Unlock mark the type for the copylocks check of go vet.
func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}
