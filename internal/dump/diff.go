package dump

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist"
)

// errDiffer ends diff with the status of states that are not the same. It is
// no news by then.
var errDiffer = errors.New("the states differ")

func newDiff(a *app) *cobra.Command {
	var d differ
	cmd := &cobra.Command{
		Use:   "diff STORE [A [B] | A..B | STORE2]",
		Short: "Show how two states differ, in one store or in two",
		Long: `Show what is different in state B, as against A: entities, components field by
field, resources, types, and how many rows lie in another order.

  ecsdump diff D             what the newest tick changed
  ecsdump diff D 100         tick 100 and the newest state
  ecsdump diff D 100 200     two ticks; also 100..200
  ecsdump diff D E           two stores or saves, each at its newest state
  ecsdump diff D E --at 100  both at tick 100; --at2 is for the second one
  ecsdump diff D E --first   at the first tick after which they differ

Lines begin with + (only in B), - (only in A), ~ (another value) or > (another
order). Values are compared by their bytes: 0 and -0 differ, as do two NaNs that
are not the same. An argument that can be a point in time is one; write ./100 for
a file of that name.

Exit status: 0 the states hold the same, 1 they differ.`,
		Example: `  ecsdump diff D mark:start..@latest --stat
  ecsdump diff D 100 200 --component Position --limit 0
  ecsdump diff D slot1.save
  ecsdump diff server client --first`,
		Args: positional(1, 3),
		RunE: func(cmd *cobra.Command, args []string) error {
			return d.run(cmd.Context(), a, args)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&d.at, "at", "", "point in time of the stores; with --at2 of the first one")
	flags.StringVar(&d.at2, "at2", "", "point in time of the second store")
	flags.StringSliceVar(&d.components, "component", nil, "only these components and resources (a comma between, or the flag again)")
	flags.StringSliceVar(&d.entities, "entity", nil, "only these entities")
	flags.BoolVar(&d.stat, "stat", false, "only count what differs, by component")
	flags.BoolVar(&d.first, "first", false, "compare the histories, and show the first tick after which they differ")
	flags.BoolVar(&d.order, "order", false, "list also what only lies in another row")
	d.limit.flag(cmd, 100, "differences")
	return cmd
}

// A differ says what to compare, and how much of it to show.
type differ struct {
	at, at2     string
	components  []string
	entities    []string
	stat, order bool
	first       bool
	limit       limit

	only map[ecs.Entity]bool // From entities; nil: all.
}

// A diffSide is one of the two states.
type diffSide struct {
	*source
	seq  uint64
	tick uint64
}

func (s diffSide) String() string {
	return fmt.Sprintf("%s at tick %d, record %d", s.path, s.tick, s.seq)
}

func (d *differ) run(ctx context.Context, a *app, args []string) error {
	for _, text := range d.entities {
		e, err := parseEntity(args[0], text)
		if err != nil {
			return err
		}
		if d.only == nil {
			d.only = map[ecs.Entity]bool{}
		}
		d.only[e] = true
	}
	ends := diffEnds(args)
	return a.read(ctx, args[0], func(s *source) error {
		if ends.store == "" {
			return d.compare(ctx, a, s, ends.a, s, ends.b)
		}
		return a.read(ctx, ends.store, func(t *source) error {
			at2 := d.at2
			if at2 == "" {
				at2 = d.at
			}
			return d.compare(ctx, a, s, d.at, t, at2)
		})
	})
}

// ends are what the arguments of diff name.
type ends struct {
	a, b  string // Points of the one store.
	store string // Else the second one.
}

func diffEnds(args []string) ends {
	switch {
	case len(args) == 1:
		return ends{a: "@latest~1"}
	case len(args) == 3:
		return ends{a: args[1], b: args[2]}
	}
	if first, last, ok := strings.Cut(args[1], ".."); ok && (isPoint(first) || first == "") && (isPoint(last) || last == "") {
		if first == "" {
			first = "@first"
		}
		return ends{a: first, b: last}
	}
	if isPoint(args[1]) { // After ranges: a name may hold dots, as in snap:2..9.
		return ends{a: args[1]}
	}
	return ends{store: args[1]}
}

// isPoint reports whether text is written like a point in time, not like a path.
func isPoint(text string) bool {
	text, _, _ = strings.Cut(text, "~")
	digits := strings.Trim(text, "0123456789") == ""
	kind, _, ok := strings.Cut(text, ":")
	return text != "" && (digits || text[0] == '@' || ok && strings.Trim(kind, "abcdefghijklmnopqrstuvwxyz") == "" && kind != "")
}

// compare compares t at b with s at a.
func (d *differ) compare(ctx context.Context, a *app, s *source, from string, t *source, to string) error {
	older, err := s.Resolve(from)
	if err != nil {
		return classify(s.path, err)
	}
	newer, err := t.Resolve(to)
	if err != nil {
		return classify(t.path, err)
	}
	var first *firstDoc
	if d.first {
		if first, err = d.diverge(ctx, s, older, t, newer); err != nil {
			return err
		}
		if first.First == nil {
			return first.print(a)
		}
		older, newer = first.First.Old, first.First.New
	}
	diff, err := persist.DiffViews(ctx, s.View, older, t.View, newer)
	if err != nil {
		return err
	}
	if err := d.filter(s, diff); err != nil {
		return err
	}
	sides := [2]diffSide{{s, older, diff.OldTick}, {t, newer, diff.NewTick}}
	if a.json {
		err = d.json(a, sides, diff, first)
	} else {
		err = errors.Join(first.print(a), d.print(a, sides, diff))
	}
	if err == nil && !diff.Same() {
		err = &failure{exitProblem, errDiffer, ""}
	}
	return err
}

// filter takes out of diff what is not asked for.
func (d *differ) filter(s *source, diff *persist.Diff) error {
	if len(d.components) > 0 {
		if err := d.filterComponents(s, diff); err != nil {
			return err
		}
	}
	if d.only == nil {
		return nil
	}
	others := func(e ecs.Entity) bool { return !d.only[e] }
	diff.Schema = nil
	diff.Registry.Created = slices.DeleteFunc(diff.Registry.Created, others)
	diff.Registry.Destroyed = slices.DeleteFunc(diff.Registry.Destroyed, others)
	diff.Registry.Moved = slices.DeleteFunc(diff.Registry.Moved, func(m persist.EntityMove) bool { return others(m.Entity) })
	diff.Registry.Free = 0
	for _, c := range diff.Components {
		c.Rows = slices.DeleteFunc(c.Rows, func(r persist.RowDiff) bool { return others(r.Entity) })
	}
	return nil
}

func (d *differ) filterComponents(s *source, diff *persist.Diff) error {
	var known []string
	for _, c := range diff.Components {
		known = append(known, c.Name)
	}
	for _, name := range d.components {
		if !slices.Contains(known, name) {
			return s.noComponent(name, known)
		}
	}
	diff.Registry = persist.RegistryDiff{}
	diff.Components = slices.DeleteFunc(diff.Components, func(c *persist.ComponentDiff) bool { return !slices.Contains(d.components, c.Name) })
	diff.Schema = slices.DeleteFunc(diff.Schema, func(c persist.SchemaDiff) bool { return !slices.Contains(d.components, c.Component) })
	return nil
}

// A difference is one thing that differs: an entity, or its row of a component.
type difference struct {
	entity    ecs.Entity
	change    string                 // created, destroyed, added, removed, changed or moved.
	component *persist.ComponentDiff // nil: the entity itself.
	row       persist.RowDiff
}

// differences returns what differs: resources, then entity by entity, each with
// what became of it first. What only moved is left out unless moved is set.
func differences(diff *persist.Diff, moved bool) []difference {
	var all []difference
	for _, e := range diff.Registry.Destroyed {
		all = append(all, difference{entity: e, change: "destroyed"})
	}
	for _, e := range diff.Registry.Created {
		all = append(all, difference{entity: e, change: "created"})
	}
	if moved {
		for _, m := range diff.Registry.Moved {
			all = append(all, difference{entity: m.Entity, change: "moved", row: persist.RowDiff{OldRow: m.OldRow, NewRow: m.NewRow}})
		}
	}
	for _, c := range diff.Components {
		for i := range c.Rows {
			if change := changeOf(c.Rows[i]); moved || change != "moved" {
				all = append(all, difference{c.Rows[i].Entity, change, c, c.Rows[i]})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b difference) int {
		return cmp.Or(cmp.Compare(a.order(), b.order()), cmp.Compare(a.entity.Index(), b.entity.Index()), cmp.Compare(a.entity.Generation(), b.entity.Generation()))
	})
	return all
}

// order puts resources before entities.
func (x difference) order() int {
	if x.component != nil && x.component.Resource {
		return 0
	}
	return 1
}

func changeOf(r persist.RowDiff) string {
	switch {
	case r.Added():
		return "added"
	case r.Removed():
		return "removed"
	case r.Changed:
		return "changed"
	}
	return "moved"
}
