package persist_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/stet-ecs/stet/disk/disktest"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
	"github.com/stet-ecs/stet/persist/internal/storetest"
)

// A simFlip is a bit that changes on the disk.
type simFlip struct {
	file string
	bit  int
}

func (f simFlip) String() string { return fmt.Sprintf("%s %d", f.file, f.bit) }

// newSimFlip draws a bit of mem. Every second bit is near the end of its file, where the newest
// ticks are. ok is false if mem has no bits.
func newSimFlip(rng *rand.Rand, mem *disktest.Mem) (f simFlip, ok bool) {
	files := mem.Files()
	if len(files) == 0 {
		return f, false
	}
	f.file = files[rng.IntN(len(files))]
	first, n := 0, len(mem.Bytes(f.file))
	if n == 0 {
		return f, false
	}
	if rng.IntN(2) == 0 {
		first = max(0, n-600)
	}
	f.bit = 8*(first+rng.IntN(n-first)) + rng.IntN(8)
	return f, true
}

// flip recovers from an image of durable bytes with one flipped bit.
func (s *simulation) flip(r *simRun, img simImage) (fault string, err error) {
	fault = fmt.Sprintf("flip %d %d", img.n, img.seed)
	if img.seed > 0 || s.only == "" && s.flips.IntN(max(1, s.every/6)) > 0 {
		return "", nil
	}
	f, ok := newSimFlip(s.flips, img.mem)
	if s.only != "" {
		_, err := fmt.Sscanf(s.only, fault+" %s %d", &f.file, &f.bit)
		ok = err == nil
	}
	if !ok {
		return "", nil
	}
	s.flipped++
	if err := r.recoverFlipped(img, f); err != nil {
		return fmt.Sprint(fault, " ", f), fmt.Errorf("%w\n%v", err, img)
	}
	return "", nil
}

// recoverFlipped opens the files after a crash and a bit flip. Either Open recovers a state that
// this crash allows, or an error says which bytes of which file are damaged.
func (r *simRun) recoverFlipped(img simImage, f simFlip) error {
	mem := flipped(img.mem, f.file, f.bit)
	told := f.told(simProblems(mem))
	w := storetest.New(0)
	before := w.Digest()
	s, err := persist.OpenFiles(storetest.Background, mem, w.World, persist.Options{SnapshotBytes: -1})
	if err != nil {
		if w.Digest() != before {
			return fmt.Errorf("Open failed and changed the world: %w", err)
		}
		if !told && !f.told([]error{err}) {
			return fmt.Errorf("neither Verify nor Open says where: %w", err)
		}
		return nil
	}
	p := img.simPromise
	// A torn end is no error here: nothing on the disk confirms the damaged bytes as durable yet.
	if t := s.Report().Torn; t != nil && f.told([]error{t}) {
		p.fresh = min(p.fresh, max(p.before, 0))
	}
	_, err = r.judge(p, w, s.Report(), true)
	if err == nil {
		w.Seed.Set(storetest.Seed(img.n))
		err = s.Commit()
	}
	if e := storetest.Closed(s.Close(storetest.Background)); err == nil {
		err = e
	}
	if err != nil {
		return err
	}
	return simLeadsTo(mem, w)
}

// told reports whether one of errs names the file and the offset of the damage.
func (f simFlip) told(errs []error) bool {
	for _, err := range errs {
		for _, e := range storetest.Flat(err) {
			var d *persist.DamageError
			if errors.As(e, &d) && d.Offset >= 0 && strings.HasSuffix(f.file, d.File) {
				return true
			}
		}
	}
	return false
}

// simProblems returns all problems of the files on mem.
func simProblems(mem *disktest.Mem) []error {
	v, err := inspect.OpenFS(storetest.Background, mem, ".")
	if err != nil {
		return []error{err}
	}
	defer v.Close()
	report, err := v.Verify(storetest.Background)
	return append(report.Problems, err)
}

// simLeadsTo requires that the next opening recovers the state of w.
func simLeadsTo(mem *disktest.Mem, w *storetest.World) error {
	got := storetest.New(0)
	s, err := persist.OpenFiles(storetest.Background, mem, got.World, persist.Options{SnapshotBytes: -1})
	if err != nil {
		return fmt.Errorf("after a commit and a close: %w", err)
	}
	if err := storetest.Closed(s.Close(storetest.Background)); err != nil {
		return err
	}
	if storetest.Persistent(got.World) != storetest.Persistent(w.World) {
		return errors.New("after a commit and a close, another state is recovered")
	}
	return nil
}
