package dump

import (
	"slices"
	"strings"

	"github.com/stet-ecs/stet/journal"
)

// branches are the lines that --graph draws beside records, by seq. A record has one
// parent, so that branches only ever fork:
//
//	3  *
//	   |\
//	4  | *
//	6  * |    which continues 3 as well
//
// Columns are two cells wide. A record without a parent among those drawn begins a tree of its own,
// in the first free column.
type branches map[uint64]branchLines

// branchLines are those of one record.
type branchLines struct {
	apart  bool   // A line comes before it.
	fork   string // That line: with the fork where its branch begins, unless it begins a tree.
	row    string // Beside it.
	before string // Of the branches that lead to it and pass it.
	after  string // Of the branches that leave it and pass it.
}

// branchesOf draws entries, which are in the order of the journal. A record whose
// parent is not among them hangs on the nearest ancestor that is.
func branchesOf(entries []journal.Entry, log *journal.Log) branches {
	d := &brancher{parents: parentsAmong(entries, log), children: map[uint64]int{}}
	for _, parent := range d.parents {
		d.children[parent]++
	}
	lines := branches{}
	for i, e := range entries {
		lines[e.ID.Seq] = d.draw(e.ID.Seq, d.parents[i])
	}
	return lines
}

// parentsAmong returns the nearest ancestor among entries of each of them, or 0.
func parentsAmong(entries []journal.Entry, log *journal.Log) []uint64 {
	// Of records that were passed on the way, and entries themselves. Each is passed once, however
	// many of entries come from it.
	nearest := map[uint64]uint64{}
	for _, e := range entries {
		nearest[e.ID.Seq] = e.ID.Seq
	}
	parents := make([]uint64, len(entries))
	for i, e := range entries {
		var passed []uint64
		at := e.Parent
		for {
			if known, ok := nearest[at]; ok {
				parents[i] = known
				break
			}
			passed = append(passed, at)
			parent, ok := log.Find(at)
			if !ok {
				break
			}
			at = parent.Parent
		}
		for _, seq := range passed {
			nearest[seq] = parents[i]
		}
	}
	return parents
}

// A brancher draws records one by one. A record takes over the column of its parent only
// if no other child comes later, so a column belongs to one branch from its fork to its end,
// and is free for another after that.
//
//	draw(3)   columns [3]
//	draw(4)   columns [3 4]      3 has another child: a new column, and a fork before it
//	draw(6)   columns [6 4]      the last child takes over the column of 3
type brancher struct {
	parents  []uint64
	children map[uint64]int // Not drawn yet.
	columns  []uint64       // The last record in each; 0: the column is free.
}

// draw draws record seq. It gets the column of its parent if it is the last child, so
// that the newest branch is the leftmost.
func (d *brancher) draw(seq, parent uint64) (lines branchLines) {
	column := slices.Index(d.columns, parent)
	switch {
	case parent == 0:
		lines.apart, lines.fork = len(d.columns) > 0, d.state(-1, "")
		column = d.free(0)
	case d.children[parent] > 1:
		from := column
		column = d.free(from + 1)
		lines.apart, lines.fork = true, d.fork(from, column)
	}
	// For a moment the column of the record is its parent's, which is what leads to it.
	if d.children[parent]--; parent != 0 {
		d.columns[column] = parent
		lines.before = d.state(column, "|")
	} else {
		lines.before = d.state(-1, "")
	}
	d.columns[column] = seq
	lines.row = d.state(column, "*")
	// Nothing comes from it: another branch may have the column.
	if d.children[seq] == 0 {
		d.columns[column] = 0
	}
	lines.after = d.state(-1, "")
	return lines
}

// free returns the first free column from least on.
func (d *brancher) free(least int) int {
	for i := least; i < len(d.columns); i++ {
		if d.columns[i] == 0 {
			return i
		}
	}
	d.columns = append(d.columns, 0)
	return len(d.columns) - 1
}

// state draws the columns, one of them as mark.
func (d *brancher) state(column int, mark string) string {
	var b strings.Builder
	for i, seq := range d.columns {
		switch {
		case i == column:
			b.WriteString(mark)
		case seq != 0:
			b.WriteByte('|')
		default:
			b.WriteByte(' ')
		}
		b.WriteByte(' ')
	}
	return strings.TrimRight(b.String(), " ")
}

// fork draws the way from a column to a free one on its right. Where it crosses columns that are
// free it is a line of _; others go through it.
func (d *brancher) fork(from, to int) string {
	passing := d.state(-1, "")
	line := []byte(passing + strings.Repeat(" ", 2*to))[:2*to]
	for i := 2*from + 1; i < len(line)-1; i++ {
		if line[i] == ' ' {
			line[i] = '_'
		}
	}
	line[len(line)-1] = '\\'
	return string(line) + passing[min(len(line), len(passing)):]
}
