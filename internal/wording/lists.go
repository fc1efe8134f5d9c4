package main

import (
	"bufio"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
)

// exceptions are the accepted faults, by file and text.
type exceptions struct {
	lines []string
	used  []bool
}

// readExceptions reads a list with lines "file<TAB>text<TAB>reason". A line that begins with # is a
// comment.
func readExceptions(name string) (*exceptions, error) {
	e := &exceptions{}
	err := eachLine(name, func(line string) error {
		parts := strings.Split(line, "\t")
		if len(parts) != 3 || strings.TrimSpace(parts[2]) == "" {
			return fmt.Errorf("%q is not: file, text, reason, with a tab between them", line)
		}
		e.lines = append(e.lines, parts[0]+"\t"+parts[1])
		return nil
	})
	e.used = make([]bool, len(e.lines))
	return e, err
}

// drop returns the faults without an exception. An exception has a file and a text. It matches a
// fault in this file whose text contains the text of the exception.
func (e *exceptions) drop(faults []fault) (rest []fault) {
	for _, f := range faults {
		listed := false
		for i, line := range e.lines {
			file, text, _ := strings.Cut(line, "\t")
			if file == f.file && strings.Contains(f.text, text) {
				e.used[i], listed = true, true
			}
		}
		if !listed {
			rest = append(rest, f)
		}
	}
	return rest
}

// unused returns the exceptions that match no fault.
func (e *exceptions) unused() (lines []string) {
	for i, line := range e.lines {
		if !e.used[i] {
			lines = append(lines, line)
		}
	}
	return lines
}

// readDebts reads how many faults each directory may have. Each line of the file has a directory,
// a space and a number.
func readDebts(name string) (map[string]int, error) {
	debts := map[string]int{}
	return debts, eachLine(name, func(line string) error {
		var dir string
		var n int
		if _, err := fmt.Sscan(line, &dir, &n); err != nil {
			return fmt.Errorf("%q is not a directory and a number", line)
		}
		debts[dir] = n
		return nil
	})
}

func writeDebts(name string, faults map[string][]fault) error {
	var lines []string
	for dir, found := range faults {
		if len(found) > 0 {
			lines = append(lines, fmt.Sprintf("%s %d\n", dir, len(found)))
		}
	}
	slices.Sort(lines)
	head := "# Faults of wording in directories that have not been reworded yet. Written by go run ./internal/wording -record.\n"
	return os.WriteFile(name, []byte(head+strings.Join(lines, "")), 0o644)
}

// eachLine calls f for each line that is neither empty nor a comment. A missing file has no lines.
func eachLine(name string, f func(line string) error) error {
	file, err := os.Open(name)
	if os.IsNotExist(err) {
		return nil
	} else if err != nil {
		return err
	}
	defer file.Close()
	s := bufio.NewScanner(file)
	for n := 1; s.Scan(); n++ {
		if line := strings.TrimRight(s.Text(), " "); line != "" && !strings.HasPrefix(line, "#") {
			if err := f(line); err != nil {
				return &fs.PathError{Op: fmt.Sprintf("line %d of", n), Path: name, Err: err}
			}
		}
	}
	return s.Err()
}
