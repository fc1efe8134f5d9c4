package dump

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/internal/describe"
	"github.com/stet-ecs/stet/internal/term"
	"github.com/stet-ecs/stet/persist/inspect"
)

// How a record of the journal is described, for all commands that list ticks: log and tail print
// these documents, stats has the busiest of them, and who looks for the death of an entity reads
// operations alone.
//
//	inspect.Commit   rows by component: how many there were, are, and were written
//	inspect.Op       the calls that made it: create, destroy, add, remove, clear; a set is none
//	recordDoc        both, counted by component

// A recordDoc is a record of the journal: a tick that was committed.
type recordDoc struct {
	Tick   uint64    `json:"tick"`
	Seq    uint64    `json:"record"`
	Parent uint64    `json:"parent"` // The record that it continues; 0: none.
	Time   time.Time `json:"time"`   // By the clock of the writer.
	Bytes  int       `json:"bytes"`
	standingDoc
	Created    int            `json:"created"` // Entities.
	Destroyed  int            `json:"destroyed"`
	Cleared    int            `json:"cleared"`              // How many times the whole world was.
	Components []changeDoc    `json:"components"`           // Those that changed.
	Operations []operationDoc `json:"operations,omitempty"` // With --verbose: in the order of the calls.
	Values     []rowDoc       `json:"values,omitempty"`     // With --patch: of the components and entities that the filters name.
	Marks      []string       `json:"marks,omitempty"`      // What the program called the tick.
	Inputs     []inputDoc     `json:"inputs,omitempty"`     // With --verbose: what it journaled with it.
}

// A standingDoc says where a record is in the tree of the journal.
type standingDoc struct {
	Head        bool `json:"head"`                  // It leads to the newest state.
	Rewound     bool `json:"rewound"`               // The newest state does not come from it.
	Unreachable bool `json:"unreachable,omitempty"` // It comes after the newest state, and damage hides its own.
}

// A changeDoc says what a tick did to a component or resource.
type changeDoc struct {
	Name       string `json:"name"`
	Added      int    `json:"added"`
	Removed    int    `json:"removed"` // Also those of destroyed entities, and those that a clear took.
	Cleared    int    `json:"cleared"` // How many times.
	RowsBefore int    `json:"rows_before"`
	RowsAfter  int    `json:"rows_after"`
	Written    int    `json:"written"` // Rows that were added, set or moved.
}

// An operationDoc is one call.
type operationDoc struct {
	Op        string `json:"op"` // create, destroy, add, remove or clear.
	Component string `json:"component,omitempty"`
	Entity    string `json:"entity,omitempty"`
}

// A rowDoc is what a tick made of a component of an entity, or of a resource.
type rowDoc struct {
	Op        string        `json:"op"` // add, remove, clear, destroy (of its entity) or set.
	Component string        `json:"component"`
	Entity    string        `json:"entity,omitempty"` // None: it is a resource.
	Old       *layout.Value `json:"old,omitempty"`    // None: there was none.
	New       *layout.Value `json:"new,omitempty"`    // None: there is none any more.
}

// A standing tells where records are in the tree of the journal.
type standing struct {
	newest uint64 // The record of the newest state.
	known  uint64 // From this record on, it is known which were rewound.
}

// standing returns the standing of the records of s, as its journal is now.
func (s *source) standing() standing { return standing{s.latest(), s.rewoundFrom()} }

// of describes record seq. With onHead, it is on the way to the record that the journal ends with. A
// record of which it is not known whether it was rewound counts as not rewound.
func (s standing) of(seq uint64, onHead bool) standingDoc {
	return standingDoc{seq == s.newest, !onHead && seq != s.newest && seq >= s.known, onHead && seq > s.newest}
}

// commit reads record seq: what it says, its operations, and how it is described. It is nil if there is
// no such record. Damage is the error.
func (s *source) commit(seq uint64, in standing) (c *inspect.Commit, ops []inspect.Op, doc recordDoc, err error) {
	commits, err := s.Commits(seq, seq)
	if err != nil || len(commits) == 0 {
		return nil, nil, doc, err
	}
	c = &commits[0]
	if ops, err = c.Ops(); err != nil {
		return nil, nil, doc, err
	}
	doc = recordDocOf(c, ops)
	doc.standingDoc = in.of(seq, c.OnHead)
	return c, ops, doc, nil
}

// recordDocOf describes c, without its operations and its place in the tree.
func recordDocOf(c *inspect.Commit, ops []inspect.Op) recordDoc {
	n := describe.CountTick(c, ops)
	return recordDoc{
		Seq: c.Seq, Tick: c.Tick, Parent: c.Parent, Time: c.Time, Bytes: c.Bytes, Marks: c.Marks,
		Created: n.Created, Destroyed: n.Destroyed, Cleared: n.Cleared,
		Components: describe.Listed(n.Components, func(c describe.ComponentCounts) changeDoc {
			return changeDoc{c.Name, c.Added, c.Removed, c.Cleared, c.Before, c.After, c.Written}
		}),
	}
}

var opNames = map[raw.OpKind]string{
	raw.OpCreate: "create", raw.OpDestroy: "destroy", raw.OpAdd: "add", raw.OpRemove: "remove", raw.OpClear: "clear",
}

// operations describes ops one by one.
func operations(c *inspect.Commit, ops []inspect.Op) []operationDoc {
	return describe.Listed(ops, func(op inspect.Op) operationDoc {
		return operationDoc{opNames[op.Kind], c.Component(op.Component), describe.Holder(op.Entity, op.Kind == raw.OpClear)}
	})
}

// rewound is the note beside a record that the newest state does not come from.
const rewound = "rewound"

// note says where a record is in the tree, if that is worth a word.
func (d standingDoc) note() term.Styled {
	switch {
	case d.Head:
		return term.Current.Of("head")
	case d.Rewound:
		return term.Faint.Of(rewound)
	case d.Unreachable:
		return term.Faint.Of("unreachable")
	}
	return term.Styled{}
}

// parent returns the record that d continues, if that is not the one before it.
func (d recordDoc) parent() string {
	if d.Parent+1 == d.Seq {
		return ""
	}
	return strconv.FormatUint(d.Parent, 10)
}

// changes returns what d counts on one line: "created 2; Position +2 wrote 3".
func (d recordDoc) changes() string {
	parts := describe.Listed(d.Marks, func(name string) string { return "mark:" + name })
	parts = append(parts, counted("cleared the world %d×", d.Cleared), counted("created %d", d.Created), counted("destroyed %d", d.Destroyed))
	return joined("; ", append(parts, describe.Listed(d.Components, changeDoc.String)...)...)
}

// counted returns n as format has it, or "" for nothing.
func counted(format string, n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(format, n)
}

// String returns what c counts: "Position +2 -1 cleared 1× wrote 3".
func (c changeDoc) String() string {
	return joined(" ", c.Name, counted("+%d", c.Added), counted("-%d", c.Removed), counted("cleared %d×", c.Cleared), counted("wrote %d", c.Written))
}

// String returns o on one line: "add Position 12v3".
func (o operationDoc) String() string {
	return joined(" ", o.Op, o.Component, o.Entity)
}

// setOp is the op of a row that has another value than before the tick. A tick lists no
// operation for that.
const setOp = "set"

// filterOps are what --op takes.
var filterOps = []string{"create", "destroy", "add", "remove", "clear", setOp}

// An inputDoc is what the program journaled with a tick.
type inputDoc struct {
	Name string `json:"name"`
	Data []byte `json:"data"` // In base64.
}

// String returns i on one line: as text if it is text, else in hexadecimal digits.
func (i inputDoc) String() string {
	const shown = 64
	data, more := i.Data, ""
	if len(data) > shown {
		data, more = data[:shown], "… of "+term.Size(int64(len(i.Data)))
	}
	text := hex.EncodeToString(data)
	if utf8.Valid(i.Data) {
		text = strconv.Quote(string(data))
	}
	return fmt.Sprintf("input %s %s%s", i.Name, text, more)
}
