package replica

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/stet-ecs/stet/persist"
)

// A Version says which states of a world a program can open, and which it writes. The numbers are
// the program's own. It raises them when its component types change so that the program before
// cannot open the world. A rolling deployment has two steps, so that every machine can take over at
// any time:
//
//  1. run the new program with Reads 2 and Writes 1 on every machine, one after another
//  2. run it with Reads 2 and Writes 2, one after another
//
// From the first claim with Writes 2 on, [Follower.Writes] is 2 on every machine, and a program
// with Reads 1 cannot claim.
type Version struct {
	Program string // Name and version of the program, for error texts. At most 255 bytes.
	Reads   uint64 // The newest state that the program can open.
	Writes  uint64 // The state that it writes, unless the log has a newer one. At most Reads.
}

// check returns an error if the numbers contradict each other.
func (v *Version) check() error {
	switch {
	case v.Writes > v.Reads:
		return fmt.Errorf("replica: Options.Version: it writes state %d and reads up to %d only", v.Writes, v.Reads)
	case len(v.Program) > maxName:
		return fmt.Errorf("replica: Options.Version: the program has a name of %d bytes, more than %d", len(v.Program), maxName)
	}
	return nil
}

// storeFormat is the version of what this package and the formats of journal/ and snapshots/ write.
// Raise it when an older program cannot open a store that this one wrote.
const storeFormat = 1

// A logInfo is what a log says about itself. Each claim has it, and each beginning of a store: the
// data of opClaim and opBegin, as JSON. Logs of older programs have none.
type logInfo struct {
	// Identity: random, given by the first claim, and passed on by all others.
	Log     string `json:"log,omitempty"`
	Program string `json:"program,omitempty"` // That wrote the newest state.
	Writes  uint64 `json:"writes,omitempty"`  // The newest state that was written; see Version.
	Format  uint64 `json:"format,omitempty"`  // The newest storeFormat.
}

// newIdentity returns the identity of a log that has none.
func newIdentity() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // Never fails.
	return hex.EncodeToString(b[:])
}

// encode returns the bytes of the operation.
func (i *logInfo) encode() []byte {
	b, err := json.Marshal(i)
	if err != nil {
		panic(err) // It has numbers and text.
	}
	return b
}

// decodeInfo reads what encode wrote. No bytes are the zero logInfo. It skips members that it does
// not know.
func decodeInfo(b []byte) (i logInfo, err error) {
	if len(b) > 0 && json.Unmarshal(b, &i) != nil {
		return i, fmt.Errorf("%w: a claim has unreadable data", errEntry)
	}
	return i, nil
}

// isOther reports whether next is of another log.
func (i logInfo) isOther(next logInfo) bool {
	return i.Log != "" && next.Log != "" && i.Log != next.Log
}

// merge returns what the log says behind an entry that says next: the newest version of all.
func (i logInfo) merge(next logInfo) logInfo {
	if next.Writes < i.Writes {
		next.Writes, next.Program = i.Writes, i.Program
	}
	next.Format = max(next.Format, i.Format)
	if next.Log == "" {
		next.Log = i.Log
	}
	return next
}

// claimed returns the log's information after a claim by a program with version v. It returns
// [persist.ErrNewer] if that program cannot open the store of the log.
func (i logInfo) claimed(v Version) (logInfo, error) {
	switch {
	case i.Format > storeFormat:
		return i, fmt.Errorf("replica: %w: %s uses format %d, and this program knows %d; run a newer one", persist.ErrNewer, i.program(), i.Format, storeFormat)
	case i.Writes > v.Reads:
		return i, fmt.Errorf("replica: %w: %s has written state %d, and this program reads up to %d; run a newer one", persist.ErrNewer, i.program(), i.Writes, v.Reads)
	}
	return i.merge(logInfo{Program: v.Program, Writes: v.Writes, Format: storeFormat}), nil
}

// program names the program that wrote the newest state.
func (i *logInfo) program() string {
	if i.Program == "" {
		return "another program"
	}
	return fmt.Sprintf("%q", i.Program)
}
