package dump

import (
	"bufio"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/stet-ecs/stet/internal/describe"
	"github.com/stet-ecs/stet/internal/term"
	"github.com/stet-ecs/stet/persist/inspect"
	"github.com/stet-ecs/stet/persist/repair"
)

// The command import creates a save or a store from an export in JSON or NDJSON. Unreadable input
// counts as damage. For a wrong digest, the error suggests the flag that accepts it.

// importDoc is what import --json prints.
type importDoc struct {
	Output   string `json:"output"`
	Tick     uint64 `json:"tick"`
	Digest   string `json:"digest"`
	Entities int    `json:"entities"` // Number of entities that are alive.
}

var importCommand = command{
	use: "import FILE -o OUT",
	doc: `Make a save from an export

Make a save, or with --store a store, from the JSON or NDJSON that ecsdump export wrote.
If FILE is -, it is standard input. The export has the types, so the program that wrote
the store is not needed. OUT must not exist.

Import reports an error if the digest of the new state differs from the digest in the
export. Use --edited for an export that you changed.`,
	example: `  ecsdump export D | ecsdump import - -o copy.save
  ecsdump import edited.json -o edited.save --edited`,
	run: func(f flags) action {
		var out string
		var store, edited bool
		f.output(&out, "the save to write")
		f.BoolVar(&store, "store", false, "write a store: a directory that a program can open and continue")
		f.BoolVar(&edited, "edited", false, "do not compare digests, because the export was changed")
		return func(c *call) error {
			if out == "" {
				return c.misused("give the output with -o")
			}
			if _, err := os.Lstat(out); err == nil { // Fail early, before reading the export.
				return outputExists(out)
			}
			im, err := importFrom(c.ctx, c.flags.cmd.InOrStdin(), c.args[0], edited)
			if err != nil {
				return err
			}
			if err := c.writeImage(im, out, store); err != nil {
				return err
			}
			return c.printReport(&importDoc{out, im.Tick, im.Digest().String(), im.Living})
		}
	},
}

// writeImage writes im to out, which is a new save or store.
func (c *call) writeImage(im *inspect.Image, out string, store bool) error {
	write := repair.SaveImage
	if store {
		write = repair.SaveStore
	}
	if err := write(c.ctx, im, out); errors.Is(err, fs.ErrExist) {
		return outputExists(out)
	} else if err != nil {
		return classify(out, err)
	}
	return nil
}

func (d *importDoc) print(a *app) {
	a.Line("%s: tick %d, %s, digest %s", d.Output, d.Tick, term.Count(d.Entities, "entity", "entities"), d.Digest)
}

// importFrom reads the export at path. Its errors are:
//
//	the file cannot be opened       not found, or a failure of the system
//	no export, or a truncated one   damage, with the line and the field
//	wrong digest                    damage; the error suggests --edited
//	any other error                 see classify
func importFrom(ctx context.Context, stdin io.Reader, path string, edited bool) (*inspect.Image, error) {
	r, name := stdin, path
	if path == "-" {
		name = "standard input"
	} else {
		f, err := os.Open(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fail(exitNotFound, "", "%s: no such file", path)
		}
		if err != nil {
			return nil, systemError(err)
		}
		defer f.Close()
		r = f
	}
	im, err := repair.Import(ctx, bufio.NewReader(r), edited)
	if errors.Is(err, repair.ErrImport) {
		f := &failure{code: exitCorrupt, err: err, text: name + ": " + describe.Unprefixed(err)}
		if errors.Is(err, repair.ErrDigest) {
			f.next = describe.Command("import", path, "-o", "OUT", "--edited")
		}
		return nil, f
	}
	if err != nil {
		return nil, classify(name, err)
	}
	return im, nil
}
