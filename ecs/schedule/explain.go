package schedule

import (
	"fmt"
	"strings"
)

// An Explanation says which systems of a schedule may run at the same time, and why the remaining
// systems must wait. It is also a JSON document.
type Explanation struct {
	Systems []PlannedSystem `json:"systems"` // In the order of the list.
}

// A PlannedSystem is the place of a system in the plan.
type PlannedSystem struct {
	System string `json:"system"`
	// Number of the batch, from 1. A batch begins when the batch before has ended.
	Batch   int    `json:"batch"`
	Alone   bool   `json:"alone,omitempty"` // The system may do anything, or runs hooks.
	Every   uint64 `json:"every,omitempty"` // The rate, if it is not 1.
	Startup bool   `json:"startup,omitempty"`
	Group   string `json:"group,omitempty"`
	// Conflicts with systems of the batch before. They are the reasons why the system is not in
	// that batch.
	Waits []Conflict `json:"waits,omitempty"`
}

// Explain returns the plan of s.
func (s *Schedule[In]) Explain() Explanation {
	var e Explanation
	p := s.prepare()
	for i, y := range s.systems {
		system := PlannedSystem{System: y.Name, Batch: p.of[i] + 1, Alone: y.Alone, Startup: y.startup}
		if y.every > 1 {
			system.Every = y.every
		}
		if y.group != nil {
			system.Group = y.group.name
		}
		for _, j := range p.waits[i] {
			if p.of[j] == p.of[i]-1 {
				system.Waits = append(system.Waits, *conflictOf(p.systems[j], p.systems[i]))
			}
		}
		e.Systems = append(e.Systems, system)
	}
	return e
}

// String returns a line for each system.
func (e Explanation) String() string {
	var b strings.Builder
	for _, y := range e.Systems {
		fmt.Fprintf(&b, "batch %d: %s", y.Batch, y.System)
		if about := y.about(); len(about) > 0 {
			fmt.Fprintf(&b, " (%s)", strings.Join(about, ", "))
		}
		for i, c := range y.Waits {
			switch {
			case i > 0 && c.reason() == y.Waits[i-1].reason():
				b.WriteString(", " + c.System)
			case i > 0:
				b.WriteString(": " + y.Waits[i-1].reason() + "; for " + c.System)
			default:
				b.WriteString(" waits for " + c.System)
			}
		}
		if n := len(y.Waits); n > 0 {
			b.WriteString(": " + y.Waits[n-1].reason())
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// about returns remarks about when and how y runs, or nil for the usual case.
func (y *PlannedSystem) about() (about []string) {
	if y.Alone {
		about = append(about, "alone")
	}
	if y.Startup {
		about = append(about, "in the first tick")
	}
	if y.Every > 1 {
		about = append(about, fmt.Sprintf("every %d ticks", y.Every))
	}
	if y.Group != "" {
		about = append(about, "group "+y.Group)
	}
	return about
}

func (c *Conflict) reason() string {
	if c.On == "" {
		return c.Kind
	}
	return c.On + " (" + c.Kind + ")"
}
