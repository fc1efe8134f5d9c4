package persist

import (
	"fmt"
	"strings"

	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/internal/build"
	"github.com/stet-ecs/stet/internal/naming"
)

// A Report says what Open found and did.
type Report struct {
	Fresh bool   // The directory was empty, and the given world became the base.
	Tick  uint64 // Tick of the recovered state, or of the base.
	// The snapshot file that recovery began with. It is empty if Follower.Open read no snapshot.
	Snapshot string
	Replayed int  // Number of records replayed after the snapshot, see [Options.CommitEvery].
	Clean    bool // The store had been closed, so no tick can be missing.

	// Torn is the unfinished end of the journal. Its ticks were never reported as durable. nil
	// means no unfinished end.
	Torn error

	// TornTails counts the unfinished ends of older segments, from crashes before earlier openings.
	TornTails int

	// Skipped lists problems that did not prevent the recovery: why newer snapshots were not used,
	// and damage outside the recovered state. Nothing was deleted. Open does not read all older
	// data, so it may miss damage there. Package inspect and ecsdump verify read everything.
	Skipped []error

	// Converted lists how stored components were converted to the registered ones. A new snapshot
	// has the converted state; the snapshot before it is kept.
	Converted []raw.Conversion

	// Unknown lists the stored components that the program did not register. They are kept.
	Unknown []string

	// Unstored lists the registered components without stored data. No entity has these components,
	// and resources keep the values that the program gave them.
	Unstored []string

	// Build describes the program and the machine that wrote the store last, if their
	// floating-point results may differ from this build. Replayed systems may then give other
	// results. "" means no difference, or unknown. See docs/MACHINES.md.
	Build string

	// UnsyncedNames is true if the file system cannot sync directories. After a power cut, files
	// that were created or renamed shortly before may be missing or have their old names. See
	// docs/LOSING.md.
	UnsyncedNames bool

	// Kept says how much data the store keeps, how far back the data reaches, and its bound. A
	// store without a configured bound is not pruned if it was already above the default bound.
	// Kept.Reason then names the option to set.
	Kept RetentionStatus
}

// String returns the report as text for people, in one or a few lines.
func (r Report) String() string {
	const unsynced = "\nthe file system cannot sync directories: a power cut may remove new files"
	if r.Fresh {
		text := fmt.Sprintf("new store, base at tick %d", r.Tick)
		if r.UnsyncedNames {
			text += unsynced
		}
		return text
	}
	var b strings.Builder
	if r.Snapshot == "" {
		fmt.Fprintf(&b, "continued from tick %d, which the world had followed", r.Tick)
	} else {
		fmt.Fprintf(&b, "recovered tick %d: %s, replayed records: %d", r.Tick, r.Snapshot, r.Replayed)
	}
	if r.Clean {
		b.WriteString("; it had been closed cleanly")
	} else {
		b.WriteString("; it had not been closed")
	}
	if r.Torn != nil {
		fmt.Fprintf(&b, "\nunfinished end, not acknowledged: %v", r.Torn)
	}
	for _, err := range r.Skipped {
		fmt.Fprintf(&b, "\nskipped: %v", err)
	}
	for _, c := range r.Converted {
		for _, line := range strings.Split(c.String(), "\n") {
			fmt.Fprintf(&b, "\nconverted: %s", line)
		}
	}
	if len(r.Unknown) > 0 {
		fmt.Fprintf(&b, "\nnot registered, kept: %s", listed(r.Unknown))
	}
	if len(r.Unstored) > 0 {
		fmt.Fprintf(&b, "\nregistered, without stored data: %s", listed(r.Unstored))
	}
	if r.Build != "" {
		fmt.Fprintf(&b, "\nwritten by %s, here %s: floating-point results may differ", r.Build, build.Here())
	}
	if r.UnsyncedNames {
		b.WriteString(unsynced)
	}
	if r.Kept.Bytes > r.Kept.Bound && r.Kept.Bound > 0 {
		fmt.Fprintf(&b, "\nkept: %v", r.Kept)
	}
	return b.String()
}

// types adds to the report how stored components match those of the program.
func (r *Report) types(conversions []raw.Conversion) {
	for _, c := range conversions {
		switch {
		case c.Name == "":
			r.Unknown = append(r.Unknown, c.Stored)
		case c.Stored == "":
			r.Unstored = append(r.Unstored, c.Name)
		}
	}
	r.Converted = converting(conversions)
}

// listed joins names for use in a sentence.
func listed(names []string) string {
	shown := make([]string, len(names))
	for i, name := range names {
		shown[i] = naming.Shown(name)
	}
	return strings.Join(shown, ", ")
}

// converting returns the conversions that change a stored component.
func converting(conversions []raw.Conversion) (some []raw.Conversion) {
	for _, c := range conversions {
		if c.Name != "" && c.Stored != "" {
			some = append(some, c)
		}
	}
	return some
}
