package main

import (
	"embed"
	"fmt"
	"strings"
)

//go:embed patterns/*.rle
var patternFiles embed.FS

// PatternNames lists the built-in patterns in alphabetical order: the names
// that [LoadPattern] takes.
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
	defer file.Close()
	pattern, err := ParseRLE(file)
	if err != nil {
		return nil, fmt.Errorf("built-in pattern %q: %w", name, err)
	}
	return pattern, nil
}
