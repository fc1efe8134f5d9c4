package ecs

import (
	"reflect"
	"testing"
	"unsafe"
)

// go vet must report a copy of a World, a Storage or a similar value, because the copy would share
// memory with the original. Programs may copy the values of the second list of types, so go vet
// must accept these copies.
func TestNoCopy_VetReportsCopiesOfWorlds(t *testing.T) {
	for _, guarded := range []reflect.Type{
		reflect.TypeFor[World](), reflect.TypeFor[Storage[plain]](), reflect.TypeFor[Resource[plain]](),
		reflect.TypeFor[Commands](), reflect.TypeFor[Deferred[plain]](), reflect.TypeFor[ChangeFilter](),
		reflect.TypeFor[Query1[plain]](), reflect.TypeFor[Query2[plain, plain]](), reflect.TypeFor[Group](),
		reflect.TypeFor[Index[plain, int]](), reflect.TypeFor[Mask](), reflect.TypeFor[Past](),
		reflect.TypeFor[PastStorage[plain]](), reflect.TypeFor[Delta[plain]](), reflect.TypeFor[EntityDelta](),
	} {
		if !hasLock(guarded) {
			t.Errorf("go vet does not report copies of %v", guarded)
		}
	}
	for _, free := range []reflect.Type{
		reflect.TypeFor[Bundle2[plain, plain]](), reflect.TypeFor[Relation[plain]](), reflect.TypeFor[Events[plain]](),
		reflect.TypeFor[EventReader[plain]](), reflect.TypeFor[Checkpoint](), reflect.TypeFor[History](),
		reflect.TypeFor[Row2[plain, plain]](), reflect.TypeFor[Bits](), reflect.TypeFor[Component[plain]](),
	} {
		if hasLock(free) {
			t.Errorf("go vet reports copies of %v", free)
		}
	}
	if unsafe.Sizeof(noCopy{}) != 0 {
		t.Error("a noCopy takes memory")
	}
}

// hasLock reports whether the copylocks check of go vet reports copies of t.
func hasLock(t reflect.Type) bool {
	if t.Kind() != reflect.Struct {
		return false
	}
	p := reflect.PointerTo(t)
	if p.Implements(reflect.TypeFor[interface {
		Lock()
		Unlock()
	}]()) {
		return true
	}
	for i := range t.NumField() {
		if hasLock(t.Field(i).Type) {
			return true
		}
	}
	return false
}
