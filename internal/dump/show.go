package dump

import (
	"context"
	"errors"
	"iter"

	"github.com/spf13/cobra"

	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/internal/term"
)

// resourcesDoc is what show --resources --json prints.
type resourcesDoc struct {
	stateDoc
	Resources []resourceDoc `json:"resources"`
}

// A resourceDoc is a resource with its value.
type resourceDoc struct {
	Name  string       `json:"name"`
	Value layout.Value `json:"value"` // null: it was registered but not saved yet.
}

func newShow(a *app) *cobra.Command {
	var e shower
	var resources bool
	cmd := &cobra.Command{
		Use:   "show STORE [ENTITY]",
		Short: "Show one entity with all fields, or the resources",
		Long: `Show one entity with all fields: which tick wrote each component last, and who
refers to it.

Only the pages of the entity are read, and the ticks behind the nearest snapshot.
For the last writers, up to 64 MiB of older ticks are read as well; what they do not
tell was written "at or before" the oldest of them: ecsdump blame looks at all, and
field by field. For those who refer to it, the values of components that can hold
entities are read. With --brief neither is done, and nothing more is read.`,
		Example: `  ecsdump show D 12v3
  ecsdump show D 12v3 --at @latest~10 --brief
  ecsdump show D --resources`,
		Args: positional(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if resources != (len(args) == 1) {
				return &failure{exitUsage, errors.New("give either an entity or --resources"), "ecsdump show --help"}
			}
			if resources {
				return a.read(cmd.Context(), args[0], func(s *source) error { return a.showResources(cmd.Context(), s, e.at) })
			}
			entity, err := parseEntity(args[0], args[1])
			if err != nil {
				return err
			}
			return a.read(cmd.Context(), args[0], func(s *source) error { return e.run(cmd.Context(), a, s, entity) })
		},
	}
	cmd.Flags().BoolVar(&resources, "resources", false, "show the resources instead of an entity")
	cmd.Flags().BoolVar(&e.brief, "brief", false, "neither who wrote it last nor who refers to it")
	e.at.flag(cmd)
	cmd.Flags().UintVar((*uint)(&e.limit), "limit", 10, "print at most this many that refer to it; 0: all")
	return cmd
}

func (a *app) showResources(ctx context.Context, s *source, at point) error {
	im, err := s.state(ctx, at)
	if err != nil {
		return err
	}
	doc := resourcesDoc{im.doc(), []resourceDoc{}}
	for _, c := range im.Components {
		if !c.Resource {
			continue
		}
		r := resourceDoc{Name: c.Name}
		if c.Len() > 0 {
			if r.Value, err = c.Value(0); err != nil {
				return err
			}
		}
		doc.Resources = append(doc.Resources, r)
	}
	if a.json {
		return a.document(doc)
	}
	if len(doc.Resources) == 0 {
		a.Line("there are no resources at %v", im)
		return nil
	}
	g := a.Grid("RESOURCE", "FIELD", "VALUE")
	for _, r := range doc.Resources {
		printFields(g, r.Value, r.Name)
	}
	g.Flush()
	return nil
}

// fields adds a row for each field of v, structs inside taken apart. The first
// row begins with the cells of first.
func printFields(g *term.Grid, v layout.Value, first ...any) {
	for field, text := range fields("", v) {
		g.Row(append(first, field, text)...)
		for i := range first {
			first[i] = ""
		}
	}
}

// fields iterates over the fields of v with their paths and values.
func fields(path string, v layout.Value) iter.Seq2[string, string] {
	return func(yield func(field, text string) bool) {
		for field, leaf := range leaves(path, v) {
			text := leaf.String()
			if leaf.Kind() == layout.Struct {
				text = "" // It has no fields.
			}
			if !yield(field, text) {
				return
			}
		}
	}
}

// leaves iterates over the fields of v with their paths, structs inside taken apart.
func leaves(path string, v layout.Value) iter.Seq2[string, layout.Value] {
	return func(yield func(string, layout.Value) bool) { yieldLeaves(path, v, yield) }
}

func yieldLeaves(path string, v layout.Value, yield func(string, layout.Value) bool) bool {
	if v.Kind() != layout.Struct || v.Len() == 0 {
		return yield(path, v)
	}
	if path != "" {
		path += "."
	}
	for i, f := range v.Type().Fields {
		if !yieldLeaves(path+f.Name, v.Index(i), yield) {
			return false
		}
	}
	return true
}
