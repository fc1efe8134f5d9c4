package describe

import (
	"github.com/stet-ecs/stet/internal/shell"
	"github.com/stet-ecs/stet/persist/repair"
)

// Command returns a command line of ecsdump, with shell quoting: names and paths may contain
// anything. name may be several words.
func Command(name string, args ...string) string {
	line := "ecsdump " + name
	if len(args) > 0 {
		line += " " + shell.Command(args...)
	}
	return line
}

// RecoverCommand returns the recover command for the store or save at path. It returns "" if
// nothing can be restored. The arguments r and err are the result of [repair.Recoverable], which
// checks what could be restored and writes nothing.
func RecoverCommand(path string, r *repair.RecoverReport, err error) string {
	switch {
	case err == nil:
		return Command("recover", path, "-o", path+".recovered")
	case r.Pieces:
		return PiecesCommand(path)
	}
	return ""
}

// PiecesCommand returns the recover command that restores the readable pages of a damaged snapshot.
func PiecesCommand(path string) string {
	return Command("recover", path, "-o", path+".pieces", "--partial")
}
