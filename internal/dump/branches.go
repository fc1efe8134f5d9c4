package dump

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/stet-ecs/stet/internal/describe"
	"github.com/stet-ecs/stet/internal/term"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist/inspect"
)

// The journal stores the parent of each record. This file computes the branches from the parents. A
// branch is named after its last record, which is a tip: a record without children. In this
// drawing, lines lead from parents to children:
//
//	1 ── 2 ── 3 ── 6 ── 7
//	          └─── 4 ── 5
//
// The branch tip:2 leads to the head, record 7. It has the records 1, 2, 3, 6 and 7. The branch
// tip:1 has the records 4 and 5, and its parent is record 3.

// branchesDoc is what branches --json prints.
type branchesDoc struct {
	Total int `json:"total"`
	// Ordered by their last records; at most --limit, the newest ones.
	Branches []branchDoc `json:"branches"`
}

// A branchDoc is a branch of the journal: a chain of records. A record that two branches share
// belongs only to the newer branch.
type branchDoc struct {
	// Name of the last record, as in tip:1. It is @latest if the last record has a child on another
	// branch.
	Branch string `json:"branch"`
	Tick   uint64 `json:"tick"` // Tick of the last record.
	Seq    uint64 `json:"record"`
	// When the last record was committed; missing if it cannot be read.
	Time *time.Time `json:"time,omitempty"`
	// The parent of the first record; 0 if it has none.
	Parent      uint64     `json:"parent"`
	FirstTick   uint64     `json:"first_tick"`
	FirstRecord uint64     `json:"first_record"`
	Begun       *time.Time `json:"begun,omitempty"` // When the first record was committed.
	Records     int        `json:"records"`
	standingDoc            // Status of the last record.
}

var branchesCommand = command{
	use: "branches STORE",
	doc: `List the branches of the journal: where each begins and ends

List the branches of the journal, ordered by their last records. NOTE says which branch
leads to the newest state; the program rewound all others. A record that several branches
share belongs to the branch of the newest state, or otherwise to the newest branch. If
the end of the journal is damaged, the newest state is the last readable one, and the
records after it are unreachable.

BRANCH is the point in time at the end of the branch: ecsdump ls D --at tip:1 shows the
state there, and tip:1~5 is 5 ticks before it. PARENT is the record that the first
record of the branch continues, and FIRST is its first tick.`,
	example: `  ecsdump branches D
  ecsdump log D --graph
  ecsdump diff D tip:1 @latest`,
	run: func(f flags) action {
		var l limit
		f.limit(&l, "branches, the newest")
		return withSource(func(s *source) error {
			if s.IsSave() {
				return s.noJournal(describe.Command("info", s.path), "there are no branches")
			}
			branches := s.branches()
			doc := &branchesDoc{Total: len(branches.docs)}
			_, earlier := l.of(len(branches.docs))
			doc.Branches = branches.docs[earlier:]
			for i := range doc.Branches {
				b := &doc.Branches[i]
				if err := s.ctx.Err(); err != nil {
					return err
				}
				b.Begun, b.Time = s.time(b.FirstRecord), s.time(b.Seq)
			}
			return s.printReport(doc)
		})
	},
}

// print prints a row for each branch.
func (d *branchesDoc) print(a *app) {
	if d.Total == 0 {
		a.Line("the journal has no records")
		return
	}
	a.printEarlier(d.Total-len(d.Branches), "branch", "branches")
	term.Table(a.Out, d.Branches, func(b branchDoc) []any {
		return []any{b.Branch, b.Tick, b.Seq, nonZero(int64(b.Parent)), timeOrEmpty(b.Time), b.FirstTick, b.Records, b.note()}
	}, "BRANCH", ">TICK", ">RECORD", ">PARENT", "TIME", ">FIRST", ">RECORDS", "NOTE")
}

// time returns the commit time of record seq, or nil if the record cannot be read.
func (s *source) time(seq uint64) *time.Time {
	commits, err := s.Commits(seq, seq)
	if err != nil || len(commits) == 0 {
		return nil
	}
	return &commits[0].Time
}

// A lineage is the list of all branches of a journal.
type lineage struct {
	docs []branchDoc
	of   map[uint64]string // Name of the branch by record number, as in branchDoc.
}

// branches splits the records of the journal into branches, so that each record belongs to one
// branch. The first branch leads to the newest state. Then each other tip gets a branch, the newest
// tip first.
//
// Lost records belong to a branch but are not counted. The record of the newest state may be lost,
// while a snapshot still has the state. Then the branch @latest has no records.
func (s *source) branches() lineage {
	log, in := s.Log(), s.standing()
	onHead := map[uint64]bool{} // Records on the path to the head of the journal.
	for e := range log.Ancestors(log.Head) {
		onHead[e.ID.Seq] = true
	}
	l := lineage{of: map[uint64]string{}}
	ends := slices.Clone(s.Tips())
	numbers := map[uint64]string{}
	for i, e := range ends {
		numbers[e.ID.Seq] = fmt.Sprintf("tip:%d", i+1)
	}
	// Newest first: a record that several branches share belongs to the newest of them.
	slices.Reverse(ends)
	if newest, ok := log.Known(in.newest); ok {
		ends = append([]journal.Entry{newest}, slices.DeleteFunc(ends, func(e journal.Entry) bool { return e.ID.Seq == newest.ID.Seq })...)
	} else if _, lost := s.Newest(); lost != nil && s.stored()[in.newest] {
		tick := describe.StateOf(s.View, in.newest).Tick
		l.docs = append(l.docs, branchDoc{Branch: "@latest", Tick: tick, Seq: in.newest, FirstTick: tick, FirstRecord: in.newest, standingDoc: in.of(in.newest, false)})
	}
	for _, end := range ends {
		d := branchDoc{Branch: cmp.Or(numbers[end.ID.Seq], "@latest"), Tick: end.Tick, Seq: end.ID.Seq, standingDoc: in.of(end.ID.Seq, onHead[end.ID.Seq])}
		for e := range log.Ancestors(end.ID.Seq) {
			// An earlier iteration has added this record and its ancestors to another branch.
			if l.of[e.ID.Seq] != "" {
				break
			}
			l.of[e.ID.Seq] = d.Branch
			// Ancestors come newest first, so the last visited record is the oldest record of the
			// branch.
			if d.Parent = e.Parent; !e.Lost() {
				d.FirstTick, d.FirstRecord = e.Tick, e.ID.Seq
				d.Records++
			}
		}
		l.docs = append(l.docs, d)
	}
	slices.SortFunc(l.docs, func(a, b branchDoc) int { return cmp.Compare(a.Seq, b.Seq) })
	return l
}

// marksDoc is what marks --json prints.
type marksDoc struct {
	Total int       `json:"total"`
	Marks []markDoc `json:"marks"` // Oldest first; at most --limit, the newest ones.
}

// A markDoc is a name that the program gave a tick.
type markDoc struct {
	Name    string    `json:"name"` // The point in time is mark:NAME.
	Tick    uint64    `json:"tick"`
	Seq     uint64    `json:"record"`
	Time    time.Time `json:"time"`
	Branch  string    `json:"branch"`  // Name of the branch with the tick, as printed by branches.
	Rewound bool      `json:"rewound"` // True if the newest state does not descend from this tick.
}

var marksCommand = command{
	use: "marks STORE",
	doc: `List the marks: the names that the program gave ticks

List the marks, oldest first, with the branch of each tick. A mark is a name that the
program gave a tick. Several ticks can have the same mark. As a point in time, mark:NAME
is the newest of these ticks that leads to the newest state. If none does, it is the
newest of all. Use record:N for another one.`,
	example: `  ecsdump marks D
  ecsdump diff D mark:start mark:boss`,
	run: func(f flags) action {
		var l limit
		f.limit(&l, "marks, the newest")
		return withSource(func(s *source) error {
			if s.IsSave() {
				return s.noJournal(describe.Command("info", s.path), "there are no marks")
			}
			marks, unread := s.Marks(s.ctx)
			_, earlier := l.of(len(marks))
			branches, in := s.branches(), s.standing()
			doc := &marksDoc{len(marks), describe.Listed(marks[earlier:], func(m inspect.Mark) markDoc {
				return markDoc{m.Name, m.Tick, m.Seq, m.Time, branches.of[m.Seq], in.of(m.Seq, m.OnHead).Rewound}
			})}
			if err := s.printReport(doc); err != nil {
				return err
			}
			return unread
		})
	},
}

// print prints a row for each mark.
func (d *marksDoc) print(a *app) {
	if d.Total == 0 {
		a.Line("no tick has a mark")
		return
	}
	a.printEarlier(d.Total-len(d.Marks), "mark", "marks")
	term.Table(a.Out, d.Marks, func(m markDoc) []any {
		return []any{m.Name, m.Tick, m.Seq, timeOrEmpty(&m.Time), m.Branch, standingDoc{Rewound: m.Rewound}.note()}
	}, "MARK", ">TICK", ">RECORD", "TIME", "BRANCH", "NOTE")
}
