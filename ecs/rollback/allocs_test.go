//go:build !stetdebug

package rollback_test

import (
	"testing"

	"github.com/stet-ecs/stet/ecs/rollback"
)

// If all predictions are right, ticks and messages allocate nothing after warm-up. Rewinds and
// digests allocate memory in the world. A debug build also allocates memory for its checks.
func TestSession_Allocations(t *testing.T) {
	o := two
	o.CheckEvery = 1 << 30
	_, a, _ := newSide(t, o, false)
	o.Peer = 1
	_, b, _ := newSide(t, o, false)
	var m, n rollback.Message[int]
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	i := 0
	turn := func() {
		i++
		must(a.Advance(3))
		must(b.Advance(5))
		if i%4 == 0 {
			must(a.Report(1, &m))
			must(b.Report(0, &n))
			must(b.Receive(0, &m))
			must(a.Receive(1, &n))
		}
	}
	for range 1000 {
		turn()
	}
	if got := testing.AllocsPerRun(1000, turn); got > 0 {
		t.Errorf("a tick with its messages allocates %v times", got)
	}
}
