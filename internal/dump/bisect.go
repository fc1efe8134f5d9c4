package dump

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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
	stateDoc            // The first state for which the condition holds; with --last the newest at which it changed.
	Holds    bool       `json:"holds"`  // There. Only with --last it may not.
	Before   stateDoc   `json:"before"` // The last state before it of which is known whether it holds: for that it is the other way round.
	States   int        `json:"states"` // In the range.
	Asked    int        `json:"asked"`  // How many of them were.
	Scan     bool       `json:"scan"`   // All states up to it were asked; else it is taken to stay true.
	Last     bool       `json:"last"`   // All states from it on were asked.
	Probes   []probeDoc `json:"probes"` // In the order in which they were asked; with --scan and --last empty.
}

// A probeDoc is a state that was asked.
type probeDoc struct {
	stateDoc
	Verdict string `json:"verdict"` // true, false or skip.
}

// flipsDoc is what bisect --flips --json prints.
type flipsDoc struct {
	States int       `json:"states"` // In the range. All were asked.
	Flips  []flipDoc `json:"flips"`  // In the order of the ticks.
	End    string    `json:"end"`    // Whether it holds at the last state of which that is known: true or false; skip: of none.
}

// A flipDoc is a state for which the condition holds, and did not before, or the other way
// round.
type flipDoc struct {
	stateDoc
	Holds  bool     `json:"holds"`
	Before stateDoc `json:"before"` // The last state before it of which is known whether it holds.
}

var bisectCommand = command{
	use: "bisect STORE EXPR [A..B] | bisect STORE [A..B] --run -- CMD ARGS…",
	doc: `Find the tick at which a condition begins to hold, or changes

Find the first tick at which a condition holds, on the way to --at or from A to
B. It asks few of them, by halves: once the condition holds it is taken to stay
true. --scan asks every tick in turn and needs no such promise; neither do --last,
which finds the last tick at which the condition changed, to true or to false, and
--flips, which lists all that there are.

A condition that holds at the first state as well as at the last did not begin
between them, and that is an error: worlds begin empty, so what says that something
is not there holds at first.

The condition is on the whole world,

  ecsdump bisect D 'any(Position.X > 10)'
  ecsdump bisect D 'count(Health <= 0) > 3'
  ecsdump bisect D 'not exists("12v3")' --last
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
  ecsdump bisect D 'not exists("12v3")' --last
  ecsdump bisect D 'Health < 10' --entity 12v3 --flips
  ecsdump bisect D 100..200 --run -- ./check.sh {}`,
	complete: []completer{nil, (*completion).ranges},
	run: func(f flags) action {
		b := new(bisector)
		f.entity(&b.entity, "the condition is on this entity")
		f.BoolVar(&b.scan, "scan", false, "ask every tick, one after the other")
		f.BoolVar(&b.last, "last", false, "find the last tick at which it changed")
		f.BoolVar(&b.flips, "flips", false, "list all ticks at which it changed")
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

// A bisector looks among the states of a way for those that are bad, for which a condition
// holds: for the first of them, or where good and bad ones meet.
type bisector struct {
	*app
	at                     point
	text                   string // The condition.
	span                   string // A..B, or "".
	entity                 string
	scan, last, flips, run bool
	command                []string

	source *source
	way    way
	cursor *inspect.Cursor
	judge  judge
	count  int           // States asked.
	asked  map[int]probe // Of the way, by halves.
	oldest probe         // The first and the last that were judged, in turn.
	newest probe
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

// A probe is state i of the way, and what the judge said.
type probe struct {
	stateDoc
	i       int
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
	if len(args) < least || len(args) > least+1 || b.run && len(b.command) == 0 {
		return c.misused("usage: ecsdump %s", c.flags.cmd.Use)
	}
	if !b.run {
		b.text = args[1]
	}
	if b.span = strings.Join(args[least:], ""); b.span != "" && c.flags.Changed("at") {
		return c.misused("give either --at or a range")
	}
	return cmp.Or(c.oneOf("scan", "last", "flips"), c.oneOf("run", "entity"))
}

// bisect finds the state, or all of them, and prints it.
func (b *bisector) bisect(ctx context.Context, s *source) (err error) {
	b.source, b.asked = s, map[int]probe{}
	if b.way, err = s.way(b.span, b.at); err != nil {
		return err
	}
	last := len(b.way) - 1
	if b.cursor, err = s.Cursor(ctx, b.way[last]); err != nil {
		return err
	}
	end, err := b.appoint(ctx, state{b.cursor.Image(), b.way[last]})
	if err != nil {
		return err
	}
	defer end()
	if b.flips {
		return b.list(b.changes(ctx, 0, last))
	}
	doc := bisectDoc{States: len(b.way), Scan: b.scan, Last: b.last, Probes: []probeDoc{}}
	find := b.halved
	switch {
	case b.scan:
		find = b.first
	case b.last:
		find = b.newestOf
	}
	at, err := find(ctx, last, &doc)
	if err != nil {
		return err
	}
	doc.stateDoc, doc.Holds, doc.Before, doc.Asked = at.stateDoc, at.Holds, at.Before, b.count
	return b.tell(doc, func() { b.found(&doc) })
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
func (b *bisector) appoint(ctx context.Context, im state) (end func(), err error) {
	if b.run {
		return b.runner()
	}
	e, want := ecs.Vacant, query.WantWorld
	if b.entity != "" {
		want = query.WantCondition
		if e, err = b.source.entity(ctx, b.app, b.entity, im.seq); err != nil {
			return nil, err
		}
		b.entity = e.String()
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

// ask asks the judge about im, state i of the way.
func (b *bisector) ask(ctx context.Context, i int, im *inspect.Image) (probe, error) {
	now := state{im, b.way[i]}
	v, err := b.judge(ctx, now)
	b.count++
	return probe{now.doc(), i, v}, err
}

// halved finds the first bad state by halves. The ends come first: if the last state is
// good there is nothing to find, and neither is there if the first is bad already.
func (b *bisector) halved(ctx context.Context, last int, doc *bisectDoc) (at flipDoc, err error) {
	probe := func(i int) (verdict, error) {
		v, err := b.probe(ctx, i)
		doc.Probes = append(doc.Probes, probeDoc{b.asked[i].stateDoc, v.String()})
		return v, err
	}
	switch v, err := probe(last); {
	case err != nil:
		return at, err
	case v == skip:
		return at, fail(exitProblem, "", "%s: the last state cannot be judged", b.source.path)
	case v == good:
		return at, fail(exitNotFound, b.again("--scan"), "%s: it does not hold at %s, the last of %s", b.source.path, b.asked[last].place(), b.states())
	case last == 0:
		return at, fail(exitNotFound, "", "%s: it holds at %s, the only state: nobody knows since when", b.source.path, b.asked[0].place())
	}
	if v, err := probe(0); err != nil {
		return at, err
	} else if v == bad {
		return at, fail(exitNotFound, b.again("--last")+"\n"+b.again("--flips"), "%s: it holds at %s already, the first of %s, and at %s, the last: it did not begin between them",
			b.source.path, b.asked[0].place(), b.states(), b.asked[last].place())
	}
	first, err := b.narrow(last, probe)
	return flipDoc{b.asked[first].stateDoc, true, b.asked[first-1].stateDoc}, err
}

// probe asks about state i of the way. States are reached from the one asked before, or
// from a snapshot if that is nearer: the cursor knows.
func (b *bisector) probe(ctx context.Context, i int) (verdict, error) {
	if b.cursor.Seq() != b.way[i] {
		if err := b.cursor.Seek(ctx, b.way[i]); err != nil {
			return skip, err
		}
	}
	p, err := b.ask(ctx, i, b.cursor.Image())
	b.asked[i] = p
	return p.verdict, err
}

// skipped reports whether state i of the way was asked in vain.
func (b *bisector) skipped(i int) bool { return b.asked[i].verdict == skip }

// narrow finds the first bad state up to hi, which is bad, as probe says it.
//
// Always hi is bad, and lo is good, or is the first state and was skipped. States that are
// skipped move neither end: the next nearest to the middle is asked in their place, so that
// the search only ends undecided when all between lo and hi was skipped.
func (b *bisector) narrow(hi int, probe func(i int) (verdict, error)) (int, error) {
	lo := 0
	for hi-lo > 1 {
		i, ok := b.middle(lo, hi)
		if !ok {
			break
		}
		switch v, err := probe(i); {
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

// changes iterates over the states first to last of the way that are good while the one
// judged before them is bad, or the other way round. It asks all of them in turn.
func (b *bisector) changes(ctx context.Context, first, last int) iter.Seq2[flipDoc, error] {
	return visited(func(visit func(flipDoc) error) error {
		b.oldest, b.newest = probe{verdict: skip}, probe{verdict: skip}
		i := first
		ask := func(im *inspect.Image) error {
			p, err := b.ask(ctx, i, im)
			if i++; err != nil || p.verdict == skip {
				return err
			}
			was := b.newest
			if b.newest = p; was.verdict == skip {
				b.oldest = p
			} else if was.verdict != p.verdict {
				return visit(flipDoc{p.stateDoc, p.verdict == bad, was.stateDoc})
			}
			return nil
		}
		if err := b.cursor.Seek(ctx, b.way[first]); err != nil {
			return err
		}
		if err := ask(b.cursor.Image()); err != nil {
			return err
		}
		return b.source.Walk(ctx, b.way[first], b.way[last], func(im *inspect.Image, _ *inspect.Commit) error { return ask(im) })
	})
}

// first finds the first change to bad.
func (b *bisector) first(ctx context.Context, last int, _ *bisectDoc) (flipDoc, error) {
	changed := false
	for at, err := range b.changes(ctx, 0, last) {
		if err != nil || at.Holds {
			return at, err
		}
		changed = true
	}
	text := b.unchanged()
	if changed {
		text = "it holds at the first of " + b.states() + ", and does not begin to hold behind that"
	}
	return flipDoc{}, fail(exitNotFound, "", "%s: %s", b.source.path, text)
}

// newestOf finds the last change. It goes back block by block, each twice as long as the one
// behind it, so that a change that is not long ago is found soon, and one that is by asking
// twice as many states as there are at most. A block ends with the first state of which is
// known what it is in the block behind it.
func (b *bisector) newestOf(ctx context.Context, last int, _ *bisectDoc) (at flipDoc, err error) {
	for size := backwardBlock; ; size *= 2 {
		first, changed := max(0, last-size), false
		for at, err = range b.changes(ctx, first, last) {
			if changed = true; err != nil {
				return at, err
			}
		}
		if changed {
			return at, nil
		}
		if first == 0 {
			return at, fail(exitNotFound, "", "%s: %s", b.source.path, b.unchanged())
		}
		if b.oldest.verdict != skip {
			last = b.oldest.i
			b.count-- // It is asked again.
		}
	}
}

// unchanged says what is known of states among which there is no change.
func (b *bisector) unchanged() string {
	switch b.newest.verdict {
	case bad:
		return "it holds at all of " + b.states()
	case good:
		return "it does not hold at any of " + b.states()
	}
	return "none of " + b.states() + " can be judged"
}

// states says how many there are.
func (b *bisector) states() string { return term.Count(len(b.way), "state", "states") }

// list prints all changes.
func (b *bisector) list(changes iter.Seq2[flipDoc, error]) error {
	if b.json {
		doc := &flipsDoc{States: len(b.way), Flips: []flipDoc{}}
		return stream(b.app, doc, func(yield func(flipDoc, error) bool) {
			for at, err := range changes {
				if !yield(at, err) {
					return
				}
			}
			doc.End = b.newest.verdict.String()
		})
	}
	g, n := b.Grid(">TICK", ">RECORD", "HOLDS"), 0
	for at, err := range changes {
		if err != nil {
			g.Flush()
			return err
		}
		g.Row(at.Tick, at.Seq, at.Holds)
		n++
	}
	if n == 0 {
		b.Line("it never changes: %s", b.unchanged())
		return nil
	}
	g.Flush()
	b.Line("")
	b.Line("%s, %s asked", term.Count(n, "change", "changes"), b.states())
	return nil
}

// again returns this call with another flag.
func (b *bisector) again(flag string) string {
	words := []string{b.source.path}
	for _, word := range []string{b.text, b.span} {
		if word != "" {
			words = append(words, word)
		}
	}
	if b.entity != "" {
		words = append(words, "--entity", b.entity)
	}
	if b.at.at != "@latest" {
		words = append(words, "--at", b.at.at)
	}
	if words = append(words, flag); b.run {
		words = slices.Concat(words, []string{"--run", "--"}, b.command)
	}
	return try("bisect", words...)
}

// found prints the result.
func (b *bisector) found(doc *bisectDoc) {
	if len(doc.Probes) > 0 {
		term.Table(b.Out, doc.Probes, func(p probeDoc) []any { return []any{p.Tick, p.Seq, p.Verdict} }, ">TICK", ">RECORD", "HOLDS")
		b.Line("")
	}
	switch {
	case b.scan:
		b.Line("first at %s", doc.place())
		b.Line("%s before it asked, one by one", term.Count(b.count-1, "state", "states"))
	case b.last:
		b.Line("last change at %s: %s", doc.place(), map[bool]string{true: "it holds since then", false: "it does not hold any more"}[doc.Holds])
		b.Line("%s of %d asked, from the last one back", term.Count(b.count, "state", "states"), len(b.way))
	default:
		b.Line("first at %s", doc.place())
		b.Line("%s of %d asked, by halves: once it holds, it is taken to stay true", term.Count(b.count, "state", "states"), len(b.way))
	}
	b.Line("see: %s", b.next(doc))
}

// next returns the command that shows what happened in the tick that was found.
func (b *bisector) next(doc *bisectDoc) string {
	seq := fmt.Sprintf("seq:%d", doc.Seq)
	if b.entity != "" {
		return try("history", b.source.path, b.entity, fmt.Sprintf("seq:%d..%s", doc.Before.Seq, seq))
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
