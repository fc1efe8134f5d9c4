package dump

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/stet-ecs/stet/persist"
)

func newExport(a *app) *cobra.Command {
	var x exporter
	cmd := &cobra.Command{
		Use:   "export STORE [A..B]",
		Short: "Write a state, or what ticks changed, as JSON, NDJSON or CSV",
		Long: `Write everything that a state holds as JSON, or as NDJSON (a JSON value a line).
Nothing is lost: ecsdump import makes a save of it that has the same digest.

CSV is for tables: a file for each component in the directory that -o names, or
one component to standard output with --component. It has a column for each field.

With a range A..B, what each tick on the way from A to B changed is written instead,
a line for each entity or component (in CSV for each field) with old and new values.
That cannot be imported.`,
		Example: `  ecsdump export D > all.json
  ecsdump export D --at 100 --format ndjson -o tick100.ndjson
  ecsdump export D --format csv --component Position
  ecsdump export D 100..200 --format ndjson --component Health`,
		Args: positional(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := x.check(a, args, cmd.Flags().Changed("at")); err != nil {
				return err
			}
			return a.read(cmd.Context(), args[0], func(s *source) error {
				return x.run(cmd.Context(), a, s, args[1:])
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&x.format, "format", "json", "json, ndjson or csv")
	flags.StringVarP(&x.out, "output", "o", "", "a new file to write to, or for csv a new directory; standard output without it")
	flags.StringSliceVar(&x.components, "component", nil, "for csv and ranges: only these components and resources")
	x.at.flag(cmd)
	return cmd
}

// An exporter says what to export, and where to.
type exporter struct {
	format     string
	out        string
	components []string
	at         point
}

// check makes sense of the flags.
func (x *exporter) check(a *app, args []string, at bool) error {
	usage := func(text string) error { return &failure{exitUsage, errors.New(text), "ecsdump export --help"} }
	if a.ndjson {
		x.format = "ndjson"
	}
	isRange := len(args) == 2
	switch {
	case x.format != "json" && x.format != "ndjson" && x.format != "csv":
		return usage(fmt.Sprintf("--format %q is none of json, ndjson, csv", x.format))
	case isRange && at:
		return usage("give either a range or --at")
	case !isRange && x.format != "csv" && len(x.components) > 0:
		return usage("an export that can be imported has all components; --component is for csv and ranges")
	case !isRange && x.format == "csv" && x.out == "" && len(x.components) != 1:
		return usage("csv has a file for each component: give one --component, or a directory with -o")
	}
	return nil
}

func (x *exporter) run(ctx context.Context, a *app, s *source, args []string) error {
	if len(args) > 0 {
		return x.to(a, func() error { return x.changes(ctx, a, s, args[0]) })
	}
	im, err := s.state(ctx, x.at)
	if err != nil {
		return err
	}
	if x.format != "csv" {
		return x.to(a, func() error { return im.Export(ctx, a.Out, x.format == "ndjson") })
	}
	chosen := im.Components
	if len(x.components) > 0 {
		chosen = nil
		for _, name := range x.components {
			c, err := s.component(im, name)
			if err != nil {
				return err
			}
			chosen = append(chosen, c)
		}
	}
	if x.out != "" {
		return x.directory(ctx, chosen)
	}
	return exportCSV(ctx, a.Out, chosen[0])
}

// to calls f, which writes to standard output, with that being the new file.
func (x *exporter) to(a *app, f func() error) error {
	if x.out == "" {
		return f()
	}
	return newFile(x.out, func(w io.Writer) error {
		stdout := a.Writer
		a.Writer = bufio.NewWriter(w)
		defer func() { a.Writer = stdout }()
		return firstError(f(), a.Flush())
	})
}

// newFile makes a file that f writes; there is none if that fails.
func newFile(path string, f func(w io.Writer) error) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if errors.Is(err, os.ErrExist) {
		return occupied(path)
	}
	if err != nil {
		return &failure{exitSystem, err, ""}
	}
	if err := firstError(f(file), file.Close()); err != nil {
		return firstError(err, os.Remove(path))
	}
	return nil
}

// occupied says that an output is there already.
func occupied(path string) error {
	return &failure{exitUsage, fmt.Errorf("%s is there; nothing is overwritten, give a new name", path), ""}
}

// directory writes a CSV file for each component.
func (x *exporter) directory(ctx context.Context, components []*persist.Component) error {
	if err := os.Mkdir(x.out, 0o777); errors.Is(err, os.ErrExist) {
		return occupied(x.out)
	} else if err != nil {
		return &failure{exitSystem, err, ""}
	}
	for _, c := range components {
		err := newFile(x.out+"/"+fileName(c.Name)+".csv", func(w io.Writer) error { return exportCSV(ctx, w, c) })
		if err != nil {
			return err
		}
	}
	return nil
}

// fileName returns name with bytes that have a meaning in paths written %2F.
func fileName(name string) string {
	var b []byte
	for i := range len(name) {
		c := name[i]
		plain := c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c == '-' || c == '.' && i > 0
		if plain {
			b = append(b, c)
		} else {
			b = fmt.Appendf(b, "%%%02X", c)
		}
	}
	return string(b)
}
