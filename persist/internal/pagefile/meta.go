package pagefile

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/fnv"
)

const (
	metaSize        = 64
	metaTransaction = 48 // Offset of the transaction in a meta.
	metaChecked     = 56 // Number of bytes of a meta that its checksum covers.
	boltMagic       = 0xED0CDAED
	boltVersion     = 2
	noFreelist      = ^uint64(0)
	bucketHeader    = 16
	flagBucket      = 1
)

// bucketName is the name of the only bucket in a page file.
var bucketName = []byte("pages")

// checkMetas checks bbolt's two meta pages. It returns the page of the leaf that names the bucket.
// Both metas must describe the same tree, because bbolt falls back to one meta if the other one is
// damaged.
func checkMetas(pages []byte, limit int64) (root uint64, reason string) {
	for i := range 2 {
		page := node(pages[i*pageSize : (i+1)*pageSize])
		if page.id() != uint64(i) || page.flags() != flagMeta || page.count() != 0 || page.overflow() != 0 {
			return 0, fmt.Sprintf("page %d is not a meta page", i)
		}
		if reason := checkMeta(page[headerSize:headerSize+metaSize], uint64(i), limit); reason != "" {
			return 0, fmt.Sprintf("meta %d: %s", i, reason)
		}
	}
	// Compare all fields except the transactions, which always differ, and the checksums, which
	// depend on the transactions.
	meta0, meta1 := pages[headerSize:], pages[pageSize+headerSize:]
	if !bytes.Equal(meta0[:metaTransaction], meta1[:metaTransaction]) {
		return 0, "the two metas differ"
	}
	return binary.LittleEndian.Uint64(meta0[16:]), ""
}

// checkMeta checks the meta in page 0 or 1. The parameter parity is the number of this page. bbolt
// writes transaction txid to page txid modulo 2. The parameter limit is the number of pages in the
// file, and must equal the field pgid. The fields, little-endian:
//
//	0       4         8          12      16     24         32         40     48     56
//	+-------+---------+----------+-------+------+----------+----------+------+------+----------+
//	| magic | version | pageSize | flags | root | sequence | freelist | pgid | txid | checksum |
//	+-------+---------+----------+-------+------+----------+----------+------+------+----------+
func checkMeta(m []byte, parity uint64, limit int64) string {
	u32, u64 := binary.LittleEndian.Uint32, binary.LittleEndian.Uint64
	switch {
	case u32(m) != boltMagic || u32(m[4:]) != boltVersion:
		return "not bbolt's magic and version"
	case u64(m[metaChecked:]) != sumMeta(m):
		return "checksum differs"
	case u32(m[8:]) != pageSize || u32(m[12:]) != 0:
		return fmt.Sprintf("page size %d, flags %#x", u32(m[8:]), u32(m[12:]))
	case u64(m[16:]) < 2 || u64(m[16:]) >= uint64(limit) || u64(m[24:]) != 0:
		return fmt.Sprintf("root page %d of %d, sequence %d", u64(m[16:]), limit, u64(m[24:]))
	case u64(m[32:]) != noFreelist:
		return fmt.Sprintf("a free list at page %d", u64(m[32:]))
	case u64(m[40:]) != uint64(limit):
		return fmt.Sprintf("%d pages, %d are in the file", u64(m[40:]), limit)
	case u64(m[metaTransaction:])%2 != parity:
		return fmt.Sprintf("transaction %d in the wrong place", u64(m[metaTransaction:]))
	}
	return ""
}

// encodeMetas fills the two meta pages of a file. Page root is the leaf that names the bucket, and
// limit is the number of pages in the file.
func encodeMetas(pages []byte, root, limit uint64) {
	for i := range uint64(2) {
		page := node(pages[i*pageSize:])
		page.encode(i, flagMeta, 0)
		m := page[headerSize : headerSize+metaSize]
		binary.LittleEndian.PutUint32(m, boltMagic)
		binary.LittleEndian.PutUint32(m[4:], boltVersion)
		binary.LittleEndian.PutUint32(m[8:], pageSize)
		binary.LittleEndian.PutUint64(m[16:], root)
		binary.LittleEndian.PutUint64(m[32:], noFreelist)
		binary.LittleEndian.PutUint64(m[40:], limit)
		binary.LittleEndian.PutUint64(m[metaTransaction:], i)
		binary.LittleEndian.PutUint64(m[metaChecked:], sumMeta(m))
	}
}

// sumMeta returns the checksum of a meta: FNV-1a. bbolt requires it in addition to the trailer's
// checksums.
func sumMeta(m []byte) uint64 {
	sum := fnv.New64a()
	sum.Write(m[:metaChecked])
	return sum.Sum64()
}

// A bucket is the position of the tree of pages. The root node is at a page of the file. A small
// tree is one leaf that follows the bucket header directly ("inline").
type bucket struct {
	root     uint64 // Page of the root node. 0 if inline.
	inline   node   // The leaf of an inline tree. Without entries if the tree is not inline.
	inlineAt int64  // File offset of inline.
}

// decodeBucket reads the leaf that names the bucket. The leaf is the page with number id; limit is
// the number of pages in the file. Its only entry has the bucket's name as key. The value,
// little-endian:
//
//	0      8          16
//	+------+----------+-- ... --+
//	| root | sequence | leaf    |     leaf is present only if root is 0
//	+------+----------+-- ... --+
func decodeBucket(n node, id uint64, limit int64) (b bucket, reason string) {
	if n.id() != id || n.flags() != flagLeaf || n.count() != 1 || n.overflow() != 0 {
		return b, fmt.Sprintf("page %d is not a leaf with one bucket", id)
	}
	e := n.element(0)
	flags, pos := binary.LittleEndian.Uint32(e), binary.LittleEndian.Uint32(e[4:])
	ksize, vsize := binary.LittleEndian.Uint32(e[8:]), int64(binary.LittleEndian.Uint32(e[12:]))
	data := n[headerSize+elementSize:]
	if flags != flagBucket || pos != elementSize || int(ksize) != len(bucketName) || !bytes.HasPrefix(data, bucketName) {
		return b, fmt.Sprintf("page %d does not name the bucket %q", id, bucketName)
	}
	data = data[len(bucketName):]
	if vsize < bucketHeader || vsize > int64(len(data)) || binary.LittleEndian.Uint64(data[8:]) != 0 {
		return b, fmt.Sprintf("page %d: a bucket header of %d bytes", id, vsize)
	}
	b.root = binary.LittleEndian.Uint64(data)
	if b.root == 0 {
		b.inline = data[bucketHeader:vsize]
		b.inlineAt = int64(id)*pageSize + int64(headerSize+elementSize+len(bucketName)+bucketHeader)
		reason = checkInline(b.inline)
	} else if b.root < 2 || b.root >= uint64(limit) || vsize != bucketHeader {
		reason = fmt.Sprintf("bucket at page %d of %d", b.root, limit)
	}
	return b, reason
}

// checkInline checks an inline leaf. The leaf may be empty. In contrast to other leaves, all its
// keys are in memory.
func checkInline(n node) string {
	if len(n) < headerSize || n.id() != 0 || n.flags() != flagLeaf || n.overflow() != 0 {
		return "the inline bucket is not a leaf"
	}
	if n.count() == 0 {
		return ""
	}
	if reason := checkLeaf(n); reason != "" {
		return "inline bucket: " + reason
	}
	if last := n.entry(n.count() - 1); last.valueAt()+last.size > int64(len(n)) {
		return "inline bucket: entries are longer than the bucket"
	}
	return ""
}
