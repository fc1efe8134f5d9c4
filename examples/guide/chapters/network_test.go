package chapters_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/rollback"
	"github.com/stet-ecs/stet/ecs/schedule"
)

// A walkMessage is sent from one player to the other.
type walkMessage = rollback.Message[int]

// send sends the next message to a peer. conn may lose it, as a connection of net.Dial("udp") does.
func send(conn net.Conn, session *rollback.Session[int], peer int) error {
	var m walkMessage
	if err := session.Report(peer, &m); err != nil {
		return err
	}
	packet, err := json.Marshal(m)
	if err == nil {
		_, err = conn.Write(packet)
	}
	return err
}

// receive returns the messages that arrive, until conn is closed.
func receive(conn net.Conn) <-chan walkMessage {
	messages := make(chan walkMessage, 100)
	go func() {
		defer close(messages)
		packet := make([]byte, 1<<16)
		for n, err := conn.Read(packet); err == nil; n, err = conn.Read(packet) {
			var m walkMessage
			if json.Unmarshal(packet[:n], &m) == nil {
				messages <- m
			}
		}
	}()
	return messages
}

// newWalker returns the walkers of a peer, whose keys are steps.
func newWalker(peer int) (*ecs.Resource[[2]int], *rollback.Session[int]) {
	world := ecs.NewWorld(ecs.Options{History: 8})
	walkers := ecs.Must(ecs.RegisterResource(world, [2]int{}, ecs.Component[[2]int]{Name: "Walkers"}))
	systems := schedule.New[rollback.Inputs[int]](world)
	systems.Add("walk", walkers, func(t *schedule.Tick[rollback.Inputs[int]]) {
		for player, input := range t.Input {
			walkers.Mut()[player] += input.Value
		}
	})
	return walkers, ecs.Must(rollback.New(systems, rollback.Options[int]{Peers: 2, Peer: peer, Players: []int{0, 1}}))
}

func Example_networkConnection() {
	var walkers [2]*ecs.Resource[[2]int]
	var sessions [2]*rollback.Session[int]
	var arrived [2]<-chan walkMessage
	var conns [2]net.Conn
	conns[0], conns[1] = net.Pipe() // Keeps the bounds of packets, as UDP does.
	for i := range 2 {
		walkers[i], sessions[i] = newWalker(i)
		arrived[i] = receive(conns[i])
	}
	for tick := range 10 {
		for i, session := range sessions {
			check(session.Advance((1 + 9*i) * tick))
			check(send(conns[i], session, 1-i))
		}
		for i, session := range sessions {
			m := <-arrived[i]
			check(session.Receive(1-i, &m))
		}
	}
	for i, session := range sessions {
		check(session.Settle())
		check(conns[i].Close())
		fmt.Println(walkers[i].Get())
	}
	// Output:
	// [45 450]
	// [45 450]
}

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
