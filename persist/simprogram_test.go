package persist_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/stet-ecs/stet/journal"
)

// A simProgram is a sequence of steps for a store. Its text form can be parsed.
type simProgram struct {
	policy    string // Sync policy: always, never or timed.
	snapshots int64  // Options.SnapshotBytes.
	pace      int    // Options.SnapshotPace.
	history   int
	steps     []simStep
}

// A simStep is one step of a simProgram:
//
//	tick n s     n random actions of seed s, and a commit
//	note n       adds n marks and inputs to the next tick
//	sync         makes all ticks durable
//	rewind n     goes back n ticks
//	goto n       goes to n records before the newest, in the open store
//	load n s     loads a save of the world after n random actions of seed s
//	snapshot     takes a snapshot and waits for it
//	sleep n      lets n nanoseconds pass, one for each call of a snapshot in the background
//	close        closes the store and opens it again
//	kill         ends the process, but not the machine, and opens the store again
type simStep struct {
	name string
	n    int
	seed uint64
}

// simPolicies are the sync policies by name.
var simPolicies = map[string]time.Duration{
	"always": journal.SyncAlways, "never": journal.SyncNever, "timed": 100 * time.Millisecond,
}

// newSimProgram draws a program of n steps.
func newSimProgram(seed uint64, n int) simProgram {
	rng := rand.New(rand.NewPCG(seed, 0x51))
	p := simProgram{
		policy:    []string{"always", "never", "never", "timed"}[rng.IntN(4)],
		snapshots: []int64{-1, -1, 300, 1500}[rng.IntN(4)],
		pace:      []int{-1, 0, 1, 300}[rng.IntN(4)],
		history:   []int{0, 4, 10}[rng.IntN(3)],
	}
	for range n {
		p.steps = append(p.steps, newSimStep(rng))
	}
	return p
}

func newSimStep(rng *rand.Rand) simStep {
	switch k := rng.IntN(23); k {
	case 0, 1:
		return simStep{name: "sync"}
	case 2, 3:
		return simStep{name: "rewind", n: 1 + rng.IntN(3)}
	case 4, 5:
		return simStep{name: "snapshot"}
	case 6, 7:
		return simStep{name: "sleep", n: 1 + rng.IntN(30)}
	case 8:
		return simStep{name: "sleep", n: int(100 * time.Millisecond)}
	case 9:
		return simStep{name: "close"}
	case 10:
		return simStep{name: "kill"}
	case 11:
		return simStep{name: "note", n: 1 + rng.IntN(3)}
	case 20, 21:
		return simStep{name: "goto", n: rng.IntN(6)}
	case 22:
		return simStep{name: "load", n: 1 + rng.IntN(12), seed: uint64(rng.Uint32())}
	default:
		return simStep{name: "tick", n: 1 + rng.IntN(12), seed: uint64(rng.Uint32())}
	}
}

func (p simProgram) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %d %d %d", p.policy, p.snapshots, p.pace, p.history)
	for _, s := range p.steps {
		b.WriteString("; " + s.name)
		if s.n > 0 {
			fmt.Fprintf(&b, " %d", s.n)
		}
		if s.name == "tick" || s.name == "load" {
			fmt.Fprintf(&b, " %d", s.seed)
		}
	}
	return b.String()
}

// parseSimProgram parses the result of String.
func parseSimProgram(text string) (p simProgram, err error) {
	first, rest, _ := strings.Cut(text, ";")
	if _, err := fmt.Sscanf(first, "%s %d %d %d", &p.policy, &p.snapshots, &p.pace, &p.history); err != nil {
		return p, fmt.Errorf("%q: %w", first, err)
	}
	for line := range strings.SplitSeq(rest, ";") {
		words := append(strings.Fields(line), "0", "0")
		n, err1 := strconv.Atoi(words[1])
		seed, err2 := strconv.ParseUint(words[2], 10, 64)
		if err1 != nil || err2 != nil {
			return p, fmt.Errorf("%q is not a step", line)
		}
		p.steps = append(p.steps, simStep{words[0], n, seed})
	}
	return p, nil
}
