package dump

import (
	"slices"
	"strings"

	"github.com/stet-ecs/stet/journal"
)

// branches are the lines that --graph draws in front of records, by record number. A record has one
// parent, so lines split but never join:
//
//	3  *
//	   |\
//	4  | *
//	6  * |    also a child of 3
//
// A record whose parent is not drawn begins a new tree in the first free column.
type branches map[uint64]branchLines

// branchLines are the lines of one record.
type branchLines struct {
	apart bool // True if fork is printed on its own line, above the record.
	// The line above the record, at which its branch begins. For a new tree, it has only the lines
	// of the other branches.
	fork   string
	row    string // The graph on the line of the record, with * for the record.
	before string // Lines that continue upwards from the record.
	after  string // Lines that continue downwards from the record.
}

// branchesOf draws entries, which are in journal order. The range or a filter may exclude the
// parent of a record. Then the record is drawn as a child of its nearest ancestor in entries.
func branchesOf(entries []journal.Entry, log *journal.Log) branches {
	d := &branchDrawer{parents: parentsAmong(entries, log), children: map[uint64]int{}}
	for _, parent := range d.parents {
		d.children[parent]++
	}
	lines := branches{}
	for i, e := range entries {
		lines[e.ID.Seq] = d.draw(e.ID.Seq, d.parents[i])
	}
	return lines
}

// parentsAmong returns the nearest ancestor in entries of each entry, or 0 if there is none. In a
// log, each record is after its parent.
func parentsAmong(entries []journal.Entry, log *journal.Log) (parents []uint64) {
	// nearest maps each record in entries to itself, and each other record to its nearest ancestor
	// in entries.
	nearest := map[uint64]uint64{}
	for _, e := range log.Entries {
		if len(parents) == len(entries) {
			break
		}
		nearest[e.ID.Seq] = nearest[e.Parent]
		if e.ID == entries[len(parents)].ID {
			parents = append(parents, nearest[e.Parent])
			nearest[e.ID.Seq] = e.ID.Seq
		}
	}
	return parents
}

// A branchDrawer draws records one by one. The last child of a record is drawn in the column of the
// record. Each other child gets a new column. For example, record 3 has the children 4 and 6:
//
//   - draw(3) puts record 3 into the first column.
//   - draw(4) draws a fork and puts record 4 into a second column, because record 3 has another
//     child.
//   - draw(6) puts record 6 into the column of record 3.
type branchDrawer struct {
	parents  []uint64
	children map[uint64]int // Number of children that are not drawn yet.
	columns  []uint64       // The last record in each column; 0 if the column is free.
}

// draw draws record seq, a child of the given parent.
func (d *branchDrawer) draw(seq, parent uint64) (lines branchLines) {
	column := slices.Index(d.columns, parent)
	switch {
	case parent == 0:
		lines.apart, lines.fork = len(d.columns) > 0, d.line(noColumn)
		column = d.free(0)
	case d.children[parent] > 1:
		from := column
		column = d.free(from + 1)
		lines.apart, lines.fork = true, d.fork(from, column)
	}
	d.children[parent]--
	// On the line above the record, the column belongs to the parent. For a new tree, it is free.
	d.columns[column] = parent
	lines.before = d.line(noColumn)
	d.columns[column] = seq
	lines.row = d.line(column)
	// The record has no more children, so its column becomes free.
	if d.children[seq] == 0 {
		d.columns[column] = 0
	}
	lines.after = d.line(noColumn)
	return lines
}

// free returns the first free column whose index is at least the given one.
func (d *branchDrawer) free(least int) int {
	for i := least; i < len(d.columns); i++ {
		if d.columns[i] == 0 {
			return i
		}
	}
	d.columns = append(d.columns, 0)
	return len(d.columns) - 1
}

// noColumn is the argument of line for a line without a record.
const noColumn = -1

// line draws * in the column of the record, and a vertical bar in every other used column.
func (d *branchDrawer) line(record int) string {
	var b strings.Builder
	for i, seq := range d.columns {
		switch {
		case i == record:
			b.WriteByte('*')
		case seq != 0:
			b.WriteByte('|')
		default:
			b.WriteByte(' ')
		}
		b.WriteByte(' ')
	}
	return strings.TrimRight(b.String(), " ")
}

// fork draws a line from one column to a free column on its right. The line crosses the columns
// between them.
func (d *branchDrawer) fork(from, to int) string {
	passing := d.line(noColumn)
	line := []byte(passing + strings.Repeat(" ", 2*to))[:2*to]
	for i := 2*from + 1; i < len(line)-1; i++ {
		if line[i] == ' ' {
			line[i] = '_'
		}
	}
	line[len(line)-1] = '\\'
	return string(line) + passing[min(len(line), len(passing)):]
}
