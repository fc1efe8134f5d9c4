// Package catalog lists the contents of a store or a save and finds the reachable states. All
// callers that open, verify or inspect a store use it.
//
//	list the contents                     Open, Catalog.Scan, Snapshots, Log, Damage
//	find the record of a point            Catalog.Resolve, Catalog.Marks, journal.Log.Tips
//	find the snapshots before a record    Catalog.CandidateSnapshots, nearest first
//	load the state after a record         Catalog.Reach: loads the first readable snapshot and
//	                                      replays later ticks; Load and At for read-only callers
//	read the ticks of a path              Catalog.Records in order, RecordsAtOnce in any order
//	advance a state tick by tick          Walk, from a Catalog.Base
//	check whether a store may continue    Catalog.RecoverHead; Catalog.CheckOpenable only checks
//	find the schema of a tick             Catalog.SchemaAt, also after damage
//	find the process with the store open  Acquire, Held, Catalog.LockHolder
//	copy a store in use                   Backup
//
// A store in use changes while it is read. Snapshots are listed before the journal, so the journal
// contains the records of all of them. Names of vanished files are listed again. Damage counts only
// if a second scan confirms it.
package catalog
