package persist

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/stet-ecs/stet/internal/disk/disktest"
)

// simNotes are what a tick of a simulated program was given to note.
type simNotes struct {
	parent uint64
	marks  []string
	inputs []Input
}

func (n simNotes) String() string { return fmt.Sprintf("%q %q", n.marks, n.inputs) }

// note notes n marks and inputs of the next tick, as the number of commits says.
func (r *simRun) note(n int) error {
	if parent := r.world.Mark(); parent != r.noting.parent {
		r.noting = simNotes{parent: parent}
	}
	for i := range n {
		name := fmt.Sprintf("%d of %d", i, len(r.commits))
		data := make([]byte, i*len(r.commits))
		if err := r.store.Mark(name); err != nil {
			return r.plain(err)
		}
		if err := r.store.Input(name, data); err != nil {
			return r.plain(err)
		}
		if !slices.Contains(r.noting.marks, name) {
			r.noting.marks = append(r.noting.marks, name)
		}
		r.noting.inputs = append(r.noting.inputs, Input{name, data})
	}
	return nil
}

// verifyNotes checks that the ticks on mem have the notes they were given. It knows
// them by the value of seed, which each one sets to another.
func (r *simRun) verifyNotes(mem *disktest.Mem) error {
	v, err := OpenFS(background, mem)
	if err != nil {
		return err
	}
	defer v.Close()
	for _, e := range v.Log().Entries {
		t, s, err := v.tick(e)
		if err != nil {
			return err
		}
		for _, p := range t.storages {
			if s.components[p.number].Name != "seed" {
				continue
			}
			want := r.notes[binary.LittleEndian.Uint64(p.values)]
			if got := (simNotes{0, t.marks, t.inputs}); got.String() != want.String() {
				return fmt.Errorf("record %d has the notes %v, want %v", e.ID.Seq, got, want)
			}
		}
	}
	return nil
}
