package ecs

// A noCopy in a struct makes go vet report copies of the struct. Such a struct has buffers or
// hooks, which a copy would share with the original. A noCopy is the first field, because the last
// field would add padding.
type noCopy struct{}

// Lock and Unlock mark the type for the copylocks check of go vet.
func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}
