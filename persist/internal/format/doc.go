// Package format encodes and decodes the bytes of a store as plain structs. Decoders accept
// untrusted bytes. The package does no file I/O and reads no world; callers pass the rows.
//
//	Tick, TickEncoder       contents of a journal record: row patches, operations
//	Op, Notes, Input        operations of a tick; its marks and the inputs of the program
//	Schema, Entry           components and resources by number, with their layouts
//	Manifest, PageRef, Key  the first page of a snapshot, references to pages, keys of pages
//	AppendSparsePage        a page of a sparse array
//
// Each length is checked before memory is allocated for it. An encoded value decodes to the same
// value. The package also defines the errors of a store, because all higher packages return them.
// docs/FORMAT.md describes each byte.
package format
