package replica

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"

	"github.com/stet-ecs/stet/disk"
)

// A state records the last entry that the files include. It is stored in the file named state, as a
// line with a checksum and JSON. The machine replaces this file from time to time, after it has
// made the other files durable. After a crash, the machine applies the entries after At again.
type state struct {
	At link `json:"at"`
	// At and the entries before it, newest first. Older programs do not write this field.
	Trail  trail   `json:"trail"`
	Logged int64   `json:"logged"` // See Follower.logged.
	Term   uint64  `json:"term"`   // The term of the last claim.
	Info   logInfo `json:"info"`   // The log information of the last claim.
	Owner  bool    `json:"owner"`  // Whether the files may have data that the log does not have.
	// Whether the log still lacks this machine's store, or a part of it.
	First bool `json:"first"`
	Offer bool `json:"offer"` // Whether the store is offered to this machine.
	// Sizes of the files that have a name. nil if the log had no store.
	Files map[string]int64 `json:"files"`
	Parts map[string]int64 `json:"parts"` // Sizes of the unfinished files.
}

const (
	stateFile = "state"
	maxState  = 64 << 20
)

// errState reports a damaged file state. In that case, the caller reads the log from its beginning.
var errState = errors.New("replica: the file state is damaged")

// trail returns At and the recorded entries before it.
func (s *state) trail() trail {
	if s.Trail[0] != s.At {
		return trail{s.At}
	}
	return s.Trail
}

// encode returns the content of the file state.
func (s *state) encode() []byte {
	text, err := json.Marshal(s)
	if err != nil {
		panic(err) // Numbers and names can always be encoded.
	}
	return fmt.Appendf(nil, "stet-replica-1 %08x\n%s\n", crc32.Checksum(text, castagnoli), text)
}

// decodeState decodes the result of encode(). It rejects invalid file names, because the follower
// writes to these files.
func decodeState(b []byte) (*state, error) {
	var sum uint32
	const line = len("stet-replica-1 00000000\n")
	if len(b) <= line || b[len(b)-1] != '\n' {
		return nil, errState
	}
	if _, err := fmt.Sscanf(string(b[:line]), "stet-replica-1 %08x\n", &sum); err != nil {
		return nil, errState
	}
	text := b[line : len(b)-1]
	s := &state{}
	if sum != crc32.Checksum(text, castagnoli) || json.Unmarshal(text, s) != nil {
		return nil, errState
	}
	for _, files := range []map[string]int64{s.Files, s.Parts} {
		for name, size := range files {
			if !replicated(name) || size < 0 {
				return nil, errState
			}
		}
	}
	return s, nil
}

// readState reads the file state. It returns nil if the file does not exist.
func readState(files disk.FS) (*state, error) {
	f, err := files.Open(stateFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	if size > maxState {
		return nil, errState
	}
	b := make([]byte, size)
	n, err := readUpTo(f, b, 0)
	if err != nil {
		return nil, err
	}
	return decodeState(b[:n])
}

// write replaces the file state by s. The files that s describes must already be durable. write
// creates a temporary file and renames it, so that after a crash the old or the new state is
// complete.
func (s *state) write(files disk.FS) error {
	temp, text := stateFile+tempSuffix, s.encode()
	if err := writeFile(files, temp, bytes.NewReader(text)); err != nil {
		return err
	}
	if err := files.Rename(temp, stateFile); err != nil {
		return err
	}
	return disk.SyncDir(files, ".")
}
