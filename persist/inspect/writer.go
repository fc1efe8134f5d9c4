package inspect

import (
	"time"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/persist/internal/catalog"
)

// A writerWatch looks at the lock of a store again and again, for the program that writes the store:
//
//	opened       running
//	closed       closed: the lock is free, and its file is empty
//	killed       neither: the lock is free, and its file names the program
type writerWatch struct {
	files   disk.FS
	changed func(program string, running, closed bool)
	next    time.Time // Of the next look.
	begun   bool      // A look has counted.
	says    string    // What the lock file said then.
	held    bool      // Whether the lock was held then.
}

// lookPause is the time between two looks at a lock.
const lookPause = 500 * time.Millisecond

// look calls changed if there is another writer than at the last look that counted.
func (w *writerWatch) look() {
	now := time.Now()
	if now.Before(w.next) {
		return
	}
	w.next = now.Add(lookPause)
	says, held, ok := catalog.LookAtLock(w.files)
	if !ok || w.begun && says == w.says && held == w.held || held && !w.signed(says) {
		return
	}
	begun := w.begun
	w.begun, w.says, w.held = true, says, held
	if begun {
		w.changed(catalog.Named(says), held, !held && says == "")
	}
}

// signed reports whether a lock file that says this was signed by the program that holds the lock. A program
// takes the lock before it signs the file, and it clears the file before it releases the lock.
func (w *writerWatch) signed(says string) bool {
	return says != "" && (says != w.says || w.held || !w.begun)
}
