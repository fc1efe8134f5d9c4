package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
)

// published has the number of ways for 0 to 10 queens (OEIS A000170).
var published = []int{1, 1, 0, 0, 2, 10, 4, 40, 92, 352, 724}

func TestSolve_PublishedCounts(t *testing.T) {
	for size, want := range published {
		got := 0
		newBoard(size).solve(func() { got++ })
		if got != want {
			t.Errorf("%d queens: %d ways, want %d", size, got, want)
		}
	}
}

func TestSolve_ValidAndDistinct(t *testing.T) {
	const size = 8
	b := newBoard(size)
	seen := make(map[string]bool)
	b.solve(func() {
		if drawing := b.String(); seen[drawing] {
			t.Errorf("the same board was found twice:\n%s", drawing)
		} else {
			seen[drawing] = true
		}
		if got := b.world.Len(); got != size {
			t.Errorf("%d squares are left, want %d:\n%s", got, size, b)
		}
		for a, first := range b.squares.All() {
			for c, second := range b.squares.All() {
				if a != c && first.attacks(second) {
					t.Errorf("the queen on %v attacks the one on %v:\n%s", first, second, b)
				}
			}
		}
	})
}

func TestSolve_BoardUnchanged(t *testing.T) {
	b := newBoard(6)
	want := b.world.Digest()
	for range 2 {
		b.solve(func() {})
		if got := b.world.Digest(); got != want {
			t.Errorf("digest after solve = %v, want %v", got, want)
		}
		if err := b.world.Raw().Detach(nil); err != nil {
			t.Errorf("after solve: %v", err)
		}
	}
}

func TestAttacks_RowsColumnsAndDiagonals(t *testing.T) {
	const size = 9
	from := Square{Row: 4, Column: 4}
	want := `Q...Q...Q
.Q..Q..Q.
..Q.Q.Q..
...QQQ...
QQQQQQQQQ
...QQQ...
..Q.Q.Q..
.Q..Q..Q.
Q...Q...Q
`
	b := newBoard(size)
	for e, square := range b.each.All() {
		if !from.attacks(*square) {
			b.world.Destroy(e)
		}
	}
	if got := b.String(); got != want {
		t.Errorf("%v attacks\n%s\nwant\n%s", from, got, want)
	}
}

func TestRun_ArgumentsAndOutput(t *testing.T) {
	tests := []struct {
		args   string
		code   int
		stdout string
		stderr string // A substring of stderr.
	}{
		{args: "", stdout: "92\n"},
		{args: "-n 10", stdout: "724\n"},
		{args: "-n 0", stdout: "1\n"},
		{args: "-n 3 -show", stdout: "0\n"},
		{args: "-n 4 -show", stdout: ".Q..\n...Q\nQ...\n..Q.\n\n..Q.\nQ...\n...Q\n.Q..\n\n2\n"},
		{args: "-n 33", code: 2, stderr: "wants -n from 0 to 32"},
		{args: "-n -1", code: 2, stderr: "wants -n from 0 to 32"},
		{args: "-n many", code: 2, stderr: `invalid value "many"`},
		{args: "8", code: 2, stderr: "no arguments"},
		{args: "-h", stderr: "place N queens"},
	}
	for _, tt := range tests {
		t.Run(tt.args, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			code := run(strings.Fields(tt.args), &stdout, &stderr)
			if code != tt.code || !strings.Contains(stderr.String(), tt.stderr) {
				t.Errorf("run(%s) = %d with %q on stderr, want %d with %q", tt.args, code, &stderr, tt.code, tt.stderr)
			}
			if got := stdout.String(); got != tt.stdout {
				t.Errorf("run(%s) prints\n%swant\n%s", tt.args, got, tt.stdout)
			}
		})
	}
}

func TestRun_OutputFails(t *testing.T) {
	var stderr bytes.Buffer
	if code := run(nil, fullDisk{}, &stderr); code != 1 || !strings.Contains(stderr.String(), "disk is full") {
		t.Errorf("run on a full disk = %d with %q on stderr, want 1 and the reason", code, &stderr)
	}
}

type fullDisk struct{ io.Writer }

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("disk is full") }

func Example_fourQueens() {
	b := newBoard(4)
	ways := 0
	b.solve(func() { ways++ })
	fmt.Println(ways, "ways, and", b.world.Len(), "squares free again")
	// Output: 2 ways, and 16 squares free again
}
