package dump

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/internal/term"
	"github.com/stet-ecs/stet/persist"
)

// longValues is a component with long values of every kind.
type longValues struct {
	Title    string
	Words    []string
	Friends  map[string]ecs.Entity
	Matrix   [4][4]float64
	Position struct{ X, Y, Z float64 }
}

// buildWideStore creates a closed store with long names, values and marks, many components, deep
// trees and many rewound branches.
func buildWideStore(dir string) error {
	ctx := context.Background()
	w := ecs.NewWorld(ecs.Options{History: 10})
	children := ecs.MustRegister[ChildOf](w)
	sprawls := ecs.MustRegister(w, ecs.Component[longValues]{Name: "AComponentWhoseNameIsAboutAsLongAsGeneratedNamesOfNestedTypesBecome"})
	wide := ecs.MustRegister(w, ecs.Component[string]{Name: "広い文字の名前"})
	score := ecs.Must(ecs.RegisterResource(w, int64(0), ecs.Component[int64]{Name: "a resource of which the name is long enough to leave no room for values"}))
	var many []*ecs.Storage[int32]
	for i := range 30 {
		many = append(many, ecs.MustRegister(w, ecs.Component[int32]{Name: fmt.Sprintf("Number%02dOfMany", i)}))
	}
	store, err := persist.Open(ctx, dir, w, persist.Options{Now: clock(), SnapshotBytes: -1})
	if err != nil {
		return err
	}
	var entities []ecs.Entity
	for i := range 60 {
		e := w.Create()
		entities = append(entities, e)
		if i > 0 {
			children.Set(e, ChildOf{entities[i-1]})
		}
		if i%7 == 0 {
			s := longValues{Title: strings.Repeat("long ", 40), Words: strings.Fields(strings.Repeat("word ", 50)), Friends: map[string]ecs.Entity{strings.Repeat("k", 100): e}}
			s.Position.X = 1.0 / 3
			sprawls.Set(e, s)
			wide.Set(e, strings.Repeat("広い🎮", 30))
		}
		for k, m := range many {
			m.Set(e, int32(i*100_000_007+k))
		}
	}
	*score.Mut() = 1 << 62
	for i := range 12 {
		if err := store.Mark(fmt.Sprintf("%s %d", strings.Repeat("a long mark ", 8), i)); err != nil {
			return err
		}
		if err := store.Input(strings.Repeat("input", 20), []byte(strings.Repeat("data", 60))); err != nil {
			return err
		}
		for k, m := range many {
			*m.Mut(entities[i]) += int32(k)
		}
		sprawls.Mut(entities[7]).Title += "!"
		if err := store.Commit(); err != nil {
			return err
		}
		if i == 5 {
			if _, err := store.SaveSlot(ctx, strings.Repeat("label", 20), ""); err != nil {
				return err
			}
		}
		if i%4 == 3 {
			if err := w.History().Rewind(2); err != nil {
				return err
			}
		}
	}
	for _, e := range entities[40:] {
		w.Destroy(e)
	}
	if err := store.Commit(); err != nil {
		return err
	}
	return store.Close(ctx)
}

const sprawlName = "AComponentWhoseNameIsAboutAsLongAsGeneratedNamesOfNestedTypesBecome"

// sprawling has calls of each command that print its different tables. In the arguments, letters
// stand for paths:
//
//	D   the store
//	E   an older copy of the store
//	S   a save with other contents
//	O   an unused name
var sprawling = map[string][][]string{
	"arrays":   {{"D", sprawlName}, {"D", "広い文字の名前"}, {"D", "ChildOf", "--limit", "0"}, {"D", sprawlName, "--entity", "7v1"}},
	"bisect":   {{"D", "Number00OfMany > 0", "--entity", "3v1"}, {"D", "alive < 50", "--flips"}, {"D", "alive > 0", "--last"}, {"D", "Number00OfMany > 0", "--entity", "3v1", "--flips"}},
	"blame":    {{"D", "7v1"}, {"D", "7v1." + sprawlName}},
	"branches": {{"D"}},
	"compact":  {{"D", "-o", "O"}},
	"diff":     {{"D", "@first", "@latest"}, {"D", "@first..@latest", "--stat"}, {"D", "..", "--limit", "0"}, {"D", "S"}, {"D", "E", "--first"}},
	"edit":     {{"D", "-o", "O", "Number00OfMany = 5", "--dry-run"}, {"D", "-o", "O", "Number01OfMany = Number00OfMany"}},
	// Write each export to a file, because its lines may be wider than the terminal.
	"export":  {{"D", "-o", "O"}, {"D", "--format", "csv", "-o", "O"}, {"D", "..", "--format", "ndjson", "-o", "O"}, {"D", "--format", "perfetto", "-o", "O"}},
	"history": {{"D", "7v1"}, {"D", "7v1." + sprawlName + ".Title", "--all"}, {"D", "3v1"}, {"D", "45v1"}},
	"import":  {{"out/export0", "-o", "O"}, {"out/export0", "-o", "O", "--store"}},
	"info":    {{"D"}, {"S"}, {"D", "--at", "@first"}},
	"log":     {{"D"}, {"D", "--verbose"}, {"D", "--graph"}, {"D", "-p"}, {"D", "--component", sprawlName, "-p"}, {"D", "--entity", "45v1"}, {"D", "--reverse"}},
	"ls":      {{"D"}, {"D", "--with", sprawlName}, {"D", "--where", "Number00OfMany > 0", "--sort", "Number01OfMany"}},
	"man":     {{"-o", "O"}},
	"marks":   {{"D"}},
	"mcp":     nil, // It prints a protocol.
	"panel":   {{"D", "Number00OfMany", "@first..@latest"}, {"D", "Number00OfMany as x", "component(\"" + sprawlName + "\").Title", "entity"}},
	"plot":    {{"D", "sum(Number00OfMany)"}, {"D", "alive", "max(Number01OfMany)", "sum(Number02OfMany)"}},
	"query":   {{"D", "--select", "entity, " + sprawlName + ", Number00OfMany"}, {"D", "--group-by", "Number00OfMany % 3", "--total", "p95(Number01OfMany), distinct(Number02OfMany), sum(Number03OfMany), avg(Number04OfMany)"}, {"D", "--count"}},
	"recover": {{"D", "-o", "O"}},
	"schema":  {{"D"}},
	"serve":   nil, // It prints its address and keeps running.
	"show":    {{"D", "7v1"}, {"D", "3v1"}, {"D", "7v1", "--component", sprawlName}, {"D", "--resources"}},
	"stats":   {{"D"}, {"S"}},
	"tail":    {{"D"}, {"D", "--patch"}},
	"tree":    {{"D"}, {"D", "--limit", "0"}, {"D", "30v1"}},
	"verify":  {{"D"}, {"S"}},
}

// namesWhole lists commands that may print a long name outside tables. The name is not wrapped, so
// that users can copy it.
var namesWhole = []string{
	"compact", // Prints names of snapshots.
	"recover",
	"show", // Prints fields with dead entities, whose names include map keys.
}

// eachCall calls f with the output of each call in sprawling, and with each help text. A new
// command needs a row in sprawling.
func eachCall(t *testing.T, f func(args []string, stdout, stderr string)) {
	t.Chdir(t.TempDir())
	require.NoError(t, buildWideStore("D"))
	require.NoError(t, os.CopyFS("E", os.DirFS("D")))
	require.NoError(t, buildSave("S"))
	require.NoError(t, os.Mkdir("out", 0o700))
	try := func(args ...string) {
		code, stdout, stderr := ecsdump(args...)
		if assert.Contains(t, []int{exitOK, exitProblem}, code, "%q: %s", args, stderr) {
			f(args, stdout, stderr)
		}
	}
	for _, c := range commands {
		calls, ok := sprawling[c.name()]
		require.True(t, ok, "how is %s called?", c.name())
		try(c.name(), "--help")
		for i, call := range calls {
			args := append([]string{c.name()}, call...)
			for k := range args {
				if args[k] == "O" {
					args[k] = filepath.Join("out", fmt.Sprint(c.name(), i))
				}
			}
			try(args...)
		}
	}
	for _, topic := range topics {
		try("help", topic.name)
	}
	try("--help")
	try("--version")
}

// No line of output is wider than 80 columns on a terminal of this width. Error messages may be
// wider.
func TestOutput_FitsTerminalWidth(t *testing.T) {
	const columns = 80
	t.Setenv("COLUMNS", fmt.Sprint(columns))
	eachCall(t, func(args []string, stdout, stderr string) {
		for line := range strings.SplitSeq(stdout+"\n"+stderr, "\n") {
			if slices.Contains(namesWhole, args[0]) && strings.HasPrefix(line, "  ") && len(strings.Fields(line)) == 1 {
				continue
			}
			assert.LessOrEqual(t, term.Width(line), columns, "%q: %s", args, line)
		}
	})
}
