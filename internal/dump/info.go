package dump

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/stet-ecs/stet/internal/describe"
	"github.com/stet-ecs/stet/internal/term"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
	"github.com/stet-ecs/stet/persist/repair"
)

// The command info describes a store, even a damaged store. It prints each section that can be
// read. The sections are:
//
//	info     the files and the journal, from names, headers and the ledger of the journal
//	world    the state at the point
//	opens    whether a program can open the store, and what to do if it cannot
//	marks    the named ticks, from the journal
//
// Damage sets the exit status.

// infoDoc is what info --json prints. If the state cannot be read, the members of [worldDoc] are
// missing and the exit status says why.
type infoDoc struct {
	Path      string        `json:"path"`
	Kind      string        `json:"kind"` // Either store or save.
	*worldDoc               // The world at the requested point.
	Snapshots []snapshotDoc `json:"snapshots"`
	// Number of marks; the command marks lists them.
	Marks   int         `json:"marks"`
	Journal *journalDoc `json:"journal,omitempty"` // Missing for a save.
	Lock    *lockDoc    `json:"lock,omitempty"`    // Missing if the store was closed cleanly.
	Damage  []string    `json:"damage"`            // Damage that is visible without verify.
	// True if a program can open the store and continue at the newest state, once no other program
	// has it open. Missing for a save.
	Opens   *bool  `json:"opens,omitempty"`
	Refused string `json:"refused,omitempty"` // The reason, if Opens is false.
	// A command that repairs the store, if there is one.
	Helps string `json:"helps,omitempty"`
	// Size of snapshots and journal, or of the save.
	Bytes int64 `json:"bytes"`

	newest inspect.Mark // The newest mark, if Marks is not 0.
}

// A worldDoc describes a world at a point in time.
type worldDoc struct {
	stateDoc
	Time       *time.Time `json:"time,omitempty"` // Commit time; missing without a record.
	Alive      int        `json:"alive"`          // Number of entities that are alive.
	Free       int        `json:"free"`           // Indices that will be reused.
	Retired    int        `json:"retired"`        // Indices whose generations are used up.
	Digest     string     `json:"digest"`
	Components []rowsDoc  `json:"components"`
}

// A rowsDoc is the number of rows of a component.
type rowsDoc struct {
	Name string `json:"name"`
	Kind string `json:"kind"` // Component, tag or resource.
	Rows int    `json:"rows"`
}

// A snapshotDoc describes a snapshot file.
type snapshotDoc struct {
	Number uint32     `json:"number"`          // Number of the snapshot; 0 for a save.
	Label  string     `json:"label,omitempty"` // Name of the slot.
	Note   string     `json:"note,omitempty"`  // Note of the slot.
	File   string     `json:"file"`            // Path relative to STORE.
	Tick   uint64     `json:"tick"`
	Seq    uint64     `json:"record"`
	Time   *time.Time `json:"time,omitempty"` // Commit time of its tick.
	Digest string     `json:"digest"`
	Bytes  int64      `json:"bytes"`
	// Number of other files that have pages of this snapshot.
	Shares int    `json:"shares"`
	Error  string `json:"error,omitempty"` // Why the file cannot be read.
	Build  string `json:"build,omitempty"` // Program and machine that wrote it, if recorded.
}

// A journalDoc describes a journal.
type journalDoc struct {
	Segments []segmentDoc `json:"segments"`
	Records  int          `json:"records"`
	// Number of records from which the newest state does not descend.
	Rewound int `json:"rewound"`
	// Number of tips: records without a readable child.
	Branches  int    `json:"branches"`
	FirstTick uint64 `json:"first_tick"` // Lowest tick; 0 if there are no records.
	LastTick  uint64 `json:"last_tick"`
	// True if the journal was closed, so that no record can be missing.
	Clean bool   `json:"clean"`
	Torn  string `json:"torn,omitempty"` // The unfinished end, if the journal has one.
	// The unfinished end of the journal, if a running program is writing it.
	Writing string `json:"writing,omitempty"`
	Bytes   int64  `json:"bytes"`
}

// A segmentDoc describes a file of a journal.
type segmentDoc struct {
	File     string `json:"file"` // Path relative to STORE.
	Epoch    uint64 `json:"epoch"`
	FirstSeq uint64 `json:"first_record"`
	Records  int    `json:"records"`
	Bytes    int64  `json:"bytes"`
	Build    string `json:"build,omitempty"` // Program and machine that wrote it, if known.
}

// A lockDoc describes the process that has a store open, or that ended without closing the store.
type lockDoc struct {
	Holder  string `json:"holder"`
	Running string `json:"running"` // Values: yes; no; or unknown, for a process on another host.
}

var infoCommand = command{
	use: "info STORE",
	doc: `Summarize a store or save: state, components, snapshots, journal`,
	example: `  ecsdump info D
  ecsdump info game1.save
  ecsdump info D --at snap:milestone --json`,
	run: func(f flags) action {
		var at string
		f.point(&at)
		return withSource(func(s *source) error {
			doc := s.info()
			w, err := s.world(at)
			// After damage, print the readable sections. The error is returned at the end.
			if err != nil && len(doc.Damage) == 0 && !errors.Is(err, persist.ErrCorrupt) {
				return err // Not damage: for example, the point is unknown.
			}
			doc.worldDoc = w
			if err := s.setOpens(doc); err != nil {
				return err
			}
			marks, unread := s.Marks(s.ctx)
			if doc.Marks = len(marks); doc.Marks > 0 {
				// Marks are in commit order.
				doc.newest = marks[doc.Marks-1]
			}
			return errors.Join(err, unread, s.printReport(doc))
		})
	},
}

// world describes the world at a point, without reading values. The state may come from a snapshot.
// So it may be readable even if its record, which has the time, is damaged.
func (s *source) world(at string) (w *worldDoc, err error) {
	err = s.readState(at, func(st *inspect.State) error {
		im := outline(st)
		w = &worldDoc{
			stateDoc: im.doc(), Alive: im.Living, Free: im.Free - im.Living, Retired: st.Indices() - im.Free,
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

// info describes the files of the store. It uses only what was read when the store was opened. So
// it reads no pages and no records.
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

// setOpens sets the members of doc that say whether a program can open the store. It checks
// everything except the component types of the program. For a damaged store, setOpens suggests
// recover if recover can save data.
func (s *source) setOpens(doc *infoDoc) error {
	if s.IsSave() {
		return nil
	}
	refusal := s.Refusal(s.ctx)
	// An interrupt may have ended Refusal before it had a result.
	if s.ctx.Err() != nil {
		return s.ctx.Err()
	}
	opens := refusal == nil
	doc.Opens, doc.Refused = &opens, describe.Unprefixed(refusal)
	// A store of a newer version needs a newer program. It needs no repair.
	if !opens && !errors.Is(refusal, persist.ErrNewer) {
		r, err := repair.Recoverable(s.ctx, s.View)
		doc.Helps = describe.RecoverCommand(s.path, &r, err)
	}
	return s.ctx.Err()
}

func snapshotDocOf(s inspect.SnapshotInfo) snapshotDoc {
	return snapshotDoc{
		Number: s.Number, Label: s.Label, Note: s.Note, File: s.Name, Tick: s.Tick, Seq: s.ID.Seq, Time: describe.Known(s.Time),
		Digest: s.Digest.String(), Bytes: s.Size, Shares: len(s.Files), Error: describe.Unprefixed(s.Err), Build: s.Build,
	}
}

// journal describes the journal.
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
	// So far, Rewound counts all records whose status is known. Subtract the records on the path to
	// the head.
	for e := range log.Ancestors(log.Head) {
		if !e.Lost() && e.ID.Seq >= known {
			j.Rewound--
		}
	}
	// An unfinished end is being written now if a program has the store open. Otherwise a program
	// was killed during the write.
	if t := log.Torn; t != nil && s.InUse() {
		j.Writing = fmt.Sprintf("journal/%s: %d bytes at offset %d", t.File, t.Length, t.Offset)
	} else if t != nil {
		j.Torn = fmt.Sprintf("journal/%s: %d bytes at offset %d: %s", t.File, t.Length, t.Offset, t.Reason)
	}
	return j
}

// String returns j as one line of text.
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

// lockOf describes the process that a lock file names, and whether it is running. Each row has a
// case and the answer:
//
//	the store is in use             running
//	the lock file has no name       nil, because the store was closed cleanly
//	the process was on this host    not running, because a running process would hold the lock
//	all other cases                 unknown, because a lock of another host may be invisible here
func lockOf(holder string, inUse bool) *lockDoc {
	if inUse {
		return &lockDoc{cmp.Or(holder, "an unknown process"), "yes"}
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

// print prints the summary, then a table for each list that is not empty.
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

// print adds the rows of a state.
func (w *worldDoc) print(g *term.Grid) {
	at := w.Place()
	if w.Time != nil {
		at += ", " + timeOrEmpty(w.Time)
	}
	g.Row("state", at)
	g.Row("digest", w.Digest)
	g.Row("entities", fmt.Sprintf("%d alive, %d free, %d retired", w.Alive, w.Free, w.Retired))
}

// journal adds the rows of the journal. An unfinished end does not count as damage.
func (doc *infoDoc) journal(g *term.Grid) {
	g.Row("journal", doc.Journal)
	g.Row("closed", closed(doc))
	if doc.Marks > 0 {
		g.Row("marks", fmt.Sprintf("%d; the newest is mark:%s, tick %d", doc.Marks, doc.newest.Name, doc.newest.Tick))
	}
	// Add a row for each segment whose writer differs from the writer of the segment before it.
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

// snapshots prints a table of the snapshot files. SHARES is the number of files that share pages
// with a snapshot.
func (a *app) snapshots(snapshots []snapshotDoc) {
	a.Line("")
	term.Table(a.Out, snapshots, func(s snapshotDoc) []any {
		return []any{s.Number, s.Label, s.Tick, s.Seq, timeOrEmpty(s.Time), term.Size(s.Bytes), nonZero(s.Shares), cmp.Or(s.Error, shownNote(s.Note))}
	}, ">SNAPSHOT", "NAME", ">TICK", ">RECORD", "TIME", ">SIZE", ">SHARES", "~NOTE")
}

// shownNote returns the note of a snapshot with quotes, or "" for no note.
func shownNote(note string) string {
	if note == "" {
		return ""
	}
	return strconv.Quote(note)
}

// closed returns the row "closed": whether the last program closed the store. If the lock file
// names a program, the row is about this program. Otherwise the end of the journal decides.
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

// timeOrEmpty returns a time as text, or "" if it is unknown.
func timeOrEmpty(t *time.Time) string {
	if t == nil {
		return ""
	}
	return timeText(*t)
}
