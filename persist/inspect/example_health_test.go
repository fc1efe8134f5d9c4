package inspect_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
)

// Verify checks a store completely. VerifyChecksums is faster, but finds only damaged bytes.
func ExampleView_Verify() {
	ctx := context.Background()
	b, remove := recordBattle()
	defer remove()
	view, err := inspect.OpenReadOnly(ctx, b.dir)
	check(err)
	report, err := view.Verify(ctx)
	check(err)
	fmt.Println("ticks replayed:", report.Replayed, "problems:", len(report.Problems))
	check(view.Close())

	// A bad disk changes a byte in the record of tick 3.
	log := view.Log()
	record := log.Entries[2]
	file := filepath.Join(b.dir, "journal", log.Segments[record.Segment].Name)
	data, err := os.ReadFile(file)
	check(err)
	data[record.Offset] ^= 1
	check(os.WriteFile(file, data, 0o600))

	view, err = inspect.OpenReadOnly(ctx, b.dir) // Opens damaged stores too.
	check(err)
	defer view.Close()
	report, err = view.VerifyChecksums(ctx)
	check(err)
	fmt.Println("problems:", len(report.Problems), "found by opening:", len(view.Damage()))
	fmt.Println("corrupt:", errors.Is(report.Problems[0], persist.ErrCorrupt))
	fmt.Println("a program can open it:", view.Refusal(ctx) == nil)
	seq, err := view.Newest()
	fmt.Println("newest state is complete:", err == nil)
	im, err := view.At(ctx, seq)
	check(err)
	fmt.Println("newest tick that can be read:", im.Tick)
	// Output:
	// ticks replayed: 3 problems: 0
	// problems: 1 found by opening: 1
	// corrupt: true
	// a program can open it: false
	// newest state is complete: false
	// newest tick that can be read: 2
}

// Space says what takes the bytes of a store. Here it finds the component that takes most of a
// save.
func ExampleView_Space() {
	ctx := context.Background()
	dir, remove := tempDir()
	defer remove()
	w := ecs.NewWorld(ecs.Options{})
	flags, names := ecs.MustRegister(w, ecs.Component[bool]{Name: "Flag"}), ecs.MustRegister(w, ecs.Component[string]{Name: "Name"})
	for i := range 100 {
		e := w.Create()
		flags.Set(e, i%2 == 0)
		names.Set(e, fmt.Sprint("animal ", i))
	}
	check(persist.Save(ctx, filepath.Join(dir, "farm.save"), w))

	view, err := inspect.OpenReadOnly(ctx, filepath.Join(dir, "farm.save"))
	check(err)
	defer view.Close()
	space, err := view.Space(ctx)
	check(err)
	for _, file := range space.Snapshots {
		largest := slices.MaxFunc(file.Components, func(a, b inspect.ComponentSpace) int { return cmp.Compare(a.Data, b.Data) })
		fmt.Println(file.Name, "most bytes:", largest.Name)
	}
	fmt.Println("journal files:", len(space.Segments))
	// Output:
	// farm.save most bytes: Name
	// journal files: 0
}

// Builds names the programs and machines that wrote the journal. If two runs of a game differ,
// compare their builds first.
func ExampleView_Builds() {
	ctx := context.Background()
	b, remove := recordBattle()
	defer remove()
	view, err := inspect.OpenReadOnly(ctx, b.dir)
	check(err)
	defer view.Close()
	builds := view.Builds()
	fmt.Println("journal segments:", len(builds))
	fmt.Println("written on this system:", strings.Contains(builds[0], runtime.GOOS+"/"+runtime.GOARCH))
	fmt.Println("wrote the newest tick:", view.Build(view.Head()) == builds[0])
	// Output:
	// journal segments: 1
	// written on this system: true
	// wrote the newest tick: true
}
