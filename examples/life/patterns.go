package main

import (
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

//go:embed patterns/*.rle
var patternFiles embed.FS

// PatternNames returns the names of the built-in patterns, which [LoadPattern] accepts, in
// alphabetical order.
func PatternNames() ([]string, error) {
	entries, err := patternFiles.ReadDir("patterns") // Sorted by name.
	if err != nil {
		return nil, err
	}
	names := make([]string, len(entries))
	for i, entry := range entries {
		names[i] = strings.TrimSuffix(entry.Name(), ".rle")
	}
	return names, nil
}

// LoadPattern returns the built-in pattern called name. For a name that
// [PatternNames] does not list, the error is an [io/fs.ErrNotExist].
func LoadPattern(name string) (*Pattern, error) {
	file, err := patternFiles.Open("patterns/" + name + ".rle")
	if err != nil {
		return nil, fmt.Errorf("no built-in pattern %q: %w", name, err)
	}
	return readPattern(file, fmt.Sprintf("built-in pattern %q", name))
}

// openPattern returns the built-in pattern called name, or otherwise the pattern in the file of
// that name. If both exist, a path like "./acorn" selects the file.
func openPattern(name string) (*Pattern, error) {
	pattern, err := LoadPattern(name)
	if !errors.Is(err, fs.ErrNotExist) {
		return pattern, err
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	if pattern, err = readPattern(file, name); err == nil && pattern.Name == "" {
		pattern.Name = filepath.Base(name)
	}
	return pattern, err
}

func readPattern(file io.ReadCloser, what string) (*Pattern, error) {
	defer file.Close()
	pattern, err := ParseRLE(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	return pattern, nil
}
