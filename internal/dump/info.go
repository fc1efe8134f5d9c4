package dump

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/stet-ecs/stet/internal/describe"
	"github.com/stet-ecs/stet/internal/term"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
)

// Info is the first thing that somebody asks of a file that does not open. So each part of it is
// told even if another cannot be:
//
//	info     the files, from their names and heads, and the journal, from its ledger; no pages
//	world    the state at the point, which may be out of reach: then its members are missing
//	opens    what a program would meet that opens the store, and what helps
//	marks    the ticks that have names, which are read
//
// The exit status is that of the damage that was met, if any was.

// infoDoc is what info --json prints. If the state cannot be read, its members
// (those of [worldDoc]) are missing and the exit status says why.
type infoDoc struct {
	Path      string        `json:"path"`
	Kind      string        `json:"kind"` // store or save.
	*worldDoc               // At the point in time asked for.
	Snapshots []snapshotDoc `json:"snapshots"`
	Marks     int           `json:"marks"`             // How many there are; the command marks lists them.
	Journal   *journalDoc   `json:"journal,omitempty"` // None for a save.
	Lock      *lockDoc      `json:"lock,omitempty"`    // None if it was closed cleanly.
	Damage    []string      `json:"damage"`            // That shows without verify.
	Opens     *bool         `json:"opens,omitempty"`   // A program can open it and go on from the newest state, or could if none had it open. None for a save.
	Refused   string        `json:"refused,omitempty"` // Why it cannot.
	Helps     string        `json:"helps,omitempty"`   // The command that helps then; missing: none does.
	Bytes     int64         `json:"bytes"`             // Of snapshots and journal, or of the save.

	newest inspect.Mark // If there are any.
}

// A worldDoc describes a world at a point in time.
type worldDoc struct {
	stateDoc
	Time       *time.Time `json:"time,omitempty"` // When it was committed, if a record says so.
	Alive      int        `json:"alive"`          // Entities.
	Free       int        `json:"free"`           // Indices that will be given out again.
	Retired    int        `json:"retired"`        // Indices whose generations are spent.
	Digest     string     `json:"digest"`
	Components []rowsDoc  `json:"components"`
}

// A rowsDoc says how many rows a component has.
type rowsDoc struct {
	Name string `json:"name"`
	Kind string `json:"kind"` // component, tag or resource.
	Rows int    `json:"rows"`
}

// A snapshotDoc describes a snapshot file.
type snapshotDoc struct {
	Number uint32     `json:"number"`          // 0: a save.
	Label  string     `json:"label,omitempty"` // What the program called it.
	File   string     `json:"file"`            // Relative to STORE.
	Tick   uint64     `json:"tick"`
	Seq    uint64     `json:"record"`
	Time   *time.Time `json:"time,omitempty"` // Of the commit of its tick.
	Digest string     `json:"digest"`
	Bytes  int64      `json:"bytes"`
	Shares int        `json:"shares"`          // Other files that hold pages of it.
	Error  string     `json:"error,omitempty"` // Why it cannot be read.
	Build  string     `json:"build,omitempty"` // The program and the machine that wrote it, if it says so.
}

// A journalDoc describes a journal.
type journalDoc struct {
	Segments  []segmentDoc `json:"segments"`
	Records   int          `json:"records"`
	Rewound   int          `json:"rewound"`    // Records that the newest state does not come from.
	Branches  int          `json:"branches"`   // Records that no readable one continues: 1 if nothing was rewound.
	FirstTick uint64       `json:"first_tick"` // Lowest and highest; 0 if there are no records.
	LastTick  uint64       `json:"last_tick"`
	Clean     bool         `json:"clean"`             // It was closed; nothing can be missing.
	Torn      string       `json:"torn,omitempty"`    // The unfinished end, if there is one.
	Writing   string       `json:"writing,omitempty"` // The end that a running program is writing, if it shows.
	Bytes     int64        `json:"bytes"`
}

// A segmentDoc describes a file of a journal.
type segmentDoc struct {
	File     string `json:"file"` // Relative to STORE.
	Epoch    uint64 `json:"epoch"`
	FirstSeq uint64 `json:"first_record"`
	Records  int    `json:"records"`
	Bytes    int64  `json:"bytes"`
	Build    string `json:"build,omitempty"` // The program and the machine that wrote it, if known.
}

// A lockDoc says who has a store open, or had it when it ended without closing.
type lockDoc struct {
	Holder  string `json:"holder"`
	Running string `json:"running"` // yes: it has it open. no, or unknown: it is on another host.
}

var infoCommand = command{
	use: "info STORE",
	doc: `Summarize what there is: state, components, snapshots, journal`,
	example: `  ecsdump info D
  ecsdump info slot1.save
  ecsdump info D --at snap:milestone --json`,
	run: func(f flags) action {
		var at string
		f.point(&at)
		return reading(func(s *source) error {
			doc := s.info()
			w, err := s.world(at)
			// Where something is damaged, the rest of the summary is what is wanted; the error
			// comes at the end.
			if err != nil && len(doc.Damage) == 0 && !errors.Is(err, persist.ErrCorrupt) {
				return err // As for a point in time that is not there: nothing is wrong with the files.
			}
			doc.worldDoc = w
			if err := s.opens(doc); err != nil {
				return err
			}
			marks, unread := s.Marks(s.ctx)
			if doc.Marks = len(marks); doc.Marks > 0 {
				// Marks come in the order in which they were committed.
				doc.newest = marks[doc.Marks-1]
			}
			// What could be read is printed, whatever the errors before it say.
			return errors.Join(err, unread, s.tell(doc))
		})
	},
}

// world describes the world at a point in time. Counts come from the registry, rows from the
// columns: no value is read. The time is in the record, which may be damaged although the state is
// not.
func (s *source) world(at string) (w *worldDoc, err error) {
	err = s.ask(at, func(st *inspect.State) error {
		im := outline(st)
		w = &worldDoc{
			stateDoc: im.doc(), Alive: im.Alive, Free: im.Free - im.Alive, Retired: st.Indices() - im.Free,
			Digest: st.Digest().String(), Components: describe.Listed(im.Components, func(c *inspect.Component) rowsDoc {
				return rowsDoc{c.Name, describe.Kind(c.Layout, c.Resource), c.Len()}
			}),
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	commits, err := s.Commits(w.Seq, w.Seq)
	if len(commits) > 0 {
		w.Time = &commits[0].Time
	}
	return w, err
}

// info describes the files. It reads no pages and no records: what opening the store has found is
// enough, so that there is an answer also if nothing else can be read.
func (s *source) info() *infoDoc {
	doc := &infoDoc{Path: s.path, Kind: "store", Snapshots: describe.Listed(s.View.Snapshots(), snapshotDocOf), Damage: describe.Listed(s.Damage(), describe.Unprefixed)}
	for _, sn := range doc.Snapshots {
		doc.Bytes += sn.Bytes
	}
	if s.IsSave() {
		doc.Kind = "save"
		return doc
	}
	doc.Journal = s.journal()
	doc.Bytes += doc.Journal.Bytes
	doc.Lock = lockOf(s.LockHolder(), s.InUse())
	return doc
}

// opens says whether a program can open the store, and what helps if not: where something is
// damaged, a new store of what is good, if anything can be saved. It is tried as a program would, without changing anything,
// but for what only the types of a program could say.
func (s *source) opens(doc *infoDoc) error {
	if s.IsSave() {
		return nil
	}
	refusal := s.Refusal(s.ctx)
	// An interrupt says nothing of the store.
	if s.ctx.Err() != nil {
		return s.ctx.Err()
	}
	opens := refusal == nil
	doc.Opens, doc.Refused = &opens, describe.Unprefixed(refusal)
	// What a newer program wrote is not to be repaired, but read by that program.
	if !opens && !errors.Is(refusal, persist.ErrNewer) {
		r, err := s.Recover(s.ctx, "", inspect.RecoverOptions{})
		doc.Helps = recovering(s.path, &r, err)
	}
	return s.ctx.Err()
}

func snapshotDocOf(s inspect.SnapshotInfo) snapshotDoc {
	return snapshotDoc{
		Number: s.Number, Label: s.Label, File: s.Name, Tick: s.Tick, Seq: s.ID.Seq, Time: describe.Known(s.Time),
		Digest: s.Digest.String(), Bytes: s.Size, Shares: s.Files, Error: describe.Unprefixed(s.Err), Build: s.Build,
	}
}

// journal describes the journal. Rewound are the records from which it is known, less those on the
// way back from the head.
func (s *source) journal() *journalDoc {
	log := s.Log()
	j := &journalDoc{Segments: []segmentDoc{}, Records: len(log.Entries), Branches: len(s.Tips()), Clean: log.Clean}
	builds := s.Builds()
	for i, seg := range log.Segments {
		j.Bytes += seg.Size
		j.Segments = append(j.Segments, segmentDoc{"journal/" + seg.Name, seg.Epoch, seg.First, seg.Records, seg.Size, builds[i]})
	}
	known := s.rewoundFrom()
	for i, e := range log.Entries {
		if i == 0 {
			j.FirstTick = e.Tick
		}
		j.FirstTick, j.LastTick = min(j.FirstTick, e.Tick), max(j.LastTick, e.Tick)
		if e.ID.Seq >= known {
			j.Rewound++
		}
	}
	for e := range log.Ancestors(log.Head) { // Rewound has all by now; these are not.
		if !e.Lost() && e.ID.Seq >= known {
			j.Rewound--
		}
	}
	// An end that is not finished is being written if a program has the store open; else a program
	// was ended there.
	if t := log.Torn; t != nil && s.InUse() {
		j.Writing = fmt.Sprintf("journal/%s: %d bytes at offset %d", t.File, t.Length, t.Offset)
	} else if t != nil {
		j.Torn = fmt.Sprintf("journal/%s: %d bytes at offset %d: %s", t.File, t.Length, t.Offset, t.Reason)
	}
	return j
}

// String returns j for people, on one line.
func (j *journalDoc) String() string {
	s := fmt.Sprintf("%s in %s, %s", term.Count(j.Records, "record", "records"), term.Count(len(j.Segments), "segment", "segments"), term.Size(j.Bytes))
	if j.Records > 0 {
		s += fmt.Sprintf(", ticks %d to %d, %s", j.FirstTick, j.LastTick, term.Count(j.Branches, "branch", "branches"))
	}
	if j.Rewound > 0 {
		s += fmt.Sprintf(" (%s rewound)", term.Count(j.Rewound, "record", "records"))
	}
	return s
}

// lockOf describes the process that a lock file names. Locks of other hosts may
// not show here: a file that names one of them says neither that it runs nor that it ended.
//
//	in use                       yes, whoever it is
//	no holder                    no lock at all: it was closed cleanly
//	a process of this host       no: it would show as in use if it ran
//	anything else                unknown
func lockOf(holder string, inUse bool) *lockDoc {
	if inUse {
		return &lockDoc{cmp.Or(holder, "a process that does not say which"), "yes"}
	}
	if holder == "" {
		return nil
	}
	var pid int
	var host string
	here, err := os.Hostname()
	if n, _ := fmt.Sscanf(holder, "process %d on %s", &pid, &host); n != 2 || err != nil || host != here {
		return &lockDoc{holder, "unknown"}
	}
	return &lockDoc{holder, "no"}
}

// print prints the summary, then a table of each of the lists that are not empty.
func (doc *infoDoc) print(a *app) {
	g := a.Grid("", "~")
	g.Row(doc.Kind, doc.Path)
	if doc.worldDoc != nil {
		doc.worldDoc.print(g)
	}
	if doc.Journal != nil {
		doc.journal(g)
	} else if len(doc.Snapshots) == 1 && doc.Snapshots[0].Build != "" {
		g.Row("writer", doc.Snapshots[0].Build)
	}
	for _, d := range doc.Damage {
		g.Row("damage", d)
	}
	if doc.Refused != "" {
		g.Row("opens", "no: "+strings.ReplaceAll(doc.Refused, "\n", "; "))
	}
	if doc.Helps != "" {
		g.Row("helps", doc.Helps)
	}
	g.Row("size", term.Size(doc.Bytes))
	g.Flush()
	if doc.worldDoc != nil && len(doc.Components) > 0 {
		a.Line("")
		term.Table(a.Out, doc.Components, func(c rowsDoc) []any { return []any{c.Name, c.Kind, c.Rows} }, "COMPONENT", "KIND", ">ROWS")
	}
	if doc.Kind == "store" && len(doc.Snapshots) > 0 {
		a.snapshots(doc.Snapshots)
	}
}

// print adds what there is to say of a state.
func (w *worldDoc) print(g *term.Grid) {
	at := w.place()
	if w.Time != nil {
		at += ", " + shown(w.Time)
	}
	g.Row("state", at)
	g.Row("digest", w.Digest)
	g.Row("entities", fmt.Sprintf("%d alive, %d free, %d retired", w.Alive, w.Free, w.Retired))
}

// journal adds what there is to say of the journal. An unfinished end is no damage: a
// program was killed while it wrote, or writes just now.
func (doc *infoDoc) journal(g *term.Grid) {
	g.Row("journal", doc.Journal)
	g.Row("closed", closed(doc))
	if doc.Marks > 0 {
		g.Row("marks", fmt.Sprintf("%d; the newest is mark:%s, tick %d", doc.Marks, doc.newest.Name, doc.newest.Tick))
	}
	// A row for each time that another program or machine went on.
	said := ""
	for _, seg := range doc.Journal.Segments {
		if seg.Build != "" && seg.Build != said {
			g.Row("writer", fmt.Sprintf("%s, from record %d", seg.Build, seg.FirstSeq))
		}
		said = cmp.Or(seg.Build, said)
	}
	if doc.Journal.Torn != "" {
		g.Row("unfinished", doc.Journal.Torn)
	}
	if doc.Journal.Writing != "" {
		g.Row("writing", doc.Journal.Writing)
	}
}

// snapshots prints the snapshot files. A file that shares pages with others cannot be removed alone,
// so that is said.
func (a *app) snapshots(snapshots []snapshotDoc) {
	a.Line("")
	term.Table(a.Out, snapshots, func(s snapshotDoc) []any {
		return []any{s.Number, s.Label, s.Tick, s.Seq, shown(s.Time), term.Size(s.Bytes), some(s.Shares), s.Error}
	}, ">SNAPSHOT", "NAME", ">TICK", ">RECORD", "TIME", ">SIZE", ">SHARES", "~NOTE")
}

// closed returns the row "closed" of a table: whether the last program ended in order. A lock comes
// before what the journal says: who has the store open has not closed it yet.
func closed(doc *infoDoc) string {
	switch l := doc.Lock; {
	case l != nil && l.Running == "yes":
		return "no: in use by " + l.Holder
	case l != nil && l.Running == "no":
		return "no: " + l.Holder + " ended without closing it"
	case l != nil:
		return "no: the lock names " + l.Holder
	case !doc.Journal.Clean:
		return "no"
	}
	return "cleanly"
}

// shown returns a time for people, or "" if it is not known.
func shown(t *time.Time) string {
	if t == nil {
		return ""
	}
	return timeText(*t)
}
