// Prints is a program for tests of the site: it prints and ends.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Println("one")
	fmt.Println("two")
	os.Exit(3)
}
