// Ecsdump prints the contents of a store or a save. It needs no application types. It only reads,
// without a lock, so it can read a directory that a running program has open.
//
//	ecsdump COMMAND STORE
//
// STORE is a directory of persist.Open or a file written by persist.Save. "ecsdump help" lists
// the commands, and explains points in time and exit statuses. docs/ECSDUMP.md contains all help
// texts and the documents of --json.
package main

import (
	"os"

	"github.com/stet-ecs/stet/internal/dump"
)

func main() { os.Exit(dump.Main(nil)) }
