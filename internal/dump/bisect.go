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
	"github.com/stet-ecs/stet/internal/query"
	"github.com/stet-ecs/stet/internal/term"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
)

// bisectDoc is what bisect --json prints.
type bisectDoc struct {
	stateDoc            // The first state for which the condition holds.
	Before   *stateDoc  `json:"before"` // The state before it; null: it is the first of the range.
	States   int        `json:"states"` // In the range.
	Scan     bool       `json:"scan"`   // All states up to it were asked; else it is taken to stay true.
	Probes   []probeDoc `json:"probes"` // In the order in which they were asked; with --scan empty.
}

// A probeDoc is a state that was asked.
type probeDoc struct {
	stateDoc
	Verdict string `json:"verdict"` // true, false or skip.
}

var bisectCommand = command{
	use: "bisect STORE EXPR [A..B] | bisect STORE [A..B] --run -- CMD ARGS…",
	doc: `Find the first tick at which a condition holds

Find the first tick at which a condition holds, on the way to --at or from A to
B. It asks few of them, by halves: once the condition holds it is taken to stay
true. --scan asks every tick in turn and needs no such promise.

The condition is on the whole world,

  ecsdump bisect D 'any(Position.X > 10)'
  ecsdump bisect D 'count(Health <= 0) > 3'
  ecsdump bisect D 'exists("12v3")'
  ecsdump bisect D 'score > 100 and alive < 50'

where any, all, none and count take a condition on entities, and sum, min, max and
avg an expression; or, with --entity, on one entity, false while it is not alive:

  ecsdump bisect D 'Health < 10' --entity 12v3

With --run a command decides, of a state that is written as a save, whose name takes
the place of {} in the arguments and is in ECSDUMP_SAVE; ECSDUMP_TICK and
ECSDUMP_SEQ name the state. It exits with 0: the condition does not hold (good),
1 to 127: it holds (bad), but 125: this state cannot be judged.

  ecsdump bisect D --run -- ./check.sh {}

` + expressionHelp,
	example: `  ecsdump bisect D 'any(Position.X > 10)'
  ecsdump bisect D 'alive < 50' 100..200 --scan
  ecsdump bisect D 'Health < 10' --entity 12v3
  ecsdump bisect D 100..200 --run -- ./check.sh {}`,
	complete: []completer{nil, (*completion).ranges},
	run: func(f flags) action {
		b := new(bisector)
		f.StringVar(&b.entity, "entity", "", "the condition is on this entity")
		f.BoolVar(&b.scan, "scan", false, "ask every tick, one after the other")
		f.BoolVar(&b.run, "run", false, "run the command behind -- for each state")
		f.point(&b.at)
		return func(c *call) error {
			b.app = c.app
			if err := b.arguments(c); err != nil {
				return err
			}
			return c.read(c.ctx, c.args[0], func(s *source) error { return b.bisect(c.ctx, s) })
		}
	},
}

// A bisector looks for the first state of a way that is bad: for which a condition
// holds.
type bisector struct {
	*app
	at        point
	text      string // The condition.
	span      string // A..B, or "".
	entity    string
	scan, run bool
	command   []string

	source *source
	way    way
	cursor *inspect.Cursor
	judge  judge
	asked  map[int]probe // Of the way, of late.
	doc    bisectDoc
}

// A judge says of a state whether it is bad.
type judge func(ctx context.Context, im state) (verdict, error)

// A verdict is what a judge says.
type verdict int

const (
	good verdict = iota // The condition does not hold.
	bad
	skip // Nobody knows.
)

func (v verdict) String() string { return [...]string{"false", "true", "skip"}[v] }

// A probe is a state that was asked, and what the judge said.
type probe struct {
	stateDoc
	verdict verdict
}

// A way is the states to look at, oldest first, by their records.
type way []uint64

// arguments takes the command line apart.
func (b *bisector) arguments(c *call) error {
	args, least := c.args, 2
	if dash := c.flags.ArgsLenAtDash(); b.run && dash >= 0 {
		args, b.command = args[:dash], args[dash:]
	}
	if b.run {
		least = 1
	}
	if len(args) < least || len(args) > least+1 || b.run && (len(b.command) == 0 || b.entity != "") {
		return fail(exitUsage, "ecsdump bisect --help", "usage: ecsdump %s", c.flags.cmd.Use)
	}
	if !b.run {
		b.text = args[1]
	}
	if b.span = strings.Join(args[least:], ""); b.span != "" && c.flags.Changed("at") {
		return fail(exitUsage, "", "give either --at or a range")
	}
	return nil
}

// bisect finds the state and prints it.
func (b *bisector) bisect(ctx context.Context, s *source) (err error) {
	b.source, b.asked = s, map[int]probe{}
	if b.way, err = s.way(b.span, b.at); err != nil {
		return err
	}
	b.doc = bisectDoc{States: len(b.way), Scan: b.scan, Probes: []probeDoc{}}
	last := len(b.way) - 1
	if b.cursor, err = s.Cursor(ctx, b.way[last]); err != nil {
		return err
	}
	end, err := b.appoint(state{b.cursor.Image(), b.way[last]})
	if err != nil {
		return err
	}
	defer end()
	find := b.halved
	if b.scan {
		find = b.scanned
	}
	first, err := find(ctx, last)
	if err != nil {
		return err
	}
	b.doc.stateDoc = b.asked[first].stateDoc
	if before, ok := b.asked[first-1]; ok {
		b.doc.Before = &before.stateDoc
	}
	return b.tell(b.doc, func() { b.found(first) })
}

// way returns the states of a range, or those on the way to at.
func (s *source) way(text string, at point) (way, error) {
	first, last, isRange := strings.Cut(text, "..")
	if text == "" {
		last = at.at
	} else if !isRange {
		return nil, fail(exitUsage, "", "%q is no range; write A..B, A.. or ..B", text)
	}
	from, to, err := s.resolved(first, last)
	if err != nil {
		return nil, err
	}
	if first == "" {
		from = s.oldest(to)
	}
	path, err := s.Path(from, to)
	if errors.Is(err, journal.ErrNotAncestor) {
		return nil, fail(exitNotFound, try("log", s.path), "%s: record %d does not lead to record %d", s.path, from, to)
	}
	if err != nil {
		return nil, err
	}
	return append(way{from}, listed(path, func(e journal.Entry) uint64 { return e.ID.Seq })...), nil
}

// oldest returns the oldest state that leads to record seq and that a snapshot
// leads to.
func (s *source) oldest(seq uint64) uint64 {
	snapshots := map[uint64]bool{}
	for _, sn := range s.View.Snapshots() {
		if sn.Err == nil {
			snapshots[sn.ID.Seq] = true
		}
	}
	oldest, last := seq, journal.Entry{Parent: seq}
	for e := range s.Log().Ancestors(seq) {
		if snapshots[e.ID.Seq] {
			oldest = e.ID.Seq
		}
		last = e
	}
	if snapshots[last.Parent] {
		oldest = last.Parent
	}
	return oldest
}

// appoint sets the judge that the command line asks for: a condition, compiled for im, the
// last state, or a command. Calling end removes the judge's files.
func (b *bisector) appoint(im state) (end func(), err error) {
	if b.run {
		return b.runner()
	}
	e, want := ecs.Vacant, query.WantWorld
	if b.entity != "" {
		want = query.WantCondition
		if e, err = parseEntity(b.source.path, b.entity); err != nil {
			return nil, err
		}
	}
	x, err := b.source.compile(im, "bisect", b.text, want)
	b.judge = func(_ context.Context, im state) (verdict, error) {
		if err := x.Bind(im.Image); err != nil {
			return skip, fmt.Errorf("at %v the components were others: %w", im, err)
		}
		if b.entity != "" && !im.IsAlive(e) {
			return good, nil
		}
		holds, err := x.Holds(e)
		if holds {
			return bad, err
		}
		return good, err
	}
	return func() {}, err
}

// halved finds the first bad state by halves. The ends come first: if the last state is
// good there is nothing to find, and if the first is bad already it is the answer.
func (b *bisector) halved(ctx context.Context, last int) (first int, err error) {
	switch v, err := b.probe(ctx, last); {
	case err != nil || v == bad && last == 0:
		return 0, err
	case v == skip:
		return 0, fail(exitProblem, "", "%s: the last state cannot be judged", b.source.path)
	case v == good:
		return 0, b.never()
	}
	if v, err := b.probe(ctx, 0); err != nil || v == bad {
		return 0, err
	}
	return b.narrow(ctx, 0, last)
}

// probe asks about state i of the way. States are reached from the one asked before, or
// from a snapshot if that is nearer: the cursor knows.
func (b *bisector) probe(ctx context.Context, i int) (verdict, error) {
	if b.cursor.Seq() != b.way[i] {
		if err := b.cursor.Seek(ctx, b.way[i]); err != nil {
			return skip, err
		}
	}
	v, err := b.ask(ctx, i, b.cursor.Image())
	b.doc.Probes = append(b.doc.Probes, probeDoc{b.asked[i].stateDoc, v.String()})
	return v, err
}

// ask asks the judge about im, state i of the way.
func (b *bisector) ask(ctx context.Context, i int, im *inspect.Image) (verdict, error) {
	now := state{im, b.way[i]}
	v, err := b.judge(ctx, now)
	b.asked[i] = probe{now.doc(), v}
	return v, err
}

// skipped reports whether state i of the way was asked in vain.
func (b *bisector) skipped(i int) bool { return b.asked[i].verdict == skip }

// narrow finds the first bad state behind lo, up to hi.
//
// Always hi is bad, and lo is good, or is the first state and was skipped. States that are
// skipped move neither end: the next nearest to the middle is asked in their place, so that
// the search only ends undecided when all between lo and hi was skipped.
func (b *bisector) narrow(ctx context.Context, lo, hi int) (int, error) {
	for hi-lo > 1 {
		i, ok := b.middle(lo, hi)
		if !ok {
			break
		}
		switch v, err := b.probe(ctx, i); {
		case err != nil:
			return 0, err
		case v == bad:
			hi = i
		case v == good:
			lo = i
		}
	}
	if !b.skipped(hi - 1) {
		return hi, nil
	}
	first := lo + 1
	if b.skipped(lo) {
		first = lo
	}
	return 0, fail(exitProblem, "", "%s: it is one of records %d to %d; those before the last cannot be judged", b.source.path, b.way[first], b.way[hi])
}

// middle returns the state nearest to the middle between lo and hi that was not
// skipped.
func (b *bisector) middle(lo, hi int) (int, bool) {
	mid := lo + (hi-lo)/2
	for d := 0; mid-d > lo || mid+d < hi; d++ {
		for _, i := range []int{mid - d, mid + d} {
			if i > lo && i < hi && !b.skipped(i) {
				return i, true
			}
		}
	}
	return 0, false
}

// never is the failure of a condition that holds nowhere it was asked.
func (b *bisector) never() error {
	what := term.Count(len(b.way), "state", "states")
	if b.scan {
		what = "any of " + what
	} else {
		what = b.asked[len(b.way)-1].place() + ", the last of " + what
	}
	f := fail(exitNotFound, "", "%s: it does not hold at %s", b.source.path, what)
	if !b.scan && !b.run {
		f.next = try("bisect", b.source.path, b.text, "--scan")
	}
	return f
}

// scanned asks all states in turn, up to the first that is bad.
func (b *bisector) scanned(ctx context.Context, last int) (first int, err error) {
	states := visited(func(visit func(*inspect.Image) error) error {
		if err := b.cursor.Seek(ctx, b.way[0]); err != nil {
			return err
		}
		if err := visit(b.cursor.Image()); err != nil {
			return err
		}
		return b.source.Walk(ctx, b.way[0], b.way[last], func(im *inspect.Image, _ *inspect.Commit) error { return visit(im) })
	})
	i := 0
	for im, err := range states {
		if err != nil {
			return 0, err
		}
		if v, err := b.ask(ctx, i, im); err != nil || v == bad {
			return i, err
		}
		delete(b.asked, i-1)
		i++
	}
	return 0, b.never()
}

// found prints the result: state i of the way.
func (b *bisector) found(i int) {
	if !b.scan {
		term.Table(b.Out, b.doc.Probes, func(p probeDoc) []any { return []any{p.Tick, p.Seq, p.Verdict} }, ">TICK", ">RECORD", "HOLDS")
		b.Line("")
	}
	b.Line("first at %s", b.doc.place())
	switch {
	case i == 0:
		b.Line("that is the first of %s: it may have held before", term.Count(len(b.way), "state", "states"))
	case b.scan:
		b.Line("%s before it asked, one by one", term.Count(i, "state", "states"))
	default:
		b.Line("%s of %d asked, by halves: once it holds, it is taken to stay true", term.Count(len(b.doc.Probes), "state", "states"), len(b.way))
	}
	if b.doc.Before != nil {
		b.Line("see: %s", b.next())
	}
}

// next returns the command that shows what happened in the tick that was found.
func (b *bisector) next() string {
	seq := fmt.Sprintf("seq:%d", b.doc.Seq)
	if b.entity != "" {
		return try("history", b.source.path, b.entity, fmt.Sprintf("seq:%d..%s", b.doc.Before.Seq, seq))
	}
	return try("log", b.source.path, seq, "-p")
}

// exitSkip is what a command exits with that cannot judge a state. What is above
// exitBad is no verdict: it ends the search.
const (
	exitSkip = 125
	exitBad  = 127
)

// runner sets a judge that runs the command for each state, which is a save in a directory
// of its own; end removes that.
func (b *bisector) runner() (end func(), err error) {
	dir, err := os.MkdirTemp("", "ecsdump-bisect-")
	b.judge = func(ctx context.Context, im state) (verdict, error) {
		file := filepath.Join(dir, fmt.Sprintf("%d.save", im.seq))
		if err := writeSave(ctx, im, file); err != nil {
			return skip, err
		}
		defer os.Remove(file)
		args := listed(b.command, func(arg string) string { return strings.ReplaceAll(arg, "{}", file) })
		cmd := exec.CommandContext(ctx, args[0], args[1:]...)
		cmd.Env = append(os.Environ(),
			"ECSDUMP_SAVE="+file, fmt.Sprintf("ECSDUMP_TICK=%d", im.Tick), fmt.Sprintf("ECSDUMP_SEQ=%d", im.seq))
		cmd.Stdout, cmd.Stderr = b.stderr, b.stderr
		return b.verdict(im, cmd.Run())
	}
	return func() { _ = os.RemoveAll(dir) }, system(err) // It is in the system's directory for such files.
}

// verdict returns what it means that the command ended with err.
func (b *bisector) verdict(im state, err error) (verdict, error) {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return good, nil
	case !errors.As(err, &exit):
		return skip, system(err)
	case exit.ExitCode() == exitSkip:
		return skip, nil
	case exit.ExitCode() < 0 || exit.ExitCode() > exitBad:
		return skip, fail(exitProblem, "", "%s at %v: %w: no verdict", b.command[0], im, exit)
	}
	return bad, nil
}

// writeSave writes im as a save.
func writeSave(ctx context.Context, im state, file string) error {
	w, err := im.World(ecs.Options{})
	if err != nil {
		return err
	}
	return system(persist.Save(ctx, file, w))
}
