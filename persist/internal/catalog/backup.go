package catalog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/internal/naming"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist/internal/format"
	"github.com/stet-ecs/stet/persist/internal/pagefile"
	"github.com/stet-ecs/stet/persist/internal/progress"
)

// Backup copies a store to the directory dir, with the ticks up to the record that the function
// durable() returns. The parameter from has the files of the store.
func Backup(ctx context.Context, from disk.FS, dir string, durable func() uint64) error {
	if err := MakeDir(dir); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	to := disk.Dir(root)
	defer to.Close()
	if err := CopyStore(ctx, from, to, durable); err != nil {
		return fmt.Errorf("persist: backup to %s: %w", dir, err)
	}
	return nil
}

// CopyStore copies a store to an empty directory. The program that has the store open may remove
// old files or replace a slot during the copy. CopyStore then starts again.
func CopyStore(ctx context.Context, from, to disk.FS, durable func() uint64) error {
	there, err := to.ReadDir(".")
	if err != nil {
		return err
	}
	if len(there) > 0 {
		return fmt.Errorf("%w: it contains %s; choose an empty directory", fs.ErrExist, naming.Shown(there[0].Name()))
	}
	for range MaxListings {
		c := &copier{Catalog: New(from), to: to, last: durable()}
		err = c.run(ctx)
		_ = c.Log.Close()
		if err != nil {
			c.remove()
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return fmt.Errorf("the program removes files faster than the backup copies them: %w", err)
}

// A copier copies a store. It makes these files durable in this order:
//
//	journal.tmp/   the records of the journal
//	snapshots/     the snapshots
//	journal.tmp/   the seals, which prove that the journal is complete
//	journal/       by a rename of journal.tmp/
//
// Before the rename, the copy has no journal. It does not count as a store then, see halfBackup.
//
// The copy has the records up to last and their snapshots. Snapshot files are copied byte by byte,
// together with the other snapshot files that they refer to.
type copier struct {
	*Catalog
	to       disk.FS
	last     uint64 // The newest record to copy.
	progress *progress.Meter
	made     []string // Directories that are removed if the copy fails.
}

// run makes the copy. It verifies the copied journal and snapshots before publish() renames the
// journal, which makes the copy a store.
func (c *copier) run(ctx context.Context) error {
	c.InUse = true // Always set, so that scanTwice confirms damage by a second scan.
	if err := c.scanTwice(ctx); err != nil {
		return err
	}
	if err := c.sound(); err != nil {
		return err
	}
	if s := c.newerSlot(); s != nil {
		return fmt.Errorf("%s is newer than the records to copy: %w", s.Name, fs.ErrNotExist)
	}
	c.progress = progress.Start(ctx, progress.PhaseCopy, c.bytes())
	log, err := c.copyJournal(ctx)
	if err != nil {
		return err
	}
	if err := c.copySnapshots(ctx, log.Last); err != nil {
		return err
	}
	if err := c.seal(ctx, log); err != nil {
		return err
	}
	if err := c.publish(); err != nil {
		return err
	}
	c.progress.UpTo(c.bytes())
	return nil
}

// sound returns an error if the store cannot be copied. Either it has visible damage, or no
// snapshot leads to the head. In the second case, the program may have removed the snapshot after
// it was listed. The error then wraps fs.ErrNotExist.
func (c *copier) sound() error {
	errs := c.Faults()
	if len(errs) == 0 && len(c.CandidateSnapshots(c.Head())) == 0 {
		for _, s := range c.Snapshots {
			if c.Gone(s.Name) {
				return fmt.Errorf("%s: %w", s.Name, fs.ErrNotExist)
			}
		}
		return fmt.Errorf("%w: no snapshot leads to the head, record %d", format.ErrNotFound, c.Head())
	}
	return errors.Join(errs...)
}

// newerSlot finds a save slot that the program saved again after record c.last. The new snapshot is
// too new to copy, and has taken the name of an older snapshot. So the copy would lack the slot.
func (c *copier) newerSlot() *SnapshotInfo {
	for i := range c.Snapshots {
		s := &c.Snapshots[i]
		replaces := func(older SnapshotInfo) bool { return older.Given == s.Label }
		if s.ID.Seq > c.last && s.Label != "" && slices.ContainsFunc(c.Snapshots[:i], replaces) {
			return s
		}
	}
	return nil
}

// bytes returns the approximate number of bytes to copy.
func (c *copier) bytes() (n int64) {
	for _, s := range c.Snapshots {
		n += s.Size
	}
	for _, s := range c.Log.Segments {
		n += s.End
	}
	return n
}

// mkdir creates a directory of the copy. It is removed if the copy fails.
func (c *copier) mkdir(name string) error {
	err := c.to.Mkdir(name)
	if err == nil {
		c.made = append(c.made, name)
	}
	return err
}

// remove removes the directories of a failed copy.
func (c *copier) remove() {
	for _, dir := range c.made {
		entries, _ := c.to.ReadDir(dir)
		for _, e := range entries {
			_ = c.to.Remove(dir + "/" + e.Name())
		}
		_ = c.to.Remove(dir)
	}
	_ = disk.SyncDir(c.to, ".")
}

// copyJournal copies the journal and scans the copy.
func (c *copier) copyJournal(ctx context.Context) (*journal.Log, error) {
	if err := c.mkdir(unfinishedBackup); err != nil {
		return nil, err
	}
	to := disk.Sub(c.to, unfinishedBackup)
	if err := c.Log.Copy(ctx, to, c.last, c.progress.Add); err != nil {
		return nil, c.JournalError(err)
	}
	log, err := journal.Scan(ctx, to, 0, nil)
	if err != nil {
		return nil, err
	}
	if err := log.Err(); err != nil {
		return nil, c.JournalError(err)
	}
	if log.Torn != nil {
		return nil, log.Torn.In(JournalDir)
	}
	return log, nil
}

// copySnapshots copies the snapshots of states up to the record with seq last. It skips newer
// snapshots, because the copied journal lacks their records.
func (c *copier) copySnapshots(ctx context.Context, last uint64) error {
	if err := c.mkdir(SnapshotDir); err != nil {
		return err
	}
	for _, s := range c.Snapshots {
		if s.ID.Seq > last {
			continue
		}
		if err := c.copySnapshot(ctx, s); err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
	}
	return disk.SyncDir(c.to, SnapshotDir)
}

// copySnapshot copies a file and verifies the copy.
func (c *copier) copySnapshot(ctx context.Context, s SnapshotInfo) error {
	from, err := c.Files.Open(s.Name)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := c.to.Create(s.Name)
	if err != nil {
		return err
	}
	err = c.copyBytes(ctx, to, from, s.Size)
	if err = cmp.Or(err, to.Close()); err != nil {
		return err
	}
	info, err := pagefile.Check(ctx, c.to, s.Name)
	if err == nil && (info.CRC != s.CRC || info.Size != s.Size) {
		err = fmt.Errorf("%w: the copy differs from the original", format.ErrCorrupt)
	}
	return err
}

// copyBytes copies the first size bytes of a file and syncs the copy.
func (c *copier) copyBytes(ctx context.Context, to, from disk.File, size int64) error {
	buf := make([]byte, 256<<10)
	for offset := int64(0); offset < size; {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := from.ReadAt(buf[:min(int64(len(buf)), size-offset)], offset)
		if n == 0 {
			if err == nil || errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return err
		}
		if _, err := to.WriteAt(buf[:n], offset); err != nil {
			return err
		}
		offset += int64(n)
		c.progress.Add(int64(n))
	}
	return to.Sync()
}

// seal opens and closes the copied journal. Closing writes the seals, which prove that the journal
// is complete. The journal's note lists the snapshots of the copy.
func (c *copier) seal(ctx context.Context, log *journal.Log) error {
	options := journal.Options{World: log.World}
	if n := len(log.Preambles); n > 0 {
		preamble, err := log.Payload(log.Preambles[n-1], nil)
		if err != nil {
			return err
		}
		options.Preamble = func() []byte { return preamble }
	}
	if err := log.Close(); err != nil {
		return err
	}
	j, err := journal.Open(disk.Sub(c.to, unfinishedBackup), log, options)
	if err != nil {
		return err
	}
	copied := slices.DeleteFunc(slices.Clone(c.Snapshots), func(s SnapshotInfo) bool { return s.ID.Seq > log.Last })
	if err := j.KeepNote(EncodeSnapshotList(copied)); err != nil {
		j.Abandon()
		return err
	}
	if err := j.Close(context.WithoutCancel(ctx), log.Head); err != nil {
		return err
	}
	return ctx.Err()
}

// publish makes the copy a store by one rename. Before the rename it makes the names in the copy
// durable.
func (c *copier) publish() error {
	if err := disk.SyncDir(c.to, "."); err != nil {
		return err
	}
	if err := c.to.Rename(unfinishedBackup, JournalDir); err != nil {
		return err
	}
	c.made = nil // The copy is a store now, so remove must keep it even if SyncDir fails.
	return disk.SyncDir(c.to, ".")
}
