//go:build !wasm

package dump

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/disk/archive"
	"github.com/stet-ecs/stet/internal/build"
	"github.com/stet-ecs/stet/internal/golden"
)

// TestMain sets a fixed build line, because the build line is in stores and golden files.
func TestMain(m *testing.M) {
	build.Here = func() string { return "go1.26.0 linux/amd64 unfused math:a043" }
	testscript.Main(m, map[string]func(){
		"ecsdump":  func() { os.Exit(Main(nil)) },
		"continue": func() { os.Exit(continueStore(os.Args[1], os.Args[2])) },
		"wrong":    func() { os.Exit(wrongStore(os.Args[1], os.Args[2])) },
		"keep":     func() { os.Exit(keepStore(os.Args[1])) },
	})
}

// continueStore is the program "continue DIR BUILD". It commits two ticks to the store in DIR. The
// store records BUILD as the build of the program. The store is created if it is missing.
func continueStore(dir, text string) int {
	build.Here = func() string { return text }
	return exitOf(continueWith(dir, clock(), Health(70), 2))
}

// wrongStore is the program "wrong DIR BUILD". It creates a store with two different ticks, see
// buildDiverged. The store records BUILD as the build of the program.
func wrongStore(dir, text string) int {
	build.Here = func() string { return text }
	return exitOf(buildDiverged(dir, true))
}

// keepStore is the program "keep DIR": it creates a store, prints a line, and leaves the store open
// until the process is killed.
func keepStore(dir string) int {
	if _, err := buildOpenStore(dir); err != nil {
		return exitOf(err)
	}
	fmt.Println("open")
	time.Sleep(time.Hour)
	return 0
}

// exitOf prints the error of a program and returns the exit status.
func exitOf(err error) int {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// TestScripts_GiveExpectedOutput runs the scripts in testdata/script. Every script ends with the
// command "unchanged".
func TestScripts_GiveExpectedOutput(t *testing.T) {
	golden.Scripts(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			e.Setenv("COLUMNS", "")
			e.Values["before"] = map[string]tree{}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"store":     storeCommand,
			"hold":      holdCommand,
			"converted": convertedCommand,
			"marked":    markedCommand,
			"pruned":    prunedCommand,
			"kept":      keptCommand,
			"save":      saveCommand,
			"pack":      packCommand,
			"forest":    forestCommand,
			"jobs":      jobsCommand,
			"diverged":  divergedCommand,
			"exit":      exitCommand,
			"clone":     cloneCommand,
			"flip":      flipCommand,
			"cut":       cutCommand,
			"remember":  rememberCommand,
			"unchanged": unchangedCommand,
		},
	})
}

// storeCommand is "store DIR": it creates a closed store with every feature.
func storeCommand(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: store DIR")
	}
	ts.Check(buildStore(ts.MkAbs(args[0])))
	rememberCommand(ts, false, args)
}

// convertedCommand is "converted DIR": it creates a closed store whose schema changed.
func convertedCommand(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: converted DIR")
	}
	ts.Check(buildConverted(ts.MkAbs(args[0])))
	rememberCommand(ts, false, args)
}

// holdCommand is "hold DIR": like "store DIR", but the store stays open until the script ends. The
// command "unchanged" ignores this store.
func holdCommand(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: hold DIR")
	}
	closeIt, err := buildOpenStore(ts.MkAbs(args[0]))
	ts.Check(err)
	ts.Defer(func() { ts.Check(closeIt()) })
}

// saveCommand is "save FILE": it writes a save.
func saveCommand(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: save FILE")
	}
	ts.Check(buildSave(ts.MkAbs(args[0])))
	rememberCommand(ts, false, args)
}

// packCommand is "pack DIR FILE": it packs a store into a zip file.
func packCommand(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: pack DIR FILE")
	}
	files, err := disk.Open(ts.MkAbs(args[0]))
	ts.Check(err)
	defer files.Close()
	out, err := os.Create(ts.MkAbs(args[1]))
	ts.Check(err)
	ts.Check(archive.Write(context.Background(), out, files))
	ts.Check(out.Close())
}

// divergedCommand is "diverged DIR DIR": it creates two stores of one simulation that differ in one
// step.
func divergedCommand(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: diverged DIR DIR")
	}
	for i, dir := range args {
		ts.Check(buildDiverged(ts.MkAbs(dir), i == 1))
		rememberCommand(ts, false, args[i:i+1])
	}
}

// exitCommand is "exit CODE PROGRAM ARGS...": it runs the program and checks that it exits with
// CODE.
func exitCommand(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: exit CODE PROGRAM ARGS...")
	}
	code := 0
	var exit *exec.ExitError
	if err := ts.Exec(args[1], args[2:]...); errors.As(err, &exit) {
		code = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got := strconv.Itoa(code); got != args[0] {
		ts.Fatalf("%v exits %s, want %s", args[1:], got, args[0])
	}
}

// flipCommand is "flip FILE OFFSET": it flips a bit. A negative offset counts from the end.
func flipCommand(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: flip FILE OFFSET")
	}
	offset, err := strconv.Atoi(args[1])
	ts.Check(err)
	content, err := os.ReadFile(ts.MkAbs(args[0]))
	ts.Check(err)
	if offset < 0 {
		offset += len(content)
	}
	content[offset] ^= 4
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), content, 0o600))
}

// cloneCommand is "clone FROM TO": it copies a directory.
func cloneCommand(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: clone FROM TO")
	}
	ts.Check(os.CopyFS(ts.MkAbs(args[1]), os.DirFS(ts.MkAbs(args[0]))))
}

// cutCommand is "cut FILE N": it removes the last N bytes of the file.
func cutCommand(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: cut FILE N")
	}
	n, err := strconv.ParseInt(args[1], 10, 64)
	ts.Check(err)
	info, err := os.Stat(ts.MkAbs(args[0]))
	ts.Check(err)
	ts.Check(os.Truncate(ts.MkAbs(args[0]), info.Size()-n))
}

// rememberCommand is "remember PATH": it records the files at PATH for "unchanged".
func rememberCommand(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: remember PATH")
	}
	t, err := treeOf(ts.MkAbs(args[0]))
	ts.Check(err)
	ts.Value("before").(map[string]tree)[args[0]] = t
}

// unchangedCommand is "unchanged": it checks that all remembered files have the same names,
// contents, modes and modification times.
func unchangedCommand(ts *testscript.TestScript, _ bool, args []string) {
	before := ts.Value("before").(map[string]tree)
	if len(args) > 0 || len(before) == 0 {
		ts.Fatalf("usage: unchanged, after something was remembered")
	}
	for path, want := range before {
		got, err := treeOf(ts.MkAbs(path))
		ts.Check(err)
		if diff := want.diff(got); diff != "" {
			ts.Fatalf("%s has changed: %s", path, diff)
		}
	}
}

// keptCommand is "kept": it changes to the directory that contains store-1. With -update, it writes
// the store if it is missing.
func keptCommand(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 0 {
		ts.Fatalf("usage: kept")
	}
	store, err := filepath.Abs(keptStore)
	ts.Check(err)
	if _, err := os.Stat(store); *golden.Update && errors.Is(err, fs.ErrNotExist) {
		ts.Check(buildKept(store))
	}
	ts.Check(ts.Chdir(filepath.Dir(store)))
	rememberCommand(ts, false, []string{store})
}

// markedCommand is "marked DIR": it creates a closed store with marks and inputs.
func markedCommand(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: marked DIR")
	}
	ts.Check(buildMarked(ts.MkAbs(args[0])))
	rememberCommand(ts, false, args)
}

// prunedCommand is "pruned DIR": it creates a closed store whose journal begins before its oldest
// state.
func prunedCommand(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: pruned DIR")
	}
	ts.Check(buildPruned(ts.MkAbs(args[0])))
	rememberCommand(ts, false, args)
}

// forestCommand is "forest DIR FILE": it creates a closed store of entities that refer to each
// other, and a save of the last state.
func forestCommand(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: forest DIR FILE")
	}
	ts.Check(buildForest(ts.MkAbs(args[0]), ts.MkAbs(args[1])))
	rememberCommand(ts, false, args[:1])
	rememberCommand(ts, false, args[1:])
}
