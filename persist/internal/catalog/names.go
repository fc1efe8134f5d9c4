package catalog

// A program may give the same name to several snapshots. The name then belongs to the newest of
// them. An older snapshot loses the name only when the file of the newer one exists. So some
// snapshot has the name at any moment. A program can also remove a name. The list of snapshots in
// the ledger records which files have lost their names:
//
//	snapshot 3 "quick"   snapshot 7 "quick"   snapshot 9 "boss"
//	lost the name        has the name         name removed by the program

// NameSnapshots sets the label of each snapshot in c.Snapshots. The label depends on the list of
// snapshots in the ledger:
//
//	listed with a name                         the name in the file
//	listed, but the name is lost               no label
//	not listed, number above all listed ones   the name in the file, which is newer than the list
//	not listed, any other number               no label
//
// A file of the last kind remains if the program ended while it removed the file, or if the
// snapshot failed.
func NameSnapshots(c *Catalog) {
	named, last := map[uint32]bool{}, uint32(0)
	for s := range c.listed() {
		named[s.number], last = !s.unnamed, max(last, s.number)
	}
	for i := range c.Snapshots {
		s := &c.Snapshots[i]
		if s.Label = ""; named[s.Number] || s.Number > last {
			s.Label = s.Given
		}
	}
	LoseNames(c.Snapshots, func(s *SnapshotInfo) *SnapshotInfo { return s })
}

// LoseNames removes the labels of snapshots whose name a newer snapshot has. list is ordered from
// old to new, and infoOf returns the description of an element.
func LoseNames[T any](list []T, infoOf func(*T) *SnapshotInfo) {
	taken := map[string]bool{}
	for i := len(list) - 1; i >= 0; i-- {
		if s := infoOf(&list[i]); s.Label != "" && taken[s.Label] {
			s.Label = ""
		} else {
			taken[s.Label] = true
		}
	}
}
