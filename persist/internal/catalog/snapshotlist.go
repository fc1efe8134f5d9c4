package catalog

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/persist/internal/format"
)

// snapshotListFormat is the first byte of the journal's note.
const snapshotListFormat = 1

// EncodeSnapshotList encodes the journal's note: the list of existing snapshot files. A scan uses
// it to detect missing or replaced files. After the format byte, each file has its number as a
// varint and the checksum of its block table.
func EncodeSnapshotList(snapshots []SnapshotInfo) []byte {
	b := []byte{snapshotListFormat}
	for _, s := range snapshots {
		b = binary.AppendUvarint(b, uint64(s.Number))
		b = binary.LittleEndian.AppendUint32(b, s.CRC)
	}
	return b
}

// EncodeSnapshotListOf returns the note for all snapshots in a store's files.
func EncodeSnapshotListOf(ctx context.Context, files disk.FS) ([]byte, error) {
	c := New(files)
	if err := c.list(ctx); err != nil {
		return nil, err
	}
	return EncodeSnapshotList(c.Snapshots), nil
}

// missingSnapshots returns the snapshots that the note lists and that are missing or replaced. It
// returns nil for a store in use, because its program may have removed files since the note was
// read.
func (c *Catalog) missingSnapshots() (errs []error) {
	// A later version may use another format, which this version cannot interpret.
	note := c.Log.Note
	if len(note) == 0 || note[0] != snapshotListFormat || c.InUse {
		return nil
	}
	for note = note[1:]; len(note) > 0; {
		number, n := binary.Uvarint(note)
		if n <= 0 || len(note) < n+4 {
			break
		}
		crc := binary.LittleEndian.Uint32(note[n:])
		note = note[n+4:]
		if reason := c.snapshotMismatch(uint32(number), crc); reason != "" {
			errs = append(errs, &format.DamageError{File: SnapshotName(uint32(number)), Offset: -1, Reason: reason, Err: format.ErrCorrupt})
		}
	}
	return errs
}

// snapshotMismatch returns how a snapshot differs from the note, or "". Damage reports unreadable
// files.
func (c *Catalog) snapshotMismatch(number, crc uint32) string {
	for _, s := range c.Snapshots {
		if s.Number == number {
			if s.Err == nil && s.CRC != crc {
				return fmt.Sprintf("it has checksum %08x, the journal lists %08x", s.CRC, crc)
			}
			return ""
		}
	}
	return "missing: the journal lists it"
}
