package schedule

import (
	"slices"

	"github.com/stet-ecs/stet/ecs/internal/system"
	"github.com/stet-ecs/stet/ecs/raw"
)

// A plan divides the list of systems into batches. Two systems conflict if their order may matter.
// A system is in the first batch after all earlier systems that it conflicts with.
type plan struct {
	systems []*system.System
	batches []batch
	of      []int   // The batch of each system.
	waits   [][]int // For each system, the earlier systems that it conflicts with.
}

// A batch has the positions, in the list, of systems that do not conflict with each other.
type batch struct {
	together []int // Systems that may run at the same time.
	single   []int // Systems that run one at a time, because they change structure.
	names    string
}

func newPlan(all []*system.System) *plan {
	p := &plan{systems: all, of: make([]int, len(all)), waits: make([][]int, len(all))}
	for i, y := range all {
		for j, earlier := range all[:i] {
			if conflictOf(earlier, y) != nil {
				p.waits[i] = append(p.waits[i], j)
				p.of[i] = max(p.of[i], p.of[j]+1)
			}
		}
		if p.of[i] == len(p.batches) {
			p.batches = append(p.batches, batch{})
		}
		b := &p.batches[p.of[i]]
		if changesStructure(y) {
			b.single = append(b.single, i)
		} else {
			b.together = append(b.together, i)
		}
	}
	for k := range p.batches {
		var together []*system.System
		for _, i := range p.batches[k].together {
			together = append(together, all[i])
		}
		p.batches[k].names = names(together)
	}
	return p
}

// changesStructure reports whether only the goroutine of the schedule may run y. This is the case
// if y adds or removes components or entities. It is also the case if y writes a storage and uses
// an index of that storage. The look-up in the index then changes state that all queries share.
func changesStructure(y *system.System) bool {
	if y.Alone {
		return true
	}
	return slices.ContainsFunc(y.Uses, func(u raw.Use) bool {
		return u.Members == raw.Writes || u.Indexed && writesValues(y, u.Storage)
	})
}

func writesValues(y *system.System, s raw.Storage) bool {
	return slices.ContainsFunc(y.Uses, func(u raw.Use) bool { return u.Storage == s && u.Values == raw.Writes })
}

// A Conflict is the reason why a system waits for an earlier system.
type Conflict struct {
	System string `json:"system"` // The earlier system.
	// The storage, resource or event that both systems use, or "" for another conflict.
	On   string `json:"on,omitempty"`
	Kind string `json:"kind"`
}

// conflictOf returns a conflict of b with the earlier system a, or nil.
func conflictOf(a, b *system.System) *Conflict {
	switch {
	case a.Alone:
		return &Conflict{a.Name, "", "it runs alone"}
	case b.Alone:
		return &Conflict{a.Name, "", "runs alone"}
	case creates(a.Uses):
		return &Conflict{a.Name, "", "it creates or destroys entities"}
	case creates(b.Uses):
		return &Conflict{a.Name, "", "creates or destroys entities"}
	}
	for _, u := range a.Uses {
		for _, v := range b.Uses {
			if kind := conflictKind(u, v); kind != "" {
				return &Conflict{a.Name, v.Name(), kind}
			}
		}
	}
	return nil
}

// conflictKind describes the conflict of two uses of a storage, or returns "" if they do not
// conflict.
func conflictKind(a, b raw.Use) string {
	if a.Storage == nil || a.Storage != b.Storage {
		if a.Buffers != nil && a.Buffers == b.Buffers {
			return "the same query or relation"
		}
		return ""
	}
	for _, m := range [...]struct {
		a, b        raw.Mode
		read, write string
	}{
		{a.Values, b.Values, "read", "write"},
		{a.Members, b.Members, "read of members", "add or remove"},
	} {
		verb := map[raw.Mode]string{raw.Reads: m.read, raw.Writes: m.write}
		if m.a != raw.Unused && m.b != raw.Unused && max(m.a, m.b) == raw.Writes {
			return verb[m.b] + " after " + verb[m.a]
		}
	}
	return ""
}
