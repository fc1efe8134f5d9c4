package replica

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"

	"github.com/stet-ecs/stet/disk"
)

// A state is what a machine remembers of a log: up to which entry its files are what the log says.
// Its file is a line with a checksum, and JSON. It is written now and then, and behind what it says
// of the files: a machine that crashed reads the log again from At on, over files that have more of
// it already. So every operation may be applied twice.
type state struct {
	At link `json:"at"`
	// At and the entries before, newest first. Older programs have none.
	Trail  trail   `json:"trail"`
	Logged int64   `json:"logged"` // See Follower.
	Term   uint64  `json:"term"`   // Of the last claim.
	Info   logInfo `json:"info"`   // What the log says about itself.
	Owner  bool    `json:"owner"`  // Something may lie here that the log does not have,
	First  bool    `json:"first"`  // and it was this machine that began to send a store.
	Offer  bool    `json:"offer"`  // The store is offered to this machine.
	// Sizes of those with a name. nil: the log had none yet,
	Files map[string]int64 `json:"files"`
	Parts map[string]int64 `json:"parts"` // and of the others.
}

const (
	stateFile = "state"
	maxState  = 64 << 20
)

// errState says that the file of a state is damaged. What lies there is as if nothing was known.
var errState = errors.New("replica: the file state is damaged")

// trail returns the entries up to At, as far as they are known.
func (s *state) trail() trail {
	if s.Trail[0] != s.At {
		return trail{s.At}
	}
	return s.Trail
}

// encode returns the bytes of the file.
func (s *state) encode() []byte {
	text, err := json.Marshal(s)
	if err != nil {
		panic(err) // It has numbers and names.
	}
	return fmt.Appendf(nil, "stet-replica-1 %08x\n%s\n", crc32.Checksum(text, castagnoli), text)
}

// decodeState reads what encode wrote. Names are those of files that it may touch, so they are
// checked as in an entry.
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

// readState returns what is remembered; nil: nothing.
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
	if n, err := f.ReadAt(b, 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	} else if n < len(b) {
		return nil, errState
	}
	return decodeState(b)
}

// write makes s what is remembered. What it says of files must be durable before. The file is made
// under another name and renamed, so that after a crash there is the one or the other, whole.
func (s *state) write(files disk.FS) error {
	temp, text := stateFile+tempSuffix, s.encode()
	if err := writeFile(files, temp, bytes.NewReader(text), int64(len(text))); err != nil {
		return err
	}
	if err := files.Rename(temp, stateFile); err != nil {
		return err
	}
	return disk.SyncDir(files, ".")
}
