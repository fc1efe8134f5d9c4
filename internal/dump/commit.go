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

// This file describes a record of the journal for all commands that list ticks, such as log, tail
// and stats. A record has two parts:
//
//   - An [inspect.Commit] has the number of rows of each component before and after the tick, and
//     the rows that the tick wrote.
//   - An [inspect.Op] is a recorded call: create, destroy, add, remove or clear. Setting a value
//     is not recorded as a call.
//
// A recordDoc counts both by component.

// A recordDoc is a record of the journal: a committed tick.
type recordDoc struct {
	Tick   uint64    `json:"tick"`
	Seq    uint64    `json:"record"`
	Parent uint64    `json:"parent"` // The record before this one on its branch; 0 if none.
	Time   time.Time `json:"time"`   // Clock of the writer.
	Bytes  int       `json:"bytes"`
	standingDoc
	Created    int         `json:"created"` // Number of created entities.
	Destroyed  int         `json:"destroyed"`
	Cleared    int         `json:"cleared"`    // Number of clears of the whole world.
	Components []changeDoc `json:"components"` // Components with changes.
	// With --verbose: the operations in call order.
	Operations []operationDoc `json:"operations,omitempty"`
	// With --patch: the changed values of the components and entities that the filters select.
	Values []rowDoc `json:"values,omitempty"`
	// Names of the marks that the program set on the tick.
	Marks []string `json:"marks,omitempty"`
	// With --verbose: the inputs that the program journaled with the tick.
	Inputs []inputDoc `json:"inputs,omitempty"`
}

// A standingDoc says whether a record led to the newest state.
type standingDoc struct {
	Head bool `json:"head"` // True for the record of the newest state.
	// True if the newest state does not descend from this record.
	Rewound bool `json:"rewound"`
	// True for a record after the newest state. Its state cannot be read because of damage.
	Unreachable bool `json:"unreachable,omitempty"`
}

// A changeDoc describes the changes of a tick to a component or resource.
type changeDoc struct {
	Name  string `json:"name"`
	Added int    `json:"added"`
	// Number of removed rows, including those of destroyed entities and of clears.
	Removed    int `json:"removed"`
	Cleared    int `json:"cleared"` // Number of clears.
	RowsBefore int `json:"rows_before"`
	RowsAfter  int `json:"rows_after"`
	Written    int `json:"written"` // Number of rows that were added, set or moved.
}

// An operationDoc is one recorded call of the program.
type operationDoc struct {
	Op        string `json:"op"` // create, destroy, add, remove or clear.
	Component string `json:"component,omitempty"`
	Entity    string `json:"entity,omitempty"`
}

// A rowDoc is the change of one row in a tick: a component of an entity, or a resource.
type rowDoc struct {
	// Kind of change: add, remove, clear, destroy (of its entity) or set.
	Op        string        `json:"op"`
	Component string        `json:"component"`
	Entity    string        `json:"entity,omitempty"` // Missing for a resource.
	Old       *layout.Value `json:"old,omitempty"`    // Missing if the row did not exist before.
	// Missing if the row does not exist afterwards.
	New *layout.Value `json:"new,omitempty"`
}

// A standing computes whether a record is rewound or unreachable.
type standing struct {
	newest uint64 // The record of the newest state.
	// The oldest record whose status is known, see rewoundFrom.
	known uint64
}

func (s *source) standing() standing { return standing{s.latest(), s.rewoundFrom()} }

// of returns the status of record seq. The parameter onHead is true for the last record of the
// journal and its ancestors. Damage may hide whether a record was rewound. Then the record counts
// as not rewound.
func (s standing) of(seq uint64, onHead bool) standingDoc {
	return standingDoc{seq == s.newest, !onHead && seq != s.newest && seq >= s.known, onHead && seq > s.newest}
}

// commit reads record seq with its operations, and describes it without them. It returns a nil
// commit if the record does not exist, and damage as an error.
func (s *source) commit(seq uint64, in standing) (c *inspect.Commit, ops []inspect.Op, doc recordDoc, err error) {
	commits, err := s.Commits(seq, seq)
	if err != nil || len(commits) == 0 {
		return nil, nil, doc, err
	}
	c = &commits[0]
	if ops, err = c.Ops(); err != nil {
		return nil, nil, doc, err
	}
	n := describe.CountTick(c, ops)
	return c, ops, recordDoc{
		Seq: c.Seq, Tick: c.Tick, Parent: c.Parent, Time: c.Time, Bytes: c.Bytes, Marks: c.Marks,
		standingDoc: in.of(seq, c.OnHead), Created: n.Created, Destroyed: n.Destroyed, Cleared: n.Cleared,
		Components: describe.Listed(n.Components, func(c describe.ComponentCounts) changeDoc {
			return changeDoc{c.Name, c.Added, c.Removed, c.Cleared, c.Before, c.After, c.Written}
		}),
	}, nil
}

// operations returns the documents of ops.
func operations(c *inspect.Commit, ops []inspect.Op) []operationDoc {
	return describe.Listed(ops, func(op inspect.Op) operationDoc {
		return operationDoc{op.Kind.String(), c.Component(op.Component), describe.Holder(op.Entity, op.Kind == raw.OpClear)}
	})
}

// rewound is the printed status of a record that the newest state does not descend from.
const rewound = "rewound"

// note returns the status of a record as a short text, or nothing for a normal record.
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

// parent returns the parent of d, or "" if the parent is the record before d.
func (d recordDoc) parent() string {
	if d.Parent+1 == d.Seq {
		return ""
	}
	return strconv.FormatUint(d.Parent, 10)
}

// changes returns the counts of d on one line: "created 2; Position +2 wrote 3".
func (d recordDoc) changes() string {
	parts := describe.Listed(d.Marks, func(name string) string { return "mark:" + name })
	parts = append(parts, counted("cleared the world %d×", d.Cleared), counted("created %d", d.Created), counted("destroyed %d", d.Destroyed))
	return joined("; ", append(parts, describe.Listed(d.Components, changeDoc.String)...)...)
}

// counted formats n, or returns "" if n is 0.
func counted(format string, n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(format, n)
}

// String returns the counts of c: "Position +2 -1 cleared 1× wrote 3".
func (c changeDoc) String() string {
	return joined(" ", c.Name, counted("+%d", c.Added), counted("-%d", c.Removed), counted("cleared %d×", c.Cleared), counted("wrote %d", c.Written))
}

// String returns o on one line: "add Position 12v3".
func (o operationDoc) String() string {
	return joined(" ", o.Op, o.Component, o.Entity)
}

// setOp is the op of a row with a changed value. The journal records no operation for such a
// change.
const setOp = "set"

// filterOps are the words that --op accepts.
var filterOps = []string{"create", "destroy", "add", "remove", "clear", setOp}

// An inputDoc is an input that the program journaled with a tick.
type inputDoc struct {
	Name string `json:"name"`
	Data []byte `json:"data"` // Encoded as base64.
}

// String returns i on one line: as text if the data is text, otherwise in hexadecimal.
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
