package persist

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/stet-ecs/stet/ecs/schedule"
	"github.com/stet-ecs/stet/internal/shell"
)

// SaveDivergence saves both worlds of d to files in dir, which it creates if necessary. It returns
// the shell command that shows how the worlds differ: "ecsdump diff A B". The files replace those
// of an earlier divergence of the same tick in dir.
//
// The files contain no NoPersist components. If d names such a component, compare d.First and
// d.Again instead.
func SaveDivergence(ctx context.Context, dir string, d *schedule.Divergence) (command string, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("persist: save of a divergence: %w", err)
	}
	first := filepath.Join(dir, fmt.Sprintf("tick%d-first.save", d.Tick))
	again := filepath.Join(dir, fmt.Sprintf("tick%d-again.save", d.Tick))
	if err := Save(ctx, first, d.First); err != nil {
		return "", err
	}
	if err := Save(ctx, again, d.Again); err != nil {
		return "", err
	}
	return shell.Command("ecsdump", "diff", first, again), nil
}
