package inspect

import (
	"time"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/persist/internal/catalog"
)

// A writerWatch checks the lock of a store repeatedly. It detects when the writing program opens or
// closes the store, or is killed. It passes two booleans to the function changed:
//
//	opened   running is true
//	closed   closed is true: the lock is free, and its file is empty
//	killed   both are false: the lock is free, and its file names the program
type writerWatch struct {
	files   disk.FS
	changed func(program string, running, closed bool)
	next    time.Time // Time of the next check.
	begun   bool      // At least one check has succeeded.
	says    string    // Text of the lock file at the last check.
	held    bool      // The lock was held at the last check.
}

// lookPause is the time between two checks of a lock.
const lookPause = 500 * time.Millisecond

// look calls w.changed() if the status of the writing program has changed since the last successful
// check.
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

// signed reports whether the text of the lock file is that of the program that holds the lock. A
// program first takes the lock and then writes the text. In between, the file still has the text of
// the earlier program.
func (w *writerWatch) signed(says string) bool {
	return says != "" && (says != w.says || w.held || !w.begun)
}
