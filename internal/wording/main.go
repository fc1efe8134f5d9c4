// Wording checks the language of the project: comments, names of tests, texts in code and pages of
// documentation. Run it at the root of the repository:
//
//	go run ./internal/wording                all files that git tracks
//	go run ./internal/wording ecs journal    files below these two directories
//
// It prints each fault as file:line: rule: text. The file rules.go has the banned words. The file
// exceptions.txt lists texts that need a banned word, each with the reason. The file debts.txt
// lists directories that have not been reworded yet, with their number of faults. This number may
// only decrease; "go run ./internal/wording -record" writes it. The exit status is 1 if a directory
// has more faults than debts.txt allows.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	lists := flag.String("lists", "internal/wording", "directory of exceptions.txt and debts.txt")
	record := flag.Bool("record", false, "write the faults of each directory to debts.txt")
	flag.Parse()
	ok, err := run(*lists, *record, flag.Args(), os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "wording:", err)
		os.Exit(2)
	}
	if !ok {
		os.Exit(1)
	}
}

// run checks the files in git below dirs, or all files in git if dirs is empty. With record set, it
// writes the numbers of faults to debts.txt. Otherwise, ok is false in these cases:
//   - A directory has more faults than debts.txt allows.
//   - A line of exceptions.txt matches no fault.
func run(lists string, record bool, dirs []string, out io.Writer) (ok bool, err error) {
	exceptions, err := readExceptions(filepath.Join(lists, "exceptions.txt"))
	if err != nil {
		return false, err
	}
	debtsFile := filepath.Join(lists, "debts.txt")
	debts, err := readDebts(debtsFile)
	if err != nil {
		return false, err
	}
	files, err := trackedFiles(dirs)
	if err != nil {
		return false, err
	}
	faults := map[string][]fault{}
	for _, file := range files {
		source, err := os.ReadFile(file)
		if os.IsNotExist(err) {
			continue // A deleted file may still be in git.
		} else if err != nil {
			return false, err
		}
		found, err := check(file, string(source))
		if err != nil {
			return false, err
		}
		dir := filepath.ToSlash(filepath.Dir(file))
		faults[dir] = append(faults[dir], exceptions.drop(found)...)
	}
	if record {
		return true, writeDebts(debtsFile, faults)
	}
	ok = report(out, faults, debts, len(dirs) > 0)
	if len(dirs) == 0 {
		for _, text := range exceptions.unused() {
			fmt.Fprintf(out, "exceptions.txt: %q matches no fault: remove the line\n", text)
			ok = false
		}
	}
	return ok, nil
}

// report prints the faults of each directory that has more faults than its debt. If its last
// argument is true, it prints every fault.
func report(out io.Writer, faults map[string][]fault, debts map[string]int, all bool) (ok bool) {
	ok = true
	dirs := make([]string, 0, len(faults))
	for dir := range faults {
		dirs = append(dirs, dir)
	}
	slices.Sort(dirs)
	for _, dir := range dirs {
		found, allowed := faults[dir], debts[dir]
		if all || len(found) > allowed {
			for _, f := range found {
				fmt.Fprintln(out, f)
			}
		}
		if len(found) > allowed {
			fmt.Fprintf(out, "%s: %d faults of wording, %d allowed\n", dir, len(found), allowed)
			ok = false
		}
	}
	return ok
}

// trackedFiles returns the files that git tracks below the directories, or all tracked files if
// dirs is empty.
func trackedFiles(dirs []string) ([]string, error) {
	text, err := exec.Command("git", append([]string{"ls-files", "-z", "--cached", "--others", "--exclude-standard", "--"}, dirs...)...).Output()
	if err != nil {
		return nil, fmt.Errorf("git ls-files: %w", err)
	}
	files := strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00")
	slices.Sort(files)
	return slices.Compact(files), nil
}
