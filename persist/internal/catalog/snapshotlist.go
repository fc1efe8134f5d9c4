package catalog

import (
	"context"
	"encoding/binary"
	"fmt"
	"iter"
	"slices"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/persist/internal/format"
)

// The first byte of the journal's note is the format of its entries.
const (
	snapshotListFormat = 1 // Number and checksum of a snapshot file.
	// Number, checksum, and a byte that is 1 if the snapshot has lost its name; see names.go.
	namedListFormat = 2
)

// EncodeSnapshotList encodes the journal's note: the list of existing snapshot files. A scan
// compares it with the files to detect missing or replaced ones. After the format byte, each file
// has its number as a varint and the checksum of its block table. In namedListFormat, each file
// also has a byte: 1 if the snapshot lost its name, otherwise 0.
func EncodeSnapshotList(snapshots []SnapshotInfo) []byte {
	b := []byte{snapshotListFormat}
	if slices.ContainsFunc(snapshots, SnapshotInfo.unnamed) {
		b[0] = namedListFormat
	}
	for _, s := range snapshots {
		b = binary.AppendUvarint(b, uint64(s.Number))
		b = binary.LittleEndian.AppendUint32(b, s.CRC)
		if b[0] == namedListFormat {
			lost := byte(0)
			if s.unnamed() {
				lost = 1
			}
			b = append(b, lost)
		}
	}
	return b
}

// unnamed reports whether s lost the name in its file.
func (s SnapshotInfo) unnamed() bool { return s.Given != "" && s.Label == "" }

// A listedSnapshot is an entry of the journal's note.
type listedSnapshot struct {
	number, crc uint32
	unnamed     bool
}

// listed returns the entries of the journal's note, up to the first unreadable one. A later version
// may use a format that this version cannot interpret; the result is then empty.
func (c *Catalog) listed() iter.Seq[listedSnapshot] {
	return func(yield func(listedSnapshot) bool) {
		note := c.Log.Note
		if len(note) == 0 || note[0] != snapshotListFormat && note[0] != namedListFormat {
			return
		}
		named := int(note[0]) - snapshotListFormat // Number of further bytes in an entry.
		for note = note[1:]; len(note) > 0; {
			number, n := binary.Uvarint(note)
			if n <= 0 || len(note) < n+4+named {
				return
			}
			s := listedSnapshot{uint32(number), binary.LittleEndian.Uint32(note[n:]), named > 0 && note[n+4] == 1}
			if note = note[n+4+named:]; !yield(s) {
				return
			}
		}
	}
}

// EncodeSnapshotListOf returns the journal's note for all snapshots in a store's files.
func EncodeSnapshotListOf(ctx context.Context, files disk.FS) ([]byte, error) {
	c := New(files)
	if err := c.list(ctx); err != nil {
		return nil, err
	}
	return EncodeSnapshotList(c.Snapshots), nil
}

// missingSnapshots returns an error for each snapshot in the journal's list of snapshots whose file
// is missing or replaced. It returns nil for a store in use: its program may have removed files
// since the list was read.
func (c *Catalog) missingSnapshots() (errs []error) {
	if c.InUse {
		return nil
	}
	for s := range c.listed() {
		if reason := c.snapshotMismatch(s.number, s.crc); reason != "" {
			errs = append(errs, &format.DamageError{File: SnapshotName(s.number), Offset: -1, Reason: reason, Err: format.ErrCorrupt})
		}
	}
	return errs
}

// snapshotMismatch returns how a snapshot file differs from its entry in the journal's list of
// snapshots, or "". It ignores unreadable files, which Damage reports.
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
