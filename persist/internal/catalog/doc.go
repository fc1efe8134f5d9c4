// Package catalog tells what lies in a store or a save and what can be had from it: one
// answer for all who open, verify or look.
//
//	what lies there                   Open, Catalog.Scan, Snapshots, Log, Damage
//	which record a point names        Catalog.Resolve, Catalog.Marks, journal.Log.Tips
//	which snapshots lead to a record  Catalog.Bases, nearest first
//	the state after a record          Catalog.Reach: the first of them that loads, and the
//	                                  ticks behind it; Load and At for who only looks
//	the ticks that lead to it         Catalog.Records, read ahead; RecordsAtOnce in no order
//	may the store be continued        Catalog.Continued, and Catalog.Refusal for who only asks
//	what the numbers in a tick mean   Catalog.SchemaAt, also behind damage
//	who has it open                   Acquire, Held, Catalog.LockHolder
//	a copy while it is written        Backup
//
// What is in use changes while it is read. Snapshots are listed before the journal, so that
// it leads to all of them; files that vanish are looked for again, and damage must show
// twice.
package catalog
