// Prints is a program for tests of the site: it prints, keeps a file, and ends.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Println("one")
	text, err := os.ReadFile("dir/kept")
	fmt.Println(string(text), err)
	if err := os.MkdirAll("dir", 0o755); err != nil {
		fmt.Println(err)
	}
	if err := os.WriteFile("dir/new", append(text, "line "...), 0o600); err != nil {
		fmt.Println(err)
	}
	fmt.Println(os.Rename("dir/new", "dir/kept"))
	os.Exit(3)
}
