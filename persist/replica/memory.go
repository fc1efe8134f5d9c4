package replica

import "unsafe"

// memoryOf returns how many bytes of memory a slice of operations uses.
func memoryOf(ops []op) (n int64) {
	for i := range ops {
		n += int64(unsafe.Sizeof(ops[i])) + int64(cap(ops[i].data))
	}
	return n
}
