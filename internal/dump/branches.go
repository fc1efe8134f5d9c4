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

// The branches of a journal are made of its records here: the journal only knows what each record
// continues. A branch is told from its end, as that has a point in time by which it can be named.
//
//	1 ── 2 ── 3 ── 6 ── 7      tip:2, the head, has 1, 2, 3, 6 and 7
//	           └── 4 ── 5      tip:1 has 4 and 5; its parent is 3

// branchesDoc is what branches --json prints.
type branchesDoc struct {
	Total    int         `json:"total"`
	Branches []branchDoc `json:"branches"` // By their ends; the newest as many as --limit allows.
}

// A branchDoc is a branch of the journal, from the first record that no newer branch has to its end.
type branchDoc struct {
	Branch      string     `json:"branch"` // The point in time that is its end: tip:1; @latest if a record of another branch continues it.
	Tick        uint64     `json:"tick"`   // Of its end.
	Seq         uint64     `json:"record"`
	Time        *time.Time `json:"time,omitempty"` // By the clock of the writer; missing: it cannot be read.
	Parent      uint64     `json:"parent"`         // The record that its first one continues; 0: none.
	FirstTick   uint64     `json:"first_tick"`
	FirstRecord uint64     `json:"first_record"`
	Begun       *time.Time `json:"begun,omitempty"` // When that was committed.
	Records     int        `json:"records"`
	standingDoc            // Of its end.
}

var branchesCommand = command{
	use: "branches STORE",
	doc: `List the branches of the journal: where each begins and ends

List the branches of the journal, by their ends: where each begins, which record that
continues, and which one leads to the newest state. The others were rewound. A record
that leads to several ends belongs to the way to the newest state, else to the newest branch.
If damage hides what the journal ends with, the newest state is one before it, and the
records behind that are unreachable.

BRANCH is the point in time that is the end: ecsdump ls D --at tip:1 shows the state
there, tip:1~5 is 5 ticks before it, and record:88 any record of any branch. PARENT is
the record behind which the branch begins, FIRST its first tick.`,
	example: `  ecsdump branches D
  ecsdump log D --graph
  ecsdump diff D tip:1 @latest`,
	run: func(f flags) action {
		var l limit
		f.limit(&l, "branches, the newest")
		return reading(func(s *source) error {
			if s.IsSave() {
				return s.noJournal(try("info", s.path), "there are no branches")
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
			return s.tell(doc)
		})
	},
}

// print prints a row for each branch.
func (d *branchesDoc) print(a *app) {
	if d.Total == 0 {
		a.Line("the journal has no records")
		return
	}
	a.earlier(d.Total-len(d.Branches), "branch", "branches")
	term.Table(a.Out, d.Branches, func(b branchDoc) []any {
		return []any{b.Branch, b.Tick, b.Seq, some(int64(b.Parent)), shown(b.Time), b.FirstTick, b.Records, b.note()}
	}, "BRANCH", ">TICK", ">RECORD", ">PARENT", "TIME", ">FIRST", ">RECORDS", "NOTE")
}

// time returns when record seq was committed; nil: that cannot be read.
func (s *source) time(seq uint64) *time.Time {
	commits, err := s.Commits(seq, seq)
	if err != nil || len(commits) == 0 {
		return nil
	}
	return &commits[0].Time
}

// A lineage is the branches of a journal, and to which of them a record belongs.
type lineage struct {
	docs []branchDoc
	of   map[uint64]string // By record, what branchDoc calls the branch.
}

// branches parts the records of the journal into branches. Ends are taken in the order of who may
// claim: the way to the newest state first, then from the newest end to the oldest. Each goes back
// until it meets a record that somebody has, so every record is passed once and has one branch.
// Records that are lost belong to a branch, but are not counted, and its first is the first one
// that can be read. A newest state that another record continues is no tip, and has no number: it is
// @latest. So is one that only a snapshot has, as the journal lost its record: a branch of no records.
func (s *source) branches() lineage {
	log, in := s.Log(), s.standing()
	onHead := map[uint64]bool{} // Of all ends.
	for e := range log.Ancestors(log.Head) {
		onHead[e.ID.Seq] = true
	}
	l := lineage{of: map[uint64]string{}}
	ends := slices.Clone(s.Tips())
	numbers := map[uint64]string{}
	for i, e := range ends {
		numbers[e.ID.Seq] = fmt.Sprintf("tip:%d", i+1)
	}
	slices.Reverse(ends) // The newest take what they share with older ones.
	if newest, ok := log.Known(in.newest); ok {
		ends = append([]journal.Entry{newest}, slices.DeleteFunc(ends, func(e journal.Entry) bool { return e.ID.Seq == newest.ID.Seq })...)
	} else if _, lost := s.Newest(); lost != nil && s.stored()[in.newest] {
		tick := s.tick(in.newest)
		l.docs = append(l.docs, branchDoc{Branch: "@latest", Tick: tick, Seq: in.newest, FirstTick: tick, FirstRecord: in.newest, standingDoc: in.of(in.newest, false)})
	}
	for _, end := range ends {
		d := branchDoc{Branch: numbers[end.ID.Seq], Tick: end.Tick, Seq: end.ID.Seq, standingDoc: in.of(end.ID.Seq, onHead[end.ID.Seq])}
		if d.Branch == "" {
			d.Branch = "@latest"
		}
		for e := range log.Ancestors(end.ID.Seq) {
			// It belongs to a branch that may claim before this one, and so do all before it.
			if l.of[e.ID.Seq] != "" {
				break
			}
			l.of[e.ID.Seq] = d.Branch
			// Each record taken is the first so far; when the loop ends, the last is the first of
			// the branch.
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
	Marks []markDoc `json:"marks"` // Oldest first; the newest as many as --limit allows.
}

// A markDoc is a name that the program gave a tick.
type markDoc struct {
	Name    string    `json:"name"` // mark:NAME is the point in time.
	Tick    uint64    `json:"tick"`
	Seq     uint64    `json:"record"`
	Time    time.Time `json:"time"`
	Branch  string    `json:"branch"`  // As branches calls it.
	Rewound bool      `json:"rewound"` // The newest state does not come from this tick.
}

var marksCommand = command{
	use: "marks STORE",
	doc: `List the marks: the names that the program gave ticks

List the marks: the names that the program gave ticks, with the branch that each tick is
on, oldest first. mark:NAME is the newest tick of that name as a point in time, of those on
the way to the newest state if there are any; record:N is any of them.`,
	example: `  ecsdump marks D
  ecsdump diff D mark:start mark:boss`,
	run: func(f flags) action {
		var l limit
		f.limit(&l, "marks, the newest")
		return reading(func(s *source) error {
			if s.IsSave() {
				return s.noJournal(try("info", s.path), "there are no marks")
			}
			marks, unread := s.Marks(s.ctx)
			_, earlier := l.of(len(marks))
			branches, in := s.branches(), s.standing()
			doc := &marksDoc{len(marks), describe.Listed(marks[earlier:], func(m inspect.Mark) markDoc {
				return markDoc{m.Name, m.Tick, m.Seq, m.Time, branches.of[m.Seq], in.of(m.Seq, m.OnHead).Rewound}
			})}
			if err := s.tell(doc); err != nil {
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
	a.earlier(d.Total-len(d.Marks), "mark", "marks")
	term.Table(a.Out, d.Marks, func(m markDoc) []any {
		return []any{m.Name, m.Tick, m.Seq, shown(&m.Time), m.Branch, standingDoc{Rewound: m.Rewound}.note()}
	}, "MARK", ">TICK", ">RECORD", "TIME", "BRANCH", "NOTE")
}
