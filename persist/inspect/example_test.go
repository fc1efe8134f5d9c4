package inspect_test

import (
	"context"
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
)

type place struct{ X, Y int32 }

// record records a store in dir, and two saves next to it. A unit walks to the right and dies; in
// the second tick another unit appears.
func record(ctx context.Context, dir string) (e ecs.Entity, err error) {
	w := ecs.NewWorld(ecs.Options{})
	places := ecs.MustRegister(w, ecs.Component[place]{Name: "Place"})
	store, err := persist.Open(ctx, filepath.Join(dir, "store"), w, persist.Options{})
	if err != nil {
		return 0, err
	}
	e = w.Create()
	places.Set(e, place{1, 7})
	if err := store.Commit(); err != nil {
		return 0, err
	}
	if err := persist.Save(ctx, filepath.Join(dir, "before.save"), w); err != nil {
		return 0, err
	}
	places.Set(e, place{2, 7})
	places.Set(w.Create(), place{5, 5})
	if err := store.Commit(); err != nil {
		return 0, err
	}
	if err := persist.Save(ctx, filepath.Join(dir, "after.save"), w); err != nil {
		return 0, err
	}
	w.Destroy(e)
	if err := store.Commit(); err != nil {
		return 0, err
	}
	return e, store.Close(ctx)
}

// CSV of one component over time: a line for each entity at each tick.
func ExampleView_Walk() {
	ctx := context.Background()
	dir, _ := os.MkdirTemp("", "stet")
	defer os.RemoveAll(dir)
	if _, err := record(ctx, dir); err != nil {
		fmt.Println(err)
		return
	}
	v, err := inspect.OpenReadOnly(ctx, filepath.Join(dir, "store"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer v.Close()
	first, _ := v.Resolve("@first")
	last, _ := v.Resolve("@latest")
	out := csv.NewWriter(os.Stdout)
	var heading []string
	err = v.Walk(ctx, first, last, func(im *inspect.Image, _ *inspect.Commit) error {
		c := im.Find("Place")
		if c == nil {
			return nil // No value was set yet.
		}
		if heading == nil {
			heading = []string{"tick", "entity"}
			for _, f := range c.Fields() {
				heading = append(heading, f.Name)
			}
			_ = out.Write(heading)
		}
		for row, e := range c.Entities() {
			value, err := c.Value(row)
			if err != nil {
				return err
			}
			line := []string{strconv.FormatUint(im.Tick, 10), e.String()}
			for i := range value.Len() {
				line = append(line, value.Index(i).String())
			}
			_ = out.Write(line)
		}
		return nil
	})
	out.Flush()
	fmt.Println(err)
	// Output:
	// tick,entity,X,Y
	// 1,0v1,1,7
	// 2,0v1,2,7
	// 2,1v1,5,5
	// 3,1v1,5,5
	// <nil>
}

// A diff of two saves lists the fields that differ.
func ExampleView_DiffTo() {
	ctx := context.Background()
	dir, _ := os.MkdirTemp("", "stet")
	defer os.RemoveAll(dir)
	if _, err := record(ctx, dir); err != nil {
		fmt.Println(err)
		return
	}
	before, err := inspect.OpenReadOnly(ctx, filepath.Join(dir, "before.save"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer before.Close()
	after, err := inspect.OpenReadOnly(ctx, filepath.Join(dir, "after.save"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer after.Close()
	d, err := before.DiffTo(ctx, before.Head(), after, after.Head())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("tick", d.OldTick, "to", d.NewTick, "created", d.Registry.Created)
	for _, c := range d.Components {
		for _, r := range c.Rows {
			fields, err := c.Fields(r)
			if err != nil {
				fmt.Println(err)
				return
			}
			if r.Added() {
				fmt.Println(r.Entity, c.Name, "added")
			}
			for _, f := range fields {
				fmt.Printf("%v %s.%s: %v, was %v\n", r.Entity, c.Name, f.Path, f.New, f.Old)
			}
		}
	}
	// Output:
	// tick 1 to 2 created [1v1]
	// 0v1 Place.X: 2, was 1
	// 1v1 Place added
}

// The ticks that changed a field of an entity, with the values before and after.
func ExampleView_Trace() {
	ctx := context.Background()
	dir, _ := os.MkdirTemp("", "stet")
	defer os.RemoveAll(dir)
	e, err := record(ctx, dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	v, err := inspect.OpenReadOnly(ctx, filepath.Join(dir, "store"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer v.Close()
	err = v.Trace(ctx, e, 0, v.Head(), func(event *inspect.TraceEvent) error {
		for _, f := range event.Fields() {
			if event.Component == "Place" && f.Path == "X" {
				fmt.Println("tick", event.Tick, "set X to", f.New, "from", f.Old)
			}
		}
		if event.Kind == inspect.TraceDestroyed {
			fmt.Println("tick", event.Tick, "destroyed the entity")
		}
		return nil
	})
	fmt.Println(err)
	// Output:
	// tick 2 set X to 2 from 1
	// tick 3 destroyed the entity
	// <nil>
}
