package dump

import "github.com/spf13/cobra"

// A limit is how much of a list to print; 0: all.
type limit uint

// flag gives cmd the flag --limit.
func (l *limit) flag(cmd *cobra.Command, n uint, what string) {
	cmd.Flags().UintVar((*uint)(l), "limit", n, "print at most this many "+what+"; 0: all")
}

// of returns how many of n things to print, and how many not.
func (l limit) of(n int) (shown, more int) {
	if l == 0 || uint64(l) >= uint64(n) {
		return n, 0
	}
	return int(l), n - int(l)
}
