// Package pagefile keeps pages of bytes in one immutable file and finds damage
// in it. It knows nothing of what a page means: a page is a key of two numbers
// and an opaque value.
//
// The file is a bbolt database with one flat bucket, followed by a trailer that
// holds a checksum of every block before it:
//
//	0                             length                        size
//	+---------+---------+---- ... ----+---------+---- ... ----+--------+
//	| block 0 | block 1 |             | block n | table       | footer |
//	+---------+---------+---- ... ----+---------+---- ... ----+--------+
//	'------------- bbolt -------------'------------ trailer -----------'
//
// docs/FORMAT.md gives every byte of it.
//
// # Writing
//
// [Create] writes a file under a temporary name, reads it back, makes it durable
// and only then renames it. Whatever goes wrong before the rename, including a
// crash, leaves the file that had the name before. The same pages give the same
// bytes, on every machine, unless [Options.Bolt] is set.
//
// Two writers make the same tree. By default it is written from left to right in one
// pass, each byte once, into any file. With [Options.Bolt], bbolt itself writes it in
// transactions: the snapshots of a store on a real file system are its files.
//
// # Reading
//
// Any tool that knows bbolt can read the file. This package has a reader of its own: bbolt
// maps its file into memory, so a failing disk or a shorter file would end the process
// instead of giving an error; it takes a lock; it follows page numbers without looking at them,
// so that a page that points at itself overflows the stack; and it falls back
// to an older state without a word when its newest meta page is damaged. Here
// bytes are read with ReadAt, their block's checksum is compared before they
// are believed, and a page is checked before it is followed.
//
// [Open] reads the trailer and three pages, however large the file is.
// [File.Get] reads the blocks on its way and those of the value.
// [File.Verify] reads everything.
//
// # Damage and malice
//
// The checksums find what disks, cables and careless tools do. They do not help
// against someone who computes them anew, so the structure of a page is checked
// even if its checksum fits: a hostile file gives an error. It cannot make
// this package panic, loop, or allocate more than the file is long.
package pagefile
