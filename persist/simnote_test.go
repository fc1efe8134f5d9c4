package persist_test

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/stet-ecs/stet/disk/disktest"
	"github.com/stet-ecs/stet/persist/inspect"
	"github.com/stet-ecs/stet/persist/internal/catalog"
	"github.com/stet-ecs/stet/persist/internal/storetest"
)

// simNotes are the marks and inputs of a tick of a simulated program.
type simNotes struct {
	parent uint64
	marks  []string
	inputs []inspect.Input
}

func (n simNotes) String() string { return fmt.Sprintf("%q %q", n.marks, n.inputs) }

// note adds n marks and inputs to the next tick, derived from the number of commits.
func (r *simRun) note(n int) error {
	if parent := r.world.Raw().Seq(); parent != r.noting.parent {
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
		r.noting.inputs = append(r.noting.inputs, inspect.Input{Name: name, Data: data})
	}
	return nil
}

// verifyNotes checks that the ticks on mem have their marks and inputs. It identifies a tick by the
// value of the resource "seed", which differs in each tick.
func (r *simRun) verifyNotes(mem *disktest.Mem) error {
	v, err := catalog.OpenFS(storetest.Background, mem, ".")
	if err != nil {
		return err
	}
	defer v.Close()
	for _, e := range v.Log.Entries {
		t, s, err := v.Tick(e)
		if err != nil {
			return err
		}
		for _, p := range t.Storages {
			if s.Components[p.Number].Name != "seed" {
				continue
			}
			want := r.notes[binary.LittleEndian.Uint64(p.Values)]
			got := simNotes{0, t.Marks, nil}
			for _, in := range t.Inputs {
				got.inputs = append(got.inputs, inspect.Input(in))
			}
			if got.String() != want.String() {
				return fmt.Errorf("record %d has the notes %v, want %v", e.ID.Seq, got, want)
			}
		}
	}
	return nil
}
