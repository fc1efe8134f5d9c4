package rollback_test

import (
	"fmt"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/rollback"
	"github.com/stet-ecs/stet/ecs/schedule"
)

// steps is the number of steps that a player walks in a tick.
type steps int

type place struct{ X int }

// newWalk returns the storage and the session of one peer of a game with two walkers.
func newWalk(peer int) (*ecs.Storage[place], *rollback.Session[steps]) {
	w := ecs.NewWorld(ecs.Options{History: 8})
	places := ecs.MustRegister[place](w)
	for range 2 {
		places.Set(w.Create(), place{})
	}
	w.Commit()
	systems := schedule.New[rollback.Inputs[steps]](w)
	systems.Add("walk", ecs.Write(places), func(t *schedule.Tick[rollback.Inputs[steps]]) {
		for player, e := range places.Entities() {
			places.Mut(e).X += int(t.Input[player].Value)
		}
	})
	s, err := rollback.New(systems, rollback.Options[steps]{Peers: 2, Peer: peer, Players: []int{0, 1}})
	if err != nil {
		panic(err)
	}
	return places, s
}

// A peer advances without the inputs of the other peer, and repeats its ticks after the inputs
// arrive.
func ExampleSession() {
	places, here := newWalk(0)
	_, there := newWalk(1)
	var m rollback.Message[steps]
	for tick := range 3 {
		if err := here.Advance(1); err != nil {
			fmt.Println(err)
		}
		if err := there.Advance(steps(10 * tick)); err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println("guessed:", places.Values())
	if err := there.Report(0, &m); err != nil { // A game sends m over any transport.
		fmt.Println(err)
	}
	if err := here.Receive(1, &m); err != nil {
		fmt.Println(err)
	}
	if err := here.Settle(); err != nil {
		fmt.Println(err)
	}
	fmt.Println("known:  ", places.Values(), "made again:", here.Remade())
	// Output:
	// guessed: [{3} {0}]
	// known:   [{3} {30}] made again: 2
}

// Each peer reports its tick and the inputs that it has. If a player leaves, all remaining peers
// call Drop for the player's peer, with the same tick.
func ExampleSession_Drop() {
	places, here := newWalk(0)
	_, there := newWalk(1)
	var m rollback.Message[steps]
	for range 40 {
		if err := here.Advance(1); err != nil {
			fmt.Println(err)
		}
		if err := there.Advance(2); err != nil {
			fmt.Println(err)
		}
		// A game sends the messages over a network.
		for _, send := range []struct{ from, to *rollback.Session[steps] }{{there, here}, {here, there}} {
			sender, receiver := 0, 1
			if send.from == there {
				sender, receiver = 1, 0
			}
			if err := send.from.Report(receiver, &m); err != nil {
				fmt.Println(err)
			}
			if err := send.to.Receive(sender, &m); err != nil {
				fmt.Println(err)
			}
		}
	}
	if err := here.Settle(); err != nil {
		fmt.Println(err)
	}
	fmt.Println("inputs known up to tick", here.Known(1), "and final up to tick", here.Confirmed())
	fmt.Println("the digests are equal up to tick", here.Agreed(1), "ahead by", here.Ahead())
	fmt.Println("both run the same program:", here.Build(0) == here.Build(1))

	// The other player leaves. Here, only one peer remains. Several remaining peers must use the
	// maximum of their values of Known.
	if err := here.Drop(1, here.Known(1)+1); err != nil {
		fmt.Println(err)
	}
	for range 2 {
		if err := here.Advance(1); err != nil {
			fmt.Println(err)
		}
	}
	if err := here.Settle(); err != nil {
		fmt.Println(err)
	}
	fmt.Println(places.Values(), "final up to tick", here.Confirmed())
	// Output:
	// inputs known up to tick 41 and final up to tick 41
	// the digests are equal up to tick 21 ahead by 0
	// both run the same program: true
	// [{42} {80}] final up to tick 43
}
