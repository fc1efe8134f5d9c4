package ecs

import (
	"fmt"

	"github.com/stet-ecs/stet/internal/naming"
)

// What a [Divergence] names where no system is to blame.
const (
	inCommit = "Commit"
	inSeek   = "Seek"
)

// A Divergence is the error of a [SyncTest]: a tick that came out differently when
// it was made again. It says where that shows first.
//
// First and Again are the two worlds at the end of the tick, to be compared or
// saved; persist.SaveDivergence writes them for ecsdump diff. Systems behind the
// one that is named have run in both.
type Divergence struct {
	Tick uint64

	// System is the first system after which the worlds differ. "Commit": all systems
	// did the same, and a hook or a group that is not deterministic did not. "Seek":
	// going back did not bring back what the tick was, since something wrote without
	// the world's knowledge, through Read or through a pointer that was no longer
	// valid; a build with the tag stetdebug says what.
	System string

	Storage string // The first storage or resource that differs; "": the registry of entities.

	FirstDigest, AgainDigest Digest // Of that storage, after that system; 0: empty.
	First, Again             *World
}

// Error says in one line what differs.
func (d *Divergence) Error() string {
	what := "the registry of entities"
	if d.Storage != "" {
		what = naming.Shown(d.Storage)
	}
	switch d.System {
	case inSeek:
		return fmt.Sprintf("ecs: going back to tick %d did not bring back %s: its digest was %v and is %v; "+
			"it was written without the world's knowledge, and a build with the tag stetdebug says where", d.Tick, what, d.FirstDigest, d.AgainDigest)
	case inCommit:
		return fmt.Sprintf("ecs: tick %d came out differently when it was made again: after Commit %s had digest %v, then %v", d.Tick, what, d.FirstDigest, d.AgainDigest)
	}
	return fmt.Sprintf("ecs: tick %d came out differently when it was made again: after system %q %s had digest %v, then %v", d.Tick, d.System, what, d.FirstDigest, d.AgainDigest)
}
