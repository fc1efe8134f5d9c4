package dump

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist"
)

// exitSkip is what a command exits with that cannot judge a state. What is above
// exitBad is no verdict: it ends the search.
const (
	exitSkip = 125
	exitBad  = 127
)

// A runner is a judge that runs a command for each state. The state is a save in a
// directory of its own, which goes with the runner.
type runner struct {
	app     *app
	command []string
	dir     string
}

func newRunner(a *app, command []string) (*runner, error) {
	dir, err := os.MkdirTemp("", "ecsdump-bisect-")
	if err != nil {
		return nil, &failure{exitSystem, err, ""}
	}
	return &runner{a, command, dir}, nil
}

// end removes what the runner wrote.
func (r *runner) end() { _ = os.RemoveAll(r.dir) } // It is in the system's directory for such files.

func (r *runner) judge(ctx context.Context, im state) (verdict, error) {
	file := filepath.Join(r.dir, fmt.Sprintf("%d.save", im.seq))
	if err := writeSave(ctx, im, file); err != nil {
		return skip, err
	}
	defer os.Remove(file)
	args := make([]string, len(r.command))
	for i, arg := range r.command {
		args[i] = strings.ReplaceAll(arg, "{}", file)
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = append(os.Environ(),
		"ECSDUMP_SAVE="+file, fmt.Sprintf("ECSDUMP_TICK=%d", im.Tick), fmt.Sprintf("ECSDUMP_SEQ=%d", im.seq))
	cmd.Stdout, cmd.Stderr = r.app.stderr, r.app.stderr
	return r.verdict(im, cmd.Run())
}

// verdict returns what it means that the command ended with err.
func (r *runner) verdict(im state, err error) (verdict, error) {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return good, nil
	case !errors.As(err, &exit):
		return skip, &failure{exitSystem, err, ""}
	case exit.ExitCode() == exitSkip:
		return skip, nil
	case exit.ExitCode() < 0 || exit.ExitCode() > exitBad:
		return skip, &failure{exitProblem, fmt.Errorf("%s at %v: %w: no verdict", r.command[0], im, exit), ""}
	}
	return bad, nil
}

// writeSave writes im as a save.
func writeSave(ctx context.Context, im state, file string) error {
	w, err := im.World(ecs.Options{})
	if err != nil {
		return err
	}
	if err := persist.Save(ctx, file, w); err != nil {
		return &failure{exitSystem, err, ""}
	}
	return nil
}
