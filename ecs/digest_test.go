package ecs_test

import (
	"math"
	"testing"

	"github.com/stet-ecs/stet/ecs"
)

// A digest depends on all bits of a float, so different NaN values have different digests. A
// restore restores the same bits. See docs/MACHINES.md.
func TestDigest_HashesNaNPayload(t *testing.T) {
	type value struct{ F float64 }
	type text struct { // The type is encoded as msgpack, because a string has no fixed size.
		F float32
		S string
	}
	world := func(f float64, g float32) (*ecs.World, *ecs.Storage[value], ecs.Entity) {
		w := ecs.NewWorld(ecs.Options{})
		values, texts := ecs.MustRegister[value](w), ecs.MustRegister[text](w)
		e := w.Create()
		values.Set(e, value{f})
		texts.Set(e, text{g, ""})
		return w, values, e
	}
	// The results of 0/0 on amd64 and arm64 have different bits.
	amd64, arm64 := math.Float64frombits(0xfff8<<48), math.Float64frombits(0x7ff8<<48)
	quiet, payload := math.Float32frombits(0x7fc00000), math.Float32frombits(0x7fc00123)
	w, values, e := world(amd64, quiet)
	for _, c := range []struct {
		what string
		f    float64
		g    float32
		same bool
	}{
		{"the same bits", amd64, quiet, true},
		{"another sign", arm64, quiet, false},
		{"math.NaN()", math.NaN(), quiet, false},
		{"another payload in msgpack", amd64, payload, false},
	} {
		other, _, _ := world(c.f, c.g)
		if same := w.Digest() == other.Digest(); same != c.same {
			t.Errorf("%s: equal digests %v, want %v", c.what, same, c.same)
		}
	}
	before := w.Digest()
	cp := w.Checkpoint()
	values.Set(e, value{arm64})
	if w.Digest() == before {
		t.Error("the digest does not change with the sign of a NaN")
	}
	w.Restore(cp)
	if got, _ := values.Get(e); math.Float64bits(got.F) != math.Float64bits(amd64) || w.Digest() != before {
		t.Errorf("after a restore: %x, want %x", math.Float64bits(got.F), math.Float64bits(amd64))
	}
}
