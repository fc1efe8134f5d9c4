package ecs_test

import (
	"fmt"

	"github.com/stet-ecs/stet/ecs"
)

// A console reads and writes components by name. An invalid input changes nothing. A restore
// reverts these writes like any others.
func ExampleWorld_Storage() {
	type Health struct{ Now, Max int8 }
	w := ecs.NewWorld(ecs.Options{})
	healths := ecs.MustRegister[Health](w)
	e := w.Create()
	healths.Set(e, Health{Now: 3, Max: 10})

	cp := w.Checkpoint()
	set := func(name, src string) {
		s, ok := w.Storage(name)
		if !ok {
			fmt.Println("there is no", name)
			return
		}
		if err := s.SetJSON(e, []byte(src)); err != nil {
			fmt.Println(err)
		}
		now, _ := s.GetJSON(e)
		fmt.Printf("%s %s\n", name, now)
	}
	set("Health", `{"Now": 7}`)
	set("Health", `{"Now": 300}`)
	set("Helth", `{}`)
	w.Restore(cp)
	set("Health", `{}`)
	// Output:
	// Health {"Now":7,"Max":10}
	// ecs: Health.Now of 0v1: 300 does not fit into int8
	// Health {"Now":7,"Max":10}
	// there is no Helth
	// Health {"Now":3,"Max":10}
}
