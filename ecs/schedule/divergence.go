package schedule

import (
	"fmt"
	"strings"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/internal/naming"
)

// Values of Divergence.System if no system caused the difference.
const (
	inCommit = "Commit"
	inSeek   = "Seek"
)

// A Divergence is the error of a [SyncTest]: a tick had a different result when it was run a second
// time. The fields describe the first difference.
//
// First and Again are the two worlds at the end of the tick, after all systems.
// persist.SaveDivergence writes them to files for ecsdump diff.
type Divergence struct {
	Tick uint64

	// System is the first system after which the worlds differ, or one of these values:
	//
	//   - "Commit": all systems had the same results, but a hook or a group had different results.
	//   - "Seek": seeking back did not restore the state. The program has written without the
	//     world's knowledge, for example through Read or an invalid pointer. A build with the tag
	//     stetdebug finds such a write.
	//
	// With [SyncTest.Shuffle], an access is wrong. Either System uses something that its access
	// does not name, or another system changes something that System uses, without naming it.
	System string

	// The first storage or resource that differs, or "" for the registry of entities.
	Storage string

	// Order is the order of the systems in the second run. Nil means the order of the list.
	Order []string

	// NotNamed is true if System wrote Storage, but its access does not name this write. First and
	// Again may then be equal.
	NotNamed bool

	// Digests of Storage after System has run, or 0 if the storage is empty.
	FirstDigest, AgainDigest ecs.Digest
	First, Again             *ecs.World
}

// Error describes the difference in one line.
func (d *Divergence) Error() string {
	what := "the registry of entities"
	if d.Storage != "" {
		what = naming.Shown(d.Storage)
	}
	switch {
	case d.NotNamed:
		return fmt.Sprintf("schedule: tick %d: the system %q writes %s, which its access does not name; add it to the access in Schedule.Add", d.Tick, d.System, what)
	case d.System == inSeek:
		return fmt.Sprintf("schedule: going back to tick %d did not restore %s: its digest was %v and is %v; "+
			"the program wrote it without the world's knowledge; a build with the tag stetdebug finds the write", d.Tick, what, d.FirstDigest, d.AgainDigest)
	case d.System == inCommit:
		return fmt.Sprintf("schedule: tick %d had a different result when it was run again: after Commit %s had digest %v, then %v", d.Tick, what, d.FirstDigest, d.AgainDigest)
	}
	text := fmt.Sprintf("schedule: tick %d had a different result when it was run again: after system %q %s had digest %v, then %v", d.Tick, d.System, what, d.FirstDigest, d.AgainDigest)
	if d.Order != nil {
		text += ". The order was then " + strings.Join(d.Order, ", ") + ": this system or an earlier one may use something that its access does not name"
	}
	return text
}
