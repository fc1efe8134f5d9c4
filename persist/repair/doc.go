// Package repair writes new stores and saves from what package inspect reads. It recovers damaged
// stores, copies parts of stores, and exports and imports states as text. It needs no Go types of
// the program. It never changes the store that it reads.
//
//	recover a damaged store or save    Recover; Recoverable only reports what it would save
//	copy a state and recent ticks      Compact
//	copy a store in use                Backup
//	export a state as text             Export
//	import an exported state           Import
//	change values in a state           Edit, then SaveImage or SaveStore
//	write a state to a new file        SaveImage; SaveStore writes a new store
//
// SaveStore keeps one state, without the ticks before it.
//
// Recover, Compact, SaveImage and SaveStore need a path at which nothing exists. The result appears
// there only when it is complete and durable.
//
// Errors are those of package persist. Functions that run long report to persist.WithProgress.
package repair
