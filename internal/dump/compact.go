package dump

import (
	"strings"

	"github.com/stet-ecs/stet/internal/describe"
	"github.com/stet-ecs/stet/internal/term"
	"github.com/stet-ecs/stet/persist/repair"
)

// The command compact writes a new store with one state as a full snapshot, and the requested part
// of the history before this state. The report lists what the new store lacks, so that users see
// the losses before they delete the old store.

// compactDoc is what compact --json prints.
type compactDoc struct {
	Out   string   `json:"out"`    // Path of the new store or save.
	Tick  uint64   `json:"tick"`   // Tick of the last state.
	Seq   uint64   `json:"record"` // Record of the last state in the new store.
	From  uint64   `json:"from"`   // The oldest tick of the history.
	Ticks int      `json:"ticks"`  // Number of ticks after From.
	Names []string `json:"names"`  // Named snapshots in the new store.

	DroppedTicks int `json:"dropped_ticks"` // Number of ticks that were left out.
	// Number of left-out ticks on rewound branches.
	DroppedRewound int      `json:"dropped_rewound"`
	DroppedNames   []string `json:"dropped_names"` // Named snapshots that were left out.

	Before int64 `json:"before"` // Size of STORE in bytes.
	After  int64 `json:"after"`  // Size of OUT in bytes.
}

var compactCommand = command{
	use: "compact STORE -o OUT",
	doc: `Write a state, and selected ticks and snapshots, to a new store

Compact reads a store and writes a smaller one. The new store has a full snapshot of
the newest state, or of the state of --at. It also has the named snapshots, and with
--keep the ticks from that point on. Rewound branches are left out. STORE is only read.

If STORE is a save, compact writes a save. A compressed save stays compressed;
--compress compresses any other save.`,
	example: `  ecsdump compact D -o D.small
  ecsdump compact D -o D.week --keep 1000..
  ecsdump compact D -o D.old --at snap:milestone --no-names
  ecsdump compact game1.save -o game1.small --compress`,
	run: func(f flags) action {
		var out string
		var o repair.CompactOptions
		var at string
		f.output(&out, "directory or file to write; it must not exist")
		f.StringVar(&o.Keep, "keep", "", "keep the ticks from this point on; write A or A..")
		f.BoolVar(&o.NoNames, "no-names", false, "leave out named snapshots")
		f.BoolVar(&o.Compress, "compress", false, "compress the save; snapshots of stores cannot be compressed")
		f.point(&at)
		return func(c *call) error {
			if out == "" {
				return fail(exitUsage, describe.Command("compact", c.args[0], "-o", c.args[0]+".compact"), "give the output with -o")
			}
			// The history in the new store always ends with the state of --at. So "A.." means the
			// same as "A".
			o.At, o.Keep = at, strings.TrimSuffix(o.Keep, "..")
			return c.read(c.args[0], func(s *source) error {
				if o.Compress && !s.IsSave() {
					return c.misused("--compress is for saves, and %s is a store", s.path)
				}
				r, err := repair.Compact(s.ctx, s.View, out, o)
				if err != nil {
					return err
				}
				return s.printReport(&compactDoc{
					out, r.Tick, r.Seq, r.From, r.Ticks, append([]string{}, r.Names...),
					r.DroppedTicks, r.DroppedRewound, append([]string{}, r.DroppedNames...), r.Before, r.After,
				})
			})
		}
	},
}

// print prints what the new store has, and what it lacks.
func (d *compactDoc) print(a *app) {
	a.Line("kept: tick %d, record %d", d.Tick, d.Seq)
	a.printKept(d.Ticks, d.From, d.Names)
	if d.DroppedTicks > 0 {
		a.Line("left out: %s, %d of them rewound", term.Count(d.DroppedTicks, "tick", "ticks"), d.DroppedRewound)
	}
	a.printDropped(d.DroppedNames)
	a.Line("written: %s, %s instead of %s", d.Out, term.Size(d.After), term.Size(d.Before))
}

// printKept prints the number of ticks and the named snapshots in a new store.
func (a *app) printKept(ticks int, from uint64, names []string) {
	if ticks > 0 {
		a.Line("history: %s after tick %d", term.Count(ticks, "tick", "ticks"), from)
	}
	if len(names) > 0 {
		a.Line("named snapshots: %s", strings.Join(names, ", "))
	}
}

// printDropped prints the named snapshots that a new store lacks.
func (a *app) printDropped(names []string) {
	if len(names) > 0 {
		a.Line("left out: snap:%s", strings.Join(names, ", snap:"))
	}
}
