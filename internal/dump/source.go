package dump

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"

	"github.com/spf13/cobra"

	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist"
)

// A source is the store or save that a command reads.
type source struct {
	*persist.View
	path string
}

// A point is the flag that says which state to show.
type point struct{ at string }

// flag gives cmd the flag --at.
func (p *point) flag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&p.at, "at", "@latest", "point in time to show: a tick, @latest~N, @first, @-5s, seq:N, snap:N or mark:NAME")
}

// A stateDoc names the state that a document shows.
type stateDoc struct {
	Tick uint64 `json:"tick"`
	Seq  uint64 `json:"seq"` // Of the record that leads to it; 0: none does.
}

// A state is a world at a point in time.
type state struct {
	*persist.Image
	seq uint64
}

func (s state) doc() stateDoc { return stateDoc{s.Tick, s.seq} }

// String returns the place of s in time.
func (s state) String() string { return fmt.Sprintf("tick %d, record %d", s.Tick, s.seq) }

// state returns the world at p.
func (s *source) state(ctx context.Context, p point) (state, error) {
	seq, err := s.Resolve(p.at)
	if err != nil {
		return state{}, err
	}
	im, err := s.At(ctx, seq)
	return state{im, seq}, err
}

// read calls f with the store or save at path. Damage that opening it found is
// an error after all has been printed.
func (a *app) read(ctx context.Context, path string, f func(*source) error) error {
	v, err := persist.OpenReadOnly(ctx, path)
	if err != nil {
		return opening(path, err)
	}
	defer v.Close()
	s := &source{v, path}
	damage := s.damage()
	if err := f(s); err != nil {
		return notFoundIn(damage, classify(path, err))
	}
	if damage != nil {
		return damage
	}
	return nil
}

// notFoundIn makes f, if something was not found and there is damage, a failure
// of that: it may have been there.
func notFoundIn(damage, f *failure) *failure {
	if damage == nil || f.code != exitNotFound && !errors.Is(f.err, errDiffer) {
		return f
	}
	return &failure{damage.code, errors.Join(damage, f), damage.next}
}

// damage returns the first damage that opening s found, or nil.
func (s *source) damage() *failure {
	found := s.Damage()
	if len(found) == 0 {
		return nil
	}
	f := classify(s.path, found[0])
	if len(found) > 1 {
		f.err = fmt.Errorf("%w (and %d more)", f.err, len(found)-1)
	}
	return f
}

// rewoundFrom returns the lowest seq of which it is known whether the newest state
// comes from it: going back from the head ends at a record that cannot be read.
func (s *source) rewoundFrom() uint64 {
	log := s.Log()
	if log.Head == 0 {
		return 0
	}
	last := journal.Entry{ID: journal.ID{Seq: math.MaxUint64}, Parent: log.Head}
	for e := range log.Ancestors(log.Head) {
		last = e
	}
	if last.Parent == 0 {
		return 0
	}
	return last.ID.Seq
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
