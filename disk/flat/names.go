package flat

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/stet-ecs/stet/disk"
)

// The list of names is in file 0 or 1:
//
//	header    magic, epoch, length of the snapshot, CRC of the header and the snapshot
//	snapshot  a record for each name
//	records   a record for each later change
//	record    length of the payload, CRC, payload
//	payload   the end of the durable records at the time of writing, then the change
//
// If both files are valid, the higher epoch wins. A new snapshot is written to the other file when
// the records have become long, or after a failed sync. Once this snapshot is complete, zeros
// overwrite the header of the old file.
//
// The CRC of a record includes the epoch and the offset. So a record is valid only in its own list
// and at its own offset.
//
// A power cut may remove a file that is new on the device. Therefore, the first Open creates both
// files. Later lists go to a file that has existed for some time.

const (
	magic      = "stetname"
	headerSize = len(magic) + 8 + 8 + 4
	recordSize = 4 + 4

	// maxName is the maximum length of a path, in bytes.
	maxName = 1 << 12
	// maxPayload is the maximum length of a payload: two numbers, a kind, two names with lengths.
	maxPayload = 1 + 4*binary.MaxVarintLen64 + 2*maxName
	// minLog is the minimum number of bytes in records before a new snapshot replaces them.
	minLog = 64 << 10
)

var crcTable = crc32.MakeTable(crc32.Castagnoli)

// A change is a change of the names.
type change struct {
	kind kind
	name string
	// In makeFile: the number of the new file. In a mark: the highest number of a file that ever
	// had a name, or 0.
	number uint64
	to     string // For move.
}

type kind uint8

const (
	makeFile kind = 1 + iota // Replaces a file with this name.
	makeDir
	move
	remove
	mark // Says that the records before it are durable. The names stay the same.
)

func (c change) verb() string {
	return map[kind]string{makeFile: "create", makeDir: "mkdir", move: "rename", remove: "remove"}[c.kind]
}

// apply applies the change, and returns the inodes that have no name after the change.
func (c change) apply(names map[string]*inode) (removed []*inode) {
	set := func(name string, n *inode) {
		if old := names[name]; old != nil {
			removed = append(removed, old)
		}
		names[name] = n
	}
	switch c.kind {
	case makeFile:
		set(c.name, &inode{number: c.number})
	case makeDir:
		set(c.name, &inode{dir: true})
	case move:
		n := names[c.name]
		delete(names, c.name)
		set(c.to, n)
		for name, n := range maps.Clone(names) {
			if below, ok := strings.CutPrefix(name, c.name+"/"); ok {
				delete(names, name)
				set(c.to+"/"+below, n)
			}
		}
	case remove:
		removed = append(removed, names[c.name])
		delete(names, c.name)
	}
	return removed
}

// appendTo appends the encoded change.
func (c change) appendTo(b []byte) []byte {
	b = binary.AppendUvarint(append(b, byte(c.kind)), c.number)
	for _, name := range []string{c.name, c.to} {
		b = append(binary.AppendUvarint(b, uint64(len(name))), name...)
	}
	return b
}

var errPayload = errors.New("invalid change of a name")

// parseChange parses a payload.
func parseChange(b []byte) (synced uint64, c change, err error) {
	synced, n := binary.Uvarint(b)
	if n <= 0 || n == len(b) {
		return 0, c, errPayload
	}
	c.kind, b = kind(b[n]), b[n+1:]
	if c.number, n = binary.Uvarint(b); n <= 0 {
		return 0, c, errPayload
	}
	b = b[n:]
	for _, name := range []*string{&c.name, &c.to} {
		length, n := binary.Uvarint(b)
		if n <= 0 || length > uint64(len(b)-n) {
			return 0, c, errPayload
		}
		*name, b = string(b[n:n+int(length)]), b[n+int(length):]
	}
	if len(b) > 0 || c.kind < makeFile || c.kind > mark {
		return 0, c, errPayload
	}
	return synced, c, nil
}

// fits reports whether c is valid for the names. Changes in a damaged list can be invalid.
func (c change) fits(names map[string]*inode) bool {
	t := tree{names: names}
	there := names[c.name]
	switch c.kind {
	case mark:
		return true
	case makeFile:
		return c.number >= firstFile && (there != nil && !there.dir || t.mustBeFree("", c.name) == nil)
	case makeDir:
		return t.mustBeFree("", c.name) == nil
	case move:
		old := names[c.to]
		return there != nil && c.name != "." && !strings.HasPrefix(c.to, c.name+"/") &&
			(old != nil && !old.dir && !there.dir || t.mustBeFree("", c.to) == nil)
	}
	return there != nil && c.name != "."
}

// A nameLog is the file to which changes of names are appended.
type nameLog struct {
	file     File
	number   uint64 // Number of the file of the list: 0 or 1.
	epoch    uint64
	snapshot int64  // The end of the snapshot.
	end      int64  // Where the next record begins.
	synced   int64  // The records before this offset are durable.
	dirty    bool   // There are records that are not durable.
	failed   bool   // A sync has failed, so the next sync writes a new snapshot.
	stale    bool   // The other file may have an older list, which the next sync invalidates.
	last     uint64 // The highest number of a file that ever had a name.
}

// space returns how many bytes of records a list may have before a new snapshot replaces them.
func (l *nameLog) space() int64 { return max(minLog, 2*l.snapshot) }

// begin continues the list that was read, and makes it durable. The parameter length is the length
// of its file. If there is no list, begin writes one.
func (l *nameLog) begin(d Device, names map[string]*inode, length int64) (err error) {
	if l.epoch == 0 {
		return l.rewrite(d, names)
	}
	if l.file, err = d.Open(l.number); err != nil {
		return err
	}
	// Overwrite the bytes after the last valid record. They may contain old records at their own
	// offsets. Such a record would be valid again if a new record ends directly before it.
	if length > l.end {
		_, err = l.file.WriteAt(make([]byte, length-l.end), l.end)
	}
	if err == nil {
		err = l.file.Sync()
	}
	if err != nil {
		return errors.Join(err, l.file.Close())
	}
	l.synced = l.end
	l.stale = true // A crash may have left a list in the other file.
	l.invalidateStale(d)
	return nil
}

// add appends a record for c. The caller applies c to names after that. If the write fails, the
// next record overwrites this record.
func (l *nameLog) add(d Device, names map[string]*inode, c change) error {
	if l.end-l.snapshot > l.space() {
		_ = l.rewrite(d, names) // If this fails, the old list grows.
	}
	record := l.appendRecord(nil, l.end, c)
	if _, err := l.file.WriteAt(record, l.end); err != nil {
		return err
	}
	l.end += int64(len(record))
	l.dirty, l.last = true, max(l.last, c.number)
	return nil
}

// sync makes all records durable.
func (l *nameLog) sync(d Device, names map[string]*inode) error {
	if l.failed {
		return l.rewrite(d, names)
	}
	l.invalidateStale(d)
	if !l.dirty {
		return nil
	}
	if err := l.file.Sync(); err != nil {
		l.failed = true
		return err
	}
	l.synced, l.dirty = l.end, false
	// The mark proves that the records before it were durable. So if one of them is invalid later,
	// it is damaged. Without a mark, a crash could be the cause.
	record := l.appendRecord(nil, l.end, change{kind: mark})
	if _, err := l.file.WriteAt(record, l.end); err == nil {
		l.end += int64(len(record))
	}
	return nil
}

// rewrite writes a snapshot of all names to the other file, and continues with that file.
func (l *nameLog) rewrite(d Device, names map[string]*inode) (err error) {
	next := nameLog{number: 1 - l.number, epoch: l.epoch + 1, last: l.last}
	if next.file, err = d.Open(next.number); err != nil {
		return err
	}
	defer func() {
		if err == nil {
			return
		}
		// The new list may be complete in the file. Make it invalid, because the old list continues
		// and will have newer names.
		failed := invalidate(next.file)
		l.failed = l.failed || failed != nil
		err = errors.Join(err, failed, next.file.Close())
	}()
	b := make([]byte, headerSize)
	b = next.appendRecord(b, int64(len(b)), change{kind: mark, number: l.last})
	for _, name := range slices.Sorted(maps.Keys(names)) { // A directory comes before its files.
		if n := names[name]; name != "." {
			c := change{kind: makeFile, name: name, number: n.number}
			if n.dir {
				c.kind = makeDir
			}
			b = next.appendRecord(b, int64(len(b)), c)
		}
	}
	next.putHeader(b)
	next.snapshot, next.end, next.synced = int64(len(b)), int64(len(b)), int64(len(b))
	// Allocate space for later records, so that files can be removed on a full device.
	b = append(b, make([]byte, next.space()+recordSize+maxPayload)...)
	if _, err := next.file.WriteAt(b, 0); err != nil {
		return err
	}
	if err := next.file.Sync(); err != nil {
		return err
	}
	old := *l
	*l = next
	if old.file != nil {
		_ = old.file.Close()
	}
	l.stale = true
	l.invalidateStale(d)
	return nil
}

// invalidateStale makes the older list in the other file invalid. Otherwise, Open would use the
// older list if the current list is damaged.
func (l *nameLog) invalidateStale(d Device) {
	if !l.stale {
		return
	}
	if f, err := d.Open(1 - l.number); err == nil {
		l.stale = errors.Join(invalidate(f), f.Close()) != nil
	}
}

// invalidate overwrites the header of a list.
func invalidate(f File) error {
	_, err := f.WriteAt(make([]byte, headerSize), 0)
	if err == nil {
		err = f.Sync()
	}
	return err
}

// putHeader writes the header of a file that consists of a header and a snapshot.
func (l *nameLog) putHeader(b []byte) {
	copy(b, magic)
	binary.LittleEndian.PutUint64(b[8:], l.epoch)
	binary.LittleEndian.PutUint64(b[16:], uint64(len(b)-headerSize))
	binary.LittleEndian.PutUint32(b[24:], headerSum(b))
}

// headerSum returns the CRC of a header and its snapshot.
func headerSum(b []byte) uint32 {
	return crc32.Update(crc32.Checksum(b[:headerSize-4], crcTable), crcTable, b[headerSize:])
}

// appendRecord appends the record of c to b. The record begins at the given offset of the file.
func (l *nameLog) appendRecord(b []byte, offset int64, c change) []byte {
	at := len(b)
	b = binary.AppendUvarint(append(b, make([]byte, recordSize)...), uint64(l.synced))
	b = c.appendTo(b)
	payload := b[at+recordSize:]
	binary.LittleEndian.PutUint32(b[at:], uint32(len(payload)))
	binary.LittleEndian.PutUint32(b[at+4:], l.recordSum(offset, payload))
	return b
}

func (l *nameLog) recordSum(offset int64, payload []byte) uint32 {
	place := binary.LittleEndian.AppendUint64(nil, l.epoch)
	place = binary.LittleEndian.AppendUint64(place, uint64(offset))
	return crc32.Update(crc32.Checksum(place, crcTable), crcTable, payload)
}

// record returns the payload of the record at an offset of b, or nil if there is no valid record.
// The CRC includes the offset, so the bytes of another record are not valid here.
func (l *nameLog) record(b []byte, offset int) []byte {
	if len(b)-offset < recordSize {
		return nil
	}
	length := binary.LittleEndian.Uint32(b[offset:])
	rest := b[offset+recordSize:]
	if length == 0 || length > maxPayload || int(length) > len(rest) {
		return nil
	}
	if l.recordSum(int64(offset), rest[:length]) != binary.LittleEndian.Uint32(b[offset+4:]) {
		return nil
	}
	return rest[:length]
}

// A nameList is the result of reading the lists.
type nameList struct {
	names map[string]*inode
	log   nameLog // The log has no open file. Epoch 0 means that there is no list.
	end   int64   // The length of the file.
}

// readNames reads the list of names of a device. numbers are the files of the device. An empty
// device has no names.
func readNames(d Device, numbers []uint64) (newest nameList, err error) {
	var lists [firstFile][]byte
	for _, number := range numbers {
		if number < firstFile {
			if lists[number], err = readAll(d, number); err != nil {
				return newest, err
			}
		}
	}
	return newestNames(lists, numbers)
}

// newestNames parses the two lists and returns the newest complete list.
func newestNames(lists [firstFile][]byte, numbers []uint64) (newest nameList, err error) {
	newest = nameList{names: map[string]*inode{".": {dir: true}}}
	var damage *disk.DamageError
	for number, b := range lists {
		list, ok, fault := parseNames(b)
		list.log.number, list.end = uint64(number), int64(len(b))
		if !ok || list.log.epoch <= newest.log.epoch {
			continue
		}
		if newest, damage = list, nil; fault != nil {
			damage = &disk.DamageError{File: fmt.Sprint(number), Offset: fault.offset, Length: int64(len(b)) - fault.offset, Err: fault}
		}
	}
	switch {
	case damage != nil:
		return newest, damage
	case newest.log.epoch == 0 && slices.ContainsFunc(numbers, func(n uint64) bool { return n >= firstFile }):
		return newest, &disk.DamageError{File: "0", Err: errors.New("no list of names is complete")}
	}
	return newest, nil
}

func readAll(d Device, number uint64) ([]byte, error) {
	f, err := d.Open(number)
	if err != nil {
		return nil, err
	}
	size, err := f.Size()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	b := make([]byte, size)
	if _, err = f.ReadAt(b, 0); errors.Is(err, io.EOF) {
		err = nil
	}
	return b, errors.Join(err, f.Close())
}

// A listFault says what is wrong in a list with a complete snapshot.
type listFault struct {
	offset int64
	what   string
}

func (f *listFault) Error() string { return f.what }

// parseNames parses a list of names. ok is false if its snapshot is incomplete, as after a crash
// during [nameLog.rewrite].
//
// The list ends at the first invalid record. If a later record proves that these bytes were
// durable, they are damaged, and parseNames returns a fault. Without such a proof, a crash may have
// lost the record, which is no fault.
func parseNames(b []byte) (list nameList, ok bool, fault *listFault) {
	if len(b) < headerSize || string(b[:len(magic)]) != magic {
		return list, false, nil
	}
	length := binary.LittleEndian.Uint64(b[16:])
	if length > uint64(len(b)-headerSize) {
		return list, false, nil
	}
	snapshot := headerSize + int(length)
	if headerSum(b[:snapshot]) != binary.LittleEndian.Uint32(b[24:]) {
		return list, false, nil
	}
	list.names = map[string]*inode{".": {dir: true}}
	list.log.epoch = binary.LittleEndian.Uint64(b[8:])
	at := headerSize
	for payload := list.log.record(b, at); payload != nil; payload = list.log.record(b, at) {
		_, c, err := parseChange(payload)
		if err != nil || !c.fits(list.names) {
			return list, true, &listFault{int64(at), "a record does not fit the names before it"}
		}
		c.apply(list.names)
		list.log.last = max(list.log.last, c.number)
		at += recordSize + len(payload)
	}
	list.log.snapshot, list.log.end = int64(snapshot), int64(at)
	if at < snapshot {
		return list, true, &listFault{int64(at), "an invalid record of the snapshot"}
	}
	for later := at + 1; later < len(b); later++ {
		if payload := list.log.record(b, later); payload != nil {
			if synced, _, err := parseChange(payload); err != nil || synced > uint64(at) {
				return list, true, &listFault{int64(at), "invalid bytes where a durable record was"}
			}
		}
	}
	return list, true, nil
}
