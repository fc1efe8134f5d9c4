// Package format has the bytes of a store as plain structs: it encodes them, and decodes
// what may be hostile. It knows no file, and no world but the rows that it is given.
//
//	Tick, TickEncoder       what a record of the journal says: row patches, operations
//	Op, Notes, Input        the operations of a tick; its marks and what the program was told
//	Schema, Entry           components and resources by number, with their layouts
//	Manifest, PageRef, Key  the first page of a snapshot, references to pages, their names
//	AppendSparsePage        a page of a sparse array
//
// Every length that is read has a bound before anything is allocated for it, and whoever
// decodes what was encoded has the same. The errors of a store are here too, as every
// room above gives them. docs/FORMAT.md has each byte.
package format
