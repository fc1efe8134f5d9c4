// Ecsdump prints what a store or a save holds. It needs no application types and
// never changes what it reads: it takes no lock, repairs nothing, and may look at
// a directory that a running program has open.
//
//	ecsdump COMMAND STORE
//
// STORE is a directory kept by persist.Open or a file written by persist.Save.
// "ecsdump help" lists the commands and tells what points in time and exit codes there
// are; docs/ECSDUMP.md has all that help has, and the documents of --json.
package main

import (
	"os"

	"github.com/stet-ecs/stet/internal/dump"
)

func main() { os.Exit(dump.Main(nil)) }
