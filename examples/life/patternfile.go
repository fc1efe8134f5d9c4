package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// openPattern returns the built-in pattern called name, or else the one in the
// file of that name. A built-in pattern hides a file: write "./acorn" for that.
func openPattern(name string) (*Pattern, error) {
	names, err := PatternNames()
	if err != nil {
		return nil, err
	}
	if slices.Contains(names, name) {
		return LoadPattern(name)
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	pattern, err := ParseRLE(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if pattern.Name == "" {
		pattern.Name = filepath.Base(name)
	}
	return pattern, nil
}
