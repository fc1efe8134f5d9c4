package pagefile

import "github.com/stet-ecs/stet/internal/disk"

// A flusher syncs a file in the background while it is written, so that the
// disk works at the same time as whoever makes the pages.
type flusher struct {
	kicks chan struct{} // Holds one kick: a sync that has not begun yet serves two.
	done  chan error
	now   disk.File // Not nil: no background, sync this with the kick.
	err   error     // Of doing so.
}

// newFlusher returns a flusher of f. It works in the background if f is a file of
// the operating system: others are not on a disk, and their calls are to have one
// order.
func newFlusher(f disk.File) *flusher {
	if disk.OSFile(f) == nil {
		return &flusher{now: f}
	}
	fl := &flusher{kicks: make(chan struct{}, 1), done: make(chan error, 1)}
	go func() { fl.done <- fl.run(f) }()
	return fl
}

// run syncs f for each kick. After an error it only takes kicks: the system
// forgets what it could not write, and a second sync would succeed without it.
func (fl *flusher) run(f disk.File) (err error) {
	for range fl.kicks {
		if err == nil {
			err = f.Sync()
		}
	}
	return err
}

// kick asks for a sync of what has been written until now and does not wait.
func (fl *flusher) kick() {
	if fl.now != nil {
		if fl.err == nil {
			fl.err = fl.now.Sync()
		}
		return
	}
	select {
	case fl.kicks <- struct{}{}:
	default:
	}
}

// wait ends the flusher once it has served the last kick, and returns the
// first error of any sync. It must be called once.
func (fl *flusher) wait() error {
	if fl.now != nil {
		return fl.err
	}
	close(fl.kicks)
	return <-fl.done
}
