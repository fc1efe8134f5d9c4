package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/ecs/rollback"
	"github.com/stet-ecs/stet/persist"
)

// A match is two peers with a link in either direction. It does not depend on the clock: the same
// config gives the same match.
type match struct {
	config
	peers  [2]*peer
	links  [2]*link         // The links, by the number of the sending peer.
	stores []*persist.Store // The stores of the peers' worlds, if dir is set.
	now    int
}

func newMatch(c config) (*match, error) {
	m := &match{config: c}
	for i := range m.peers {
		p, err := newPeer(i, c)
		if err != nil {
			return nil, err
		}
		m.peers[i] = p
		m.links[i] = newLink(c.seed, uint64(20+i), c.loss, c.delay)
	}
	return m, nil
}

// keep starts to write the ticks of both worlds to stores in the directory of the match.
func (m *match) keep(ctx context.Context) error {
	for i, p := range m.peers {
		dir := m.store(i)
		if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
			return fmt.Errorf("%s belongs to another match: name another -dir", dir)
		}
		s, err := persist.Open(ctx, dir, p.world, persist.Options{})
		if err != nil {
			return errors.Join(err, m.close(ctx))
		}
		m.stores = append(m.stores, s)
	}
	return nil
}

// store returns the directory of a peer's store.
func (m *match) store(peer int) string { return filepath.Join(m.dir, fmt.Sprintf("peer%d", peer+1)) }

// close closes the stores.
func (m *match) close(ctx context.Context) (err error) {
	for _, s := range m.stores {
		err = errors.Join(err, s.Close(ctx))
	}
	m.stores = nil
	return err
}

// errDesync reports that the worlds of the peers differ.
var errDesync = errors.New("the peers disagree")

// play plays the match. If the error wraps errDesync, the worlds differ at the returned tick, and
// perhaps earlier.
func (m *match) play() (tick int, err error) {
	for !m.over() {
		m.now++
		for i := range m.peers {
			if tick, err := m.turn(i); err != nil {
				return tick, err
			}
		}
	}
	if a, b := m.peers[0].world.Digest(), m.peers[1].world.Digest(); a != b {
		return m.ticks, errDesync
	}
	return 0, nil
}

// over reports whether both peers have all ticks of the match.
func (m *match) over() bool {
	for _, p := range m.peers {
		if p.session.Confirmed() < p.start+uint64(m.ticks) {
			return false
		}
	}
	return true
}

// turn runs the work of a peer in one tick. With errDesync, it returns a tick at which the worlds
// differ.
func (m *match) turn(i int) (tick int, err error) {
	p := m.peers[i]
	m.links[1-i].deliver(m.now, func(msg message) {
		err = errors.Join(err, p.session.Receive(1-i, &msg))
	})
	if err == nil {
		err = p.settle()
	}
	if err == nil && p.tick() < m.ticks {
		err = p.advance()
	}
	if differ, ok := errors.AsType[*rollback.DesyncError](err); ok {
		return int(differ.Tick - p.start), errDesync
	}
	if err != nil {
		return 0, err
	}
	msg, err := p.report()
	m.links[i].send(m.now, msg)
	return 0, err
}

// goToFirst makes both peers go back to the first tick at which their worlds differ. Their worlds
// must differ at the given tick. goToFirst returns the first tick and the first component that
// differs.
func (m *match) goToFirst(tick int) (first int, component string, err error) {
	first = max(m.peers[0].agreed(), m.peers[1].agreed()) + 1
	for _, p := range m.peers {
		first = max(first, int(p.world.History().Oldest()-p.start))
	}
	for ; first <= tick; first++ {
		var digests [2]ecs.Digests
		for i, p := range m.peers {
			if err := p.world.History().Seek(p.start + uint64(first)); err != nil {
				return 0, "", err
			}
			digests[i] = p.world.Digests(raw.Storage.Persistent)
		}
		if digests[0].World != digests[1].World {
			return first, differing(digests), nil
		}
	}
	return 0, "", fmt.Errorf("tick %d differed before, and is now equal", tick)
}

// differing returns the first component or resource with different values.
func differing(d [2]ecs.Digests) string {
	for i, s := range d[0].Storages {
		if i >= len(d[1].Storages) || d[1].Storages[i] != s {
			return s.Name
		}
	}
	return "the entities"
}

// sayDigests plays the match again without a link and prints the digest of every tick.
func (m *match) sayDigests(say func(format string, args ...any)) {
	g := newGame(0, m.config)
	for i := range m.ticks {
		g.systems.Step(Buttons{{Value: m.peers[0].ours[i]}, {Value: m.peers[1].ours[i]}})
		g.world.Commit()
		say("%d %v", i+1, g.world.Digest())
	}
}

// save saves the worlds of both peers and returns the command that shows the difference.
func (m *match) save(ctx context.Context, tick uint64) (command string, err error) {
	if m.dir == "" {
		if m.dir, err = os.MkdirTemp("", "rollback-"); err != nil {
			return "", err
		}
	}
	if err := os.MkdirAll(m.dir, 0o700); err != nil {
		return "", err
	}
	command = "ecsdump diff"
	for i, p := range m.peers {
		file := filepath.Join(m.dir, fmt.Sprintf("tick%d-peer%d.save", tick, i+1))
		if err := persist.Save(ctx, file, p.world, persist.FileOptions{Build: true}); err != nil {
			return "", err
		}
		command += " " + file
	}
	return command, nil
}

// run plays the match and prints the result to w. After it, the newest states in the stores are the
// final worlds. If the worlds differ, they are the worlds at the first tick that differs.
func (m *match) run(ctx context.Context, w io.Writer) (err error) {
	say := func(format string, args ...any) { fmt.Fprintf(w, format+"\n", args...) }
	say("%d ticks over a link that loses %d%% and takes up to %d ticks, seed %d", m.ticks, m.loss, m.delay, m.seed)
	kept := m.dir != ""
	if kept {
		if err := m.keep(ctx); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, m.close(ctx)) }()
	}
	found, err := m.play()
	for i, p := range m.peers {
		say("peer %d: rolled back %d times, made %d ticks again, %d at most at once; waited %d times; %d messages lost",
			i+1, p.rollbacks, p.session.Remade(), p.longest, p.waited, m.links[i].lost)
	}
	switch {
	case err == nil:
		p := m.peers[0]
		say("%d digests compared, all equal; final state %v, score %d : %d", p.checks+m.peers[1].checks, p.world.Digest(), p.score()[0], p.score()[1])
		if m.digests {
			m.sayDigests(say)
		}
		return nil
	case !errors.Is(err, errDesync):
		return err
	}
	tick, component, err := m.goToFirst(found)
	if err != nil {
		return err
	}
	first := m.peers[0].world.Tick()
	command, err := m.save(ctx, first)
	if err != nil {
		return err
	}
	say("the digests of tick %d differ; the first tick that does is %d, in %s", first+uint64(found-tick), first, component)
	say("both worlds are saved; show the difference:\n  %s", command)
	if kept {
		say("the stores have all ticks; show the history:\n  ecsdump serve %s\n  ecsdump serve %s", m.store(0), m.store(1))
	}
	return fmt.Errorf("%w from tick %d on", errDesync, first)
}
