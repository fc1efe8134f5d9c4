package chapters_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"unicode/utf8"
)

// The examples use these names.
var (
	ctx  = context.Background()
	root string // The directory of all files.
)

// tempDir returns a new directory, which exists until the end of the test binary.
func tempDir() string {
	dir, err := os.MkdirTemp(root, "")
	check(err)
	return dir
}

// check ends an example that fails.
func check(err error) {
	if err != nil {
		panic(err)
	}
}

// printError prints an error in lines of at most 90 letters.
func printError(err error) {
	for text := range strings.Lines(err.Error()) {
		line := ""
		for word := range strings.FieldsSeq(text) {
			if line != "" && utf8.RuneCountInString(line+" "+word) > 90 {
				fmt.Println(line)
				line = ""
			}
			line = strings.TrimSpace(line + " " + word)
		}
		fmt.Println(line)
	}
}
