package chapters_test

import (
	"encoding/json"
	"fmt"
	"maps"

	"github.com/stet-ecs/stet/ecs"
)

// A spot is a component of the server.
type spot struct{ X, Y int }

// A spotUpdate is a message to a client.
type spotUpdate struct {
	Whole bool // Set has all spots, not only the changed ones.
	Set   map[ecs.Entity]spot
	Gone  []ecs.Entity
}

// A spotServer sends its world to clients.
type spotServer struct {
	world *ecs.World
	spots *ecs.Storage[spot]
}

// updateFor returns a message for a client that has the state of a tick.
func (s *spotServer) updateFor(tick uint64) spotUpdate {
	changes, err := s.spots.Since(tick)
	if err != nil { // The history does not have the tick: the client is new, or missed too much.
		return spotUpdate{Whole: true, Set: maps.Collect(s.spots.All())}
	}
	update := spotUpdate{Set: maps.Collect(changes.Added())}
	for e, value := range changes.Changed() {
		update.Set[e] = value.New
	}
	for e := range changes.Removed() {
		update.Gone = append(update.Gone, e)
	}
	return update
}

// The messages of the ticks 2 and 4 to 7 are lost.
func Example_networkBroadcast() {
	world := ecs.NewWorld(ecs.Options{History: 3})
	server := &spotServer{world, ecs.MustRegister[spot](world)}
	for x := range 3 {
		server.spots.Set(world.Create(), spot{X: x})
	}
	client, confirmed := map[ecs.Entity]spot{}, uint64(0)
	for tick := range 9 {
		server.spots.Mut(world.Entities()[0]).Y++
		if tick == 1 {
			world.Destroy(world.Entities()[2])
		}
		world.Commit()
		if tick == 1 || tick == 3 || tick == 4 || tick == 5 || tick == 6 {
			continue
		}
		message, err := json.Marshal(server.updateFor(confirmed))
		check(err)
		var update spotUpdate
		check(json.Unmarshal(message, &update))
		if update.Whole {
			clear(client)
		}
		maps.Copy(client, update.Set)
		for _, e := range update.Gone {
			delete(client, e)
		}
		fmt.Println("tick", world.Tick(), "whole:", update.Whole, "set", len(update.Set), "gone", len(update.Gone),
			"equal:", maps.Equal(client, maps.Collect(server.spots.All())))
		confirmed = world.Tick()
	}
	// Output:
	// tick 1 whole: false set 3 gone 0 equal: true
	// tick 3 whole: false set 1 gone 1 equal: true
	// tick 8 whole: true set 2 gone 0 equal: true
	// tick 9 whole: false set 1 gone 0 equal: true
}
