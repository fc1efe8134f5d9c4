package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// childPace is the delay after each generation of the child, so that the child is killed long
// before its end.
const childPace = "3ms"

// killChild starts this program as a child process on the directory, and kills it once generation
// tourKill is durable. It returns the last generation that the child reported as durable.
func (t *tour) killChild(ctx context.Context) (durable uint64, err error) {
	executable, err := os.Executable()
	if err != nil {
		return 0, err
	}
	var complaints strings.Builder
	child := exec.CommandContext(ctx, executable, "-dir", t.game.dir,
		"-generations", fmt.Sprint(rPentominoSettles), "-sync", "always", "-acks", "-pace", childPace)
	child.Stderr = &complaints
	lines, err := child.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := child.Start(); err != nil {
		return 0, err
	}
	readAcks(lines, func(generation uint64) {
		durable = generation
		t.ack(generation)
		if generation >= tourKill {
			child.Process.Kill() // Lines that the child has already printed can still be read.
		}
	})
	err = child.Wait()
	if durable >= tourKill && ctx.Err() == nil {
		return durable, nil
	}
	return 0, errors.Join(errors.New("the child process ended before it was killed"), err, errors.New(complaints.String()))
}

// readAcks reads r to its end, and calls the given function for every line "durable G".
func readAcks(r io.Reader, durable func(generation uint64)) {
	for lines := bufio.NewScanner(r); lines.Scan(); {
		var generation uint64
		if n, _ := fmt.Sscanf(lines.Text(), "durable %d", &generation); n == 1 {
			durable(generation)
		}
	}
}
