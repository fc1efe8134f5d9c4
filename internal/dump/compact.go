package dump

import (
	"errors"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stet-ecs/stet/internal/term"
	"github.com/stet-ecs/stet/persist"
)

// compactDoc is what compact --json prints.
type compactDoc struct {
	Out   string   `json:"out"`   // What was written.
	Tick  uint64   `json:"tick"`  // Of the state it leads to.
	Seq   uint64   `json:"seq"`   // Of its record there.
	From  uint64   `json:"from"`  // The oldest tick from which on it has the history.
	Ticks int      `json:"ticks"` // How many it has behind that one.
	Names []string `json:"names"` // Its snapshots with names.

	DroppedTicks   int      `json:"dropped_ticks"`   // Those it lacks,
	DroppedRewound int      `json:"dropped_rewound"` // of rewound branches among them.
	DroppedNames   []string `json:"dropped_names"`   // Snapshots with names that it lacks.

	Before int64 `json:"before"` // Bytes of STORE,
	After  int64 `json:"after"`  // and of OUT.
}

// A compaction is a call of compact.
type compaction struct {
	*app
	out string
	persist.CompactOptions
}

func newCompact(a *app) *cobra.Command {
	c := &compaction{app: a}
	var at point
	cmd := &cobra.Command{
		Use:   "compact STORE -o OUT",
		Short: "Write a state, and what is wanted of the way to it, to a new store",
		Long: `Compact writes a new store, or for a save a new save, with the newest state as a full
snapshot, or with that of --at. Of the ticks before it those behind --keep are kept, without
rewound branches, and so are snapshots with names. STORE is only read.`,
		Example: `  ecsdump compact D -o D.small
  ecsdump compact D -o D.week --keep 1000..
  ecsdump compact D -o D.old --at snap:milestone --no-names`,
		Args: positional(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if c.out == "" {
				return &failure{exitUsage, errors.New("give the name of what to write with -o"), command("compact", args[0], "-o", args[0]+".compact")}
			}
			c.At, c.Keep = at.at, strings.TrimSuffix(c.Keep, "..")
			return a.read(cmd.Context(), args[0], func(s *source) error {
				report, err := s.Compact(cmd.Context(), c.out, c.CompactOptions)
				if errors.Is(err, fs.ErrExist) {
					return &failure{exitUsage, errors.New(unprefixed(err)), ""}
				}
				if err != nil {
					return err
				}
				return c.print(report)
			})
		},
	}
	cmd.Flags().StringVarP(&c.out, "output", "o", "", "directory or file to write; nothing may have that name")
	cmd.Flags().StringVar(&c.Keep, "keep", "", "keep the ticks from this point on (A.. or A)")
	cmd.Flags().BoolVar(&c.NoNames, "no-names", false, "leave out snapshots with names")
	at.flag(cmd)
	return cmd
}

func (c *compaction) print(r persist.CompactReport) error {
	if c.json {
		return c.document(compactDoc{
			c.out, r.Tick, r.Seq, r.From, r.Ticks, append([]string{}, r.Names...),
			r.DroppedTicks, r.DroppedRewound, append([]string{}, r.DroppedNames...), r.Before, r.After,
		})
	}
	c.Line("kept: tick %d, record %d", r.Tick, r.Seq)
	if r.Ticks > 0 {
		c.Line("history: %s behind tick %d", term.Count(r.Ticks, "tick", "ticks"), r.From)
	}
	if len(r.Names) > 0 {
		c.Line("named snapshots: %s", strings.Join(r.Names, ", "))
	}
	if r.DroppedTicks > 0 {
		c.Line("left out: %s, %d of them rewound", term.Count(r.DroppedTicks, "tick", "ticks"), r.DroppedRewound)
	}
	c.left(0, r.DroppedNames)
	c.Line("written: %s, %s instead of %s", c.out, term.Size(r.After), term.Size(r.Before))
	return nil
}
