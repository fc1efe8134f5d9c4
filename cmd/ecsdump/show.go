package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/layout"
)

// showDoc is what show --json prints of an entity.
type showDoc struct {
	stateDoc
	Row int `json:"row"` // Among the entities alive, as they lie.
	entityDoc
}

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
	var at point
	var resources bool
	cmd := &cobra.Command{
		Use:   "show STORE [ENTITY]",
		Short: "Show one entity with all fields, or the resources",
		Args:  positional(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if resources != (len(args) == 1) {
				return &failure{exitUsage, errors.New("give either an entity or --resources"), "ecsdump show --help"}
			}
			if resources {
				return a.read(cmd.Context(), args[0], func(s *source) error { return a.showResources(cmd.Context(), s, at) })
			}
			e, err := ecs.ParseEntity(args[1])
			if err != nil {
				err = fmt.Errorf("%q is not an entity; write INDEXvGENERATION, as in 12v3", args[1])
				return &failure{exitUsage, err, command("ls", args[0])}
			}
			return a.read(cmd.Context(), args[0], func(s *source) error { return a.showEntity(cmd.Context(), s, at, e) })
		},
	}
	cmd.Flags().BoolVar(&resources, "resources", false, "show the resources instead of an entity")
	at.flag(cmd)
	return cmd
}

func (a *app) showEntity(ctx context.Context, s *source, at point, e ecs.Entity) error {
	im, err := s.state(ctx, at)
	if err != nil {
		return err
	}
	if !im.IsAlive(e) {
		return s.notAlive(ctx, im, e)
	}
	values, err := valuesOf(im, e)
	if err != nil {
		return err
	}
	row := im.rowOf(e.Index())
	if a.json {
		return a.document(showDoc{im.doc(), row, entityDoc{e.String(), values}})
	}
	a.line("%v: alive at %v; row %d of %d", e, im, row, im.Alive)
	if len(values) == 0 {
		a.line("it has no components")
		return nil
	}
	g := a.grid("COMPONENT", ">ROW", "FIELD", "VALUE")
	for _, v := range values {
		g.fields(v.Value, v.Name, v.Row)
	}
	return g.end()
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
		a.line("there are no resources at %v", im)
		return nil
	}
	g := a.grid("RESOURCE", "FIELD", "VALUE")
	for _, r := range doc.Resources {
		g.fields(r.Value, r.Name)
	}
	return g.end()
}

// fields adds a row for each field of v, structs inside taken apart. The first
// row begins with the cells of first.
func (g *grid) fields(v layout.Value, first ...any) {
	for field, text := range fields("", v) {
		g.row(append(first, field, text)...)
		for i := range first {
			first[i] = ""
		}
	}
}

// fields iterates over the fields of v with their paths and values.
func fields(path string, v layout.Value) func(yield func(field, text string) bool) {
	return func(yield func(field, text string) bool) { yieldFields(path, v, yield) }
}

func yieldFields(path string, v layout.Value, yield func(field, text string) bool) bool {
	if v.Kind() != layout.Struct {
		return yield(path, v.String())
	}
	if v.Len() == 0 {
		return yield(path, "")
	}
	if path != "" {
		path += "."
	}
	for i, f := range v.Type().Fields {
		if !yieldFields(path+f.Name, v.Index(i), yield) {
			return false
		}
	}
	return true
}
