package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stet-ecs/stet/persist/inspect"
)

func start(t *testing.T, c config) *match {
	t.Helper()
	m, err := newMatch(c)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// over plays a match to its end, and returns it.
func over(t *testing.T, c config) *match {
	t.Helper()
	m := start(t, c)
	if tick, err := m.play(); err != nil {
		t.Fatalf("%+v: at tick %d: %v", c, tick, err)
	}
	return m
}

// Despite lost and delayed messages, both peers end with the state of a local game with the same
// buttons.
func TestPeers_SameResultWithLossAndDelay(t *testing.T) {
	for _, c := range []config{
		{ticks: 10_000, loss: 15, delay: 6, seed: 1},
		{ticks: 1000, loss: 0, delay: 1, seed: 2},
		{ticks: 1000, loss: 0, delay: 40, seed: 3},
		{ticks: 1000, loss: 90, delay: 3, seed: 4},
		{ticks: 1000, loss: 50, delay: 15, seed: 5},
		{ticks: 7, loss: 50, delay: 5, seed: 6},
	} {
		m := over(t, c)
		plain := newGame(0, config{seed: c.seed})
		for i := range c.ticks {
			plain.systems.Step(Buttons{{Value: m.peers[0].ours[i]}, {Value: m.peers[1].ours[i]}})
			plain.world.Commit()
		}
		for i, p := range m.peers {
			if got, want := p.world.Digest(), plain.world.Digest(); got != want {
				t.Errorf("%+v: peer %d ends with digest %v, want %v", c, i+1, got, want)
			}
			if c.delay > 1 && c.ticks > 10 && p.rollbacks == 0 {
				t.Errorf("%+v: peer %d never rolled back", c, i+1)
			}
			if p.longest > window {
				t.Errorf("%+v: peer %d made %d ticks again at once, want at most %d", c, i+1, p.longest, window)
			}
			if c.ticks >= 1000 && p.checks < c.ticks/checkEvery/4 {
				t.Errorf("%+v: peer %d compared only %d digests", c, i+1, p.checks)
			}
		}
	}
}

// The reported tick is the first that differs, and the saved worlds differ in one field.
func TestGoToFirst_FindsTickOfBug(t *testing.T) {
	for seed := range uint64(10) {
		m := start(t, config{ticks: 10_000, loss: 15, delay: 6, seed: seed, bug: true, dir: t.TempDir()})
		found, err := m.play()
		if !errors.Is(err, errDesync) {
			t.Fatalf("seed %d: play() = %v, want %v", seed, err, errDesync)
		}
		first, component, err := m.goToFirst(found)
		if err != nil || component != "Bullet" || first > found {
			t.Fatalf("seed %d: goToFirst(%d) = %d, %s, %v", seed, found, first, component, err)
		}
		command, err := m.save(context.Background(), m.peers[0].world.Tick())
		if err != nil {
			t.Fatal(err)
		}
		if got := fields(t, strings.Fields(command)[2:]); !slices.Equal(got, []string{"Bullet.Power"}) {
			t.Errorf("seed %d: tick %d differs in %v", seed, first, got)
		}
		for _, p := range m.peers {
			if err := p.world.History().Seek(p.start + uint64(first-1)); err != nil {
				t.Fatal(err)
			}
		}
		if a, b := m.peers[0].world.Digest(), m.peers[1].world.Digest(); a != b {
			t.Errorf("seed %d: tick %d differs already", seed, first-1)
		}
	}
}

// fields returns the fields in which two saves differ.
func fields(t *testing.T, files []string) (names []string) {
	t.Helper()
	var views [2]*inspect.View
	for i, file := range files {
		v, err := inspect.OpenReadOnly(context.Background(), file)
		if err != nil {
			t.Fatal(err)
		}
		defer v.Close()
		views[i] = v
	}
	d, err := views[0].DiffTo(context.Background(), views[0].Head(), views[1], views[1].Head())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range d.Components {
		for _, row := range c.Rows {
			changed, err := c.Fields(row)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range changed {
				names = append(names, fmt.Sprintf("%s.%s", c.Name, f.Path))
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func TestLink_LossAndOrder(t *testing.T) {
	l := newLink(1, 2, 30, 5)
	const sent = 1000
	var got []uint64
	for now := range sent + 10 {
		l.deliver(now, func(m message) {
			if late := now - int(m.Tick); late < 1 || late > 5 {
				t.Errorf("message %d took %d ticks", m.Tick, late)
			}
			got = append(got, m.Tick)
		})
		if now < sent {
			l.send(now, message{Tick: uint64(now)})
		}
	}
	if len(got)+l.lost != sent || l.lost < sent/5 || l.lost > sent*2/5 {
		t.Errorf("%d arrived and %d were lost of %d", len(got), l.lost, sent)
	}
	if slices.IsSorted(got) {
		t.Error("no message overtook another")
	}
}
