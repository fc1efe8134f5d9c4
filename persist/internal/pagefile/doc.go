// Package pagefile stores pages of bytes in one immutable file and detects damage in it. The
// package does not interpret pages: a page is a key of two numbers and an opaque value.
//
// The file is a bbolt database with one flat bucket, followed by a trailer. The trailer contains a
// checksum of every block before it:
//
//	0                             length                        size
//	+---------+---------+---- ... ----+---------+---- ... ----+--------+
//	| block 0 | block 1 |             | block n | table       | footer |
//	+---------+---------+---- ... ----+---------+---- ... ----+--------+
//	'------------- bbolt -------------'------------ trailer -----------'
//
// docs/FORMAT.md describes every byte.
//
// # Writing
//
// [Create] writes a file under a temporary name, reads it back, makes it durable and then renames
// it. A failure or crash before the rename leaves an existing file with that name unchanged. The
// same pages produce the same bytes on every machine, unless [Options.Bolt] is set.
//
// Two writers produce the same tree. The default writer writes from left to right in one pass, each
// byte once, into any file. With [Options.Bolt], bbolt itself writes in transactions. A store on a
// real file system uses bbolt for its snapshots.
//
// # Reading
//
// Any tool that supports bbolt can read the file. This package has its own reader, because bbolt is
// unsafe for damaged files:
//
//   - bbolt maps its file into memory. A failing disk or a truncated file ends the process instead
//     of returning an error.
//   - bbolt takes a lock.
//   - bbolt follows page numbers without checking them. A page that refers to itself overflows the
//     stack.
//   - bbolt silently uses an older state if its newest meta page is damaged.
//
// This package reads bytes with ReadAt and verifies their block's checksum before it uses them. It
// checks each page before it follows a reference in the page.
//
// [Open] reads the trailer and three pages, however large the file is. [File.Get] reads the blocks
// on the path to a value and the blocks of the value. [File.Verify] reads everything.
//
// # Damage and malice
//
// The checksums detect accidental damage by disks, cables and careless tools. They do not protect
// against an attacker that can recompute them. So the structure of a page is checked even if its
// checksum matches, and a hostile file gives an error. A hostile file cannot make this package
// panic, loop, or allocate more than the length of the file.
package pagefile
