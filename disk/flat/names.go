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

// A list of names is one of the files 0 and 1:
//
//	header    magic, epoch, length of the snapshot, CRC of these and of the snapshot
//	snapshot  a record for each name
//	records   a record for each change since
//	record    length, CRC of the epoch, the offset and the payload; payload: the end of the
//	          durable records when it was written, then the change
//
// The valid file with the higher epoch is the list. When the records have become long, or a sync of
// the list has failed, a new snapshot is written to the other file. That file is valid only when
// the snapshot is complete. Then the header of the old file is overwritten by zeros. The CRC of a
// record includes its place, so no other bytes are mistaken for a record.
//
// Open creates both files, and a new list is written later. So no list is lost if a power cut
// removes the files that are new.

const (
	magic      = "stetname"
	headerSize = len(magic) + 8 + 8 + 4
	recordSize = 4 + 4

	// maxName is the maximum length of a path, in bytes.
	maxName = 1 << 12
	// maxPayload is the maximum length of a payload: two numbers, a kind, two names with lengths.
	maxPayload = 1 + 4*binary.MaxVarintLen64 + 2*maxName
	// minLog is the minimum length of the records before they are replaced by a snapshot, in bytes.
	minLog = 64 << 10
)

var crcTable = crc32.MakeTable(crc32.Castagnoli)

// A change is a change of the names.
type change struct {
	kind   kind
	name   string
	number uint64 // For makeFile. A mark may have the highest number that was used.
	to     string // For move.
}

type kind uint8

const (
	makeFile kind = 1 + iota // Replaces a file with this name.
	makeDir
	move
	remove
	mark // Changes nothing. It says that the records before it are durable.
)

func (c change) verb() string {
	return map[kind]string{makeFile: "create", makeDir: "mkdir", move: "rename", remove: "remove"}[c.kind]
}

// apply makes the change, and returns the inodes that have lost their name.
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

// fits reports whether c can change the names. A damaged list may have any change.
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
	number   uint64 // 0 or 1.
	epoch    uint64
	snapshot int64  // The end of the snapshot.
	end      int64  // Where the next record begins.
	synced   int64  // The records before this offset are durable.
	dirty    bool   // There are records that are not durable.
	failed   bool   // A sync has failed, so the next one writes a new snapshot.
	stale    bool   // The other file may have an older list. The next sync invalidates it.
	last     uint64 // The highest number of a file that ever had a name.
}

// space returns the length of the records before they are replaced by a snapshot, in bytes.
func (l *nameLog) space() int64 { return max(minLog, 2*l.snapshot) }

// begin opens the list that was read, and makes it durable. The parameter length is the length of
// its file. If there is no list, begin creates one.
func (l *nameLog) begin(d Device, names map[string]*inode, length int64) (err error) {
	if l.epoch == 0 {
		return l.rewrite(d, names)
	}
	if l.file, err = d.Open(l.number); err != nil {
		return err
	}
	// Bytes after the last record could become records again, after a new record of the same
	// length.
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
	l.stale = true // A crash may have left the other list.
	l.invalidateStale(d)
	return nil
}

// add appends a record. names are the names before the change. After a failed write, the next
// record takes the same place.
func (l *nameLog) add(d Device, names map[string]*inode, c change) error {
	if l.end-l.snapshot > l.space() {
		_ = l.rewrite(d, names) // On a full device, the records continue in the old list.
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
	// If the last records are damaged later, the mark shows that they are not the end of a crash.
	record := l.appendRecord(nil, l.end, change{kind: mark})
	if _, err := l.file.WriteAt(record, l.end); err == nil {
		l.end += int64(len(record))
	}
	return nil
}

// rewrite writes all names to the other file, makes them durable, and continues there.
func (l *nameLog) rewrite(d Device, names map[string]*inode) (err error) {
	next := nameLog{number: 1 - l.number, epoch: l.epoch + 1, last: l.last}
	if next.file, err = d.Open(next.number); err != nil {
		return err
	}
	defer func() {
		if err == nil {
			return
		}
		// It may be complete, but must not replace the present list, which gets more records.
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
	// With space for records, a full device can still remove files.
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
		_ = old.file.Close() // Its names are in the new file.
	}
	l.stale = true
	l.invalidateStale(d)
	return nil
}

// invalidateStale invalidates an older list. If the present list is damaged later, an older one
// must not take its place.
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

// headerSum returns the CRC of a header without its CRC, and of the snapshot after it.
func headerSum(b []byte) uint32 {
	return crc32.Update(crc32.Checksum(b[:headerSize-4], crcTable), crcTable, b[headerSize:])
}

// appendRecord appends the record of c, which begins at an offset of the file.
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
	log   nameLog // Without a file. An epoch of 0 means that there is no list.
	end   int64   // The length of the file.
}

// readNames reads the list of names of a device. If the device is empty, so is the list. The
// parameter numbers has the files of the device.
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

// newestNames returns the newest complete list of the bytes of two lists.
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

// parseNames parses a file with names. ok is false if it has no complete snapshot, as after a crash
// during [nameLog.rewrite].
//
// The records end at the first invalid one, such as zeros. A crash may lose a record and keep a
// later one, if both were not durable. A fault is reported if a later record says that the invalid
// bytes were durable.
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
