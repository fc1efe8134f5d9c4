package catalog

// A name belongs to the newest snapshot that was given the name. Older snapshots with the name lose
// it when the newer file exists, so no moment is without a snapshot of that name. A program can
// also remove a name. The list of snapshots in the ledger then says that the files lost their
// names:
//
//	snapshot 3 "quick"   snapshot 7 "quick"   snapshot 9 "boss"
//	lost the name        has the name         removed: the list says so

// NameSnapshots sets the labels of c.Snapshots from the names in the files and the ledger's list. A
// file with a number above all listed ones is newer than the list and keeps its name. Any other
// unlisted file gets no label: the program ended while it removed the file, or while the snapshot
// failed.
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
