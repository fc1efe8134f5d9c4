package pagefile

import "os"

// A flusher syncs a file in the background while it is written, so that the
// disk works at the same time as whoever makes the pages.
type flusher struct {
	kicks chan struct{} // Holds one kick: a sync that has not begun yet serves two.
	done  chan error
}

func newFlusher(f *os.File) *flusher {
	fl := &flusher{kicks: make(chan struct{}, 1), done: make(chan error, 1)}
	go func() { fl.done <- fl.run(f) }()
	return fl
}

// run syncs f for each kick. After an error it only takes kicks: the system
// forgets what it could not write, and a second sync would succeed without it.
func (fl *flusher) run(f *os.File) (err error) {
	for range fl.kicks {
		if err == nil {
			err = f.Sync()
		}
	}
	return err
}

// kick asks for a sync of what has been written until now and does not wait.
func (fl *flusher) kick() {
	select {
	case fl.kicks <- struct{}{}:
	default:
	}
}

// wait ends the flusher once it has served the last kick, and returns the
// first error of any sync. It must be called once.
func (fl *flusher) wait() error {
	close(fl.kicks)
	return <-fl.done
}
