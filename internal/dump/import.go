package dump

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/stet-ecs/stet/internal/term"
	"github.com/stet-ecs/stet/persist"
)

// importDoc is what import --json prints.
type importDoc struct {
	Output   string `json:"output"`
	Tick     uint64 `json:"tick"`
	Digest   string `json:"digest"`
	Entities int    `json:"entities"` // Alive.
}

func newImport(a *app) *cobra.Command {
	var out string
	var store, edited bool
	cmd := &cobra.Command{
		Use:   "import FILE -o OUT",
		Short: "Make a save of what export wrote",
		Long: `Make a save, or with --store a store, of what ecsdump export wrote as JSON or NDJSON.
FILE may be - for standard input. The types are in it: the program that made them is
not needed. OUT must not exist yet.

The state must have the digest that the export says. If you changed it on purpose,
say --edited.`,
		Example: `  ecsdump export D | ecsdump import - -o copy.save
  ecsdump import edited.json -o edited.save --edited`,
		Args: positional(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if out == "" {
				return &failure{exitUsage, errors.New("say with -o what to make"), "ecsdump import --help"}
			}
			if _, err := os.Lstat(out); err == nil {
				return occupied(out)
			}
			im, err := importFrom(cmd.Context(), cmd.InOrStdin(), args[0], edited)
			if err != nil {
				return err
			}
			write := im.Save
			if store {
				write = im.SaveStore
			}
			if err := write(cmd.Context(), out); errors.Is(err, fs.ErrExist) {
				return occupied(out)
			} else if err != nil {
				return classify(out, err)
			}
			if a.json {
				return a.document(importDoc{out, im.Tick, im.Digest().String(), im.Alive})
			}
			a.Line("%s: tick %d, %s, digest %v", out, im.Tick, term.Count(im.Alive, "entity", "entities"), im.Digest())
			return nil
		},
	}
	cmd.Flags().StringVarP(&out, "output", "o", "", "the save to make")
	cmd.Flags().BoolVar(&store, "store", false, "make a store: a directory that a program can go on from")
	cmd.Flags().BoolVar(&edited, "edited", false, "the export was changed on purpose: do not compare digests")
	return cmd
}

// importFrom reads the export at path.
func importFrom(ctx context.Context, stdin io.Reader, path string, edited bool) (*persist.Image, error) {
	r, name := stdin, path
	if path == "-" {
		name = "standard input"
	} else {
		f, err := os.Open(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, &failure{exitNotFound, fmt.Errorf("%s: no such file", path), ""}
		}
		if err != nil {
			return nil, &failure{exitSystem, err, ""}
		}
		defer f.Close()
		r = f
	}
	im, err := persist.Import(ctx, bufio.NewReader(r), edited)
	if errors.Is(err, persist.ErrImport) {
		f := &failure{code: exitCorrupt, err: &storeError{name + ": " + unprefixed(err), err}}
		if errors.Is(err, persist.ErrDigest) {
			f.next = command("import", path, "-o", "OUT", "--edited")
		}
		return nil, f
	}
	if err != nil {
		return nil, classify(name, err)
	}
	return im, nil
}
