package replica

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/stet-ecs/stet/persist"
)

// A Version says which versions of the world's state a program can open, and which version it
// writes. The program defines these numbers. Increase them when the component types change so that
// older programs cannot open the world. Deploy such a change in two steps, so that every machine
// can become the owner at any time:
//
//  1. run the new program with Reads 2 and Writes 1 on every machine, one after another
//  2. run it with Reads 2 and Writes 2, one after another
//
// After the first claim with Writes 2, [Follower.Writes] is 2 on every machine, and a program with
// Reads 1 can no longer claim.
type Version struct {
	Program string // Name and version of the program, for error texts. At most 255 bytes.
	Reads   uint64 // The newest state version that the program can open.
	// The state version that the program writes, unless the log has a newer version. At most Reads.
	Writes uint64
}

// check returns an error if the numbers contradict each other.
func (v *Version) check() error {
	switch {
	case v.Writes > v.Reads:
		return fmt.Errorf("replica: Options.Version: Writes is %d, which must be at most Reads, %d", v.Writes, v.Reads)
	case len(v.Program) > maxName:
		return fmt.Errorf("replica: Options.Version: the name of the program has %d bytes, more than %d", len(v.Program), maxName)
	}
	return nil
}

// storeFormat is the version of the formats of this package, of journal/ and of snapshots/.
// Increase it when older programs cannot open a store that this program writes.
const storeFormat = 1

// A logInfo has the identity and the versions of a log. It is the data of opClaim and opBegin, as
// JSON. Logs of older programs have no logInfo.
type logInfo struct {
	// Identity of the log: a random number from the first claim. Later claims repeat it.
	Log     string `json:"log,omitempty"`
	Program string `json:"program,omitempty"` // The program that wrote the newest state version.
	// The newest state version that was written; see Version.
	Writes uint64 `json:"writes,omitempty"`
	Format uint64 `json:"format,omitempty"` // The newest storeFormat.
}

// newIdentity returns an identity for a log without one.
func newIdentity() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // Never fails.
	return hex.EncodeToString(b[:])
}

// encode returns i as JSON.
func (i *logInfo) encode() []byte {
	b, err := json.Marshal(i)
	if err != nil {
		panic(err) // Numbers and text can always be encoded.
	}
	return b
}

// decodeInfo decodes the result of encode(). Without bytes, it returns the zero logInfo. It ignores
// unknown members.
func decodeInfo(b []byte) (i logInfo, err error) {
	if len(b) > 0 && json.Unmarshal(b, &i) != nil {
		return i, fmt.Errorf("%w: a claim has unreadable data", errEntry)
	}
	return i, nil
}

// isOther reports whether i and next have different log identities.
func (i logInfo) isOther(next logInfo) bool {
	return i.Log != "" && next.Log != "" && i.Log != next.Log
}

// merge returns the information of a log after an entry with the information next. State version
// and format never decrease.
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

// claimed returns the information for a claim of this program. It returns [persist.ErrNewer] if the
// program cannot open the store in the log.
func (i logInfo) claimed(v Version) (logInfo, error) {
	switch {
	case i.Format > storeFormat:
		return i, fmt.Errorf("replica: %w: %s uses format %d, and this program supports %d; run a newer program", persist.ErrNewer, i.program(), i.Format, storeFormat)
	case i.Writes > v.Reads:
		return i, fmt.Errorf("replica: %w: %s has written state %d, and this program reads up to %d; run a newer program", persist.ErrNewer, i.program(), i.Writes, v.Reads)
	}
	return i.merge(logInfo{Program: v.Program, Writes: v.Writes, Format: storeFormat}), nil
}

// program returns a name for the program that wrote the newest state.
func (i *logInfo) program() string {
	if i.Program == "" {
		return "another program"
	}
	return fmt.Sprintf("%q", i.Program)
}
