package catalog

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/persist/internal/format"
)

// promiseFormat is the first byte of a promise.
const promiseFormat = 1

// Promise returns the note in the journal that says which snapshot files there are, so
// that one that is gone, or another one, is missed: its format, and for each file the
// number as a varint and the checksum of its block table.
func Promise(snapshots []SnapshotInfo) []byte {
	b := []byte{promiseFormat}
	for _, s := range snapshots {
		b = binary.AppendUvarint(b, uint64(s.Number))
		b = binary.LittleEndian.AppendUint32(b, s.CRC)
	}
	return b
}

// PromiseAll returns the promise of all snapshots that there are in a store's files.
func PromiseAll(ctx context.Context, files disk.FS) ([]byte, error) {
	c := New(files)
	if err := c.list(ctx); err != nil {
		return nil, err
	}
	return Promise(c.Snapshots), nil
}

// missed returns the snapshots that were promised and are not there, or are others. While
// a program has the store open, it removes files that a promise read before still names;
// so this is asked of a store only that nobody writes.
func (c *Catalog) missed() (errs []error) {
	// Another format is of a later version, which may promise what this one cannot judge.
	note := c.Log.Note
	if len(note) == 0 || note[0] != promiseFormat || c.InUse {
		return nil
	}
	for note = note[1:]; len(note) > 0; {
		number, n := binary.Uvarint(note)
		if n <= 0 || len(note) < n+4 {
			break
		}
		crc := binary.LittleEndian.Uint32(note[n:])
		note = note[n+4:]
		if reason := c.broken(uint32(number), crc); reason != "" {
			errs = append(errs, &format.DamageError{File: SnapshotName(uint32(number)), Offset: -1, Reason: reason, Err: format.ErrCorrupt})
		}
	}
	return errs
}

// broken returns how a snapshot is not what was promised, or "". What is wrong with a file
// that cannot be read is told elsewhere.
func (c *Catalog) broken(number, crc uint32) string {
	for _, s := range c.Snapshots {
		if s.Number == number {
			if s.Err == nil && s.CRC != crc {
				return fmt.Sprintf("it has checksum %08x, the journal says %08x", s.CRC, crc)
			}
			return ""
		}
	}
	return "missing: the journal says that it was written"
}
