package dump

import (
	"errors"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/persist"
)

// schemaDoc is what schema --json prints.
type schemaDoc struct {
	stateDoc
	Components []componentDoc `json:"components"`
}

// A componentDoc describes a component, tag or resource.
type componentDoc struct {
	Name    string     `json:"name"`
	Kind    string     `json:"kind"`  // component, tag or resource.
	Width   int        `json:"width"` // Bytes of a row; -1: rows vary.
	Rows    int        `json:"rows"`
	Rewinds bool       `json:"rewinds"` // It is put back when the world is.
	Layout  string     `json:"layout"`  // In Go's notation.
	Fields  []fieldDoc `json:"fields"`  // Of a struct; else empty.
}

// A fieldDoc describes a field of a struct.
type fieldDoc struct {
	Name string `json:"name"`
	Type string `json:"type"` // In Go's notation.
}

func newSchema(a *app) *cobra.Command {
	var at point
	var asGo bool
	cmd := &cobra.Command{
		Use:   "schema STORE",
		Short: "List components and resources with their layouts",
		Example: `  ecsdump schema D
  ecsdump schema D --go >types.go`,
		Args: positional(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if asGo && a.json {
				return &failure{exitUsage, errors.New("give either --go or --json"), "ecsdump schema --help"}
			}
			return a.read(cmd.Context(), args[0], func(s *source) error {
				im, err := s.state(cmd.Context(), at)
				if err != nil {
					return err
				}
				if a.json {
					return a.document(schemaDocOf(im))
				}
				if asGo {
					return a.goTypes(im)
				}
				return a.schema(im)
			})
		},
	}
	at.flag(cmd)
	cmd.Flags().BoolVar(&asGo, "go", false, "print Go types that have these layouts")
	return cmd
}

func schemaDocOf(im state) schemaDoc {
	doc := schemaDoc{im.doc(), []componentDoc{}}
	for _, c := range im.Components {
		doc.Components = append(doc.Components, componentDocOf(c))
	}
	return doc
}

func componentDocOf(c *persist.Component) componentDoc {
	doc := componentDoc{
		Name: c.Name, Kind: kind(c), Width: c.Layout.Width(), Rows: c.Len(),
		Rewinds: c.Rewinds, Layout: c.Layout.String(), Fields: []fieldDoc{},
	}
	for _, f := range c.Layout.Fields {
		doc.Fields = append(doc.Fields, fieldDoc{f.Name, f.Type.String()})
	}
	return doc
}

func (a *app) schema(im state) error {
	g := a.Grid("COMPONENT", "KIND", ">ROWS", ">BYTES", "LAYOUT")
	for _, c := range im.Components {
		g.Row(c.Name, kind(c), c.Len(), width(c.Layout), c.Layout)
	}
	g.Flush()
	return nil
}

// width returns the bytes of a row for people.
func width(t *layout.Type) string {
	if w := t.Width(); w >= 0 {
		return strconv.Itoa(w)
	}
	return "vary"
}
