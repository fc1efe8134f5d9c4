package dump

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/internal/describe"
	"github.com/stet-ecs/stet/internal/query"
	"github.com/stet-ecs/stet/internal/term"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
)

// Bisect searches the ticks at which a condition changes. A scan reads every tick, and evaluates
// only what the tick changed. A search by halves loads a few states.
//
//	STORE, A..B ──▶ route ──▶ the states from A to B, and which of them damage hides
//	EXPR, CMD   ──▶ judge ──▶ a verdict on one state: true, false or skip
//	first, halved, newestOf or list: choose the states to judge, until the search ends
//
// The result names the state before, and the assumptions of the search, so a reader of the
// document can tell facts from assumptions. A search by halves assumes that the condition stays
// true once it holds. A scan assumes nothing.
//
// Damage does not end the search. An unreadable state gets the verdict skip, like a state that a
// command cannot judge. The damage is reported after the result, with its exit status.

// bisectDoc is what bisect --json prints.
type bisectDoc struct {
	// The first state for which the condition holds; with --last, the newest at which it changed.
	stateDoc
	// Whether the condition holds at this state. Can be false only with --last.
	Holds bool `json:"holds"`
	// The last judged state before it; its verdict is the opposite.
	Before stateDoc `json:"before"`
	States int      `json:"states"` // Number of states in the range.
	Asked  int      `json:"asked"`  // Number of states that were judged.
	// True if all states up to the result were judged; otherwise the condition is assumed to stay
	// true.
	Scan bool `json:"scan"`
	// Set by a scan if the condition held at the first state and stopped holding later.
	Held *heldDoc `json:"held,omitempty"`
	// True with --last: all states from the result on were judged.
	Last bool `json:"last"`
	// The builds that wrote the state before and this one, if they differ.
	Builds *describe.Builds `json:"builds,omitempty"`
	// The states that a search by halves judged, in order; empty for a scan.
	Probes []probeDoc `json:"probes"`

	by *bisector
}

// A heldDoc is the range at the beginning in which a condition held before it stopped holding.
type heldDoc struct {
	From stateDoc `json:"from"` // The first judged state of the range.
	// The last judged state before the first one for which the condition does not hold.
	To stateDoc `json:"to"`
}

func (d heldDoc) String() string {
	if d.From == d.To {
		return fmt.Sprintf("at tick %d", d.From.Tick)
	}
	return fmt.Sprintf("from tick %d to %d", d.From.Tick, d.To.Tick)
}

// A probeDoc is a judged state.
type probeDoc struct {
	stateDoc
	Verdict string `json:"verdict"` // true, false or skip.

	i int // Index in the states of the route.
}

// flipsDoc is what bisect --flips --json prints.
type flipsDoc struct {
	States int       `json:"states"` // Number of states in the range; all were judged.
	Flips  []flipDoc `json:"flips"`  // Ordered by tick.
	// Whether the condition holds at the last judged state: true or false; skip if no state was
	// judged.
	End string `json:"end"`
}

// A flipDoc is a state whose verdict differs from that of the last judged state before it.
type flipDoc struct {
	stateDoc
	Holds  bool     `json:"holds"`
	Before stateDoc `json:"before"` // The last judged state before it.
	// The builds that wrote the state before and this one, if they differ.
	Builds *describe.Builds `json:"builds,omitempty"`
}

var bisectCommand = command{
	use: "bisect STORE EXPR [A..B] | bisect STORE [A..B] --run -- CMD ARGS…",
	doc: `Find the tick at which a condition begins to hold, or changes

Find the first tick at which a condition begins to hold, on the way to --at or from A
to B. Every tick is asked in turn until one is found; only those entities are asked
again that a tick changed, so that many ticks take little more than reading them.
If the condition held before, as "is not there" does in an empty world, the answer says
from when to when. --last finds the last tick at which the condition changed, to true
or to false, and --flips lists all of them.

--halve asks few ticks, by halves. It is for a condition that stays true once it holds:
if it does not, the answer is one of the ticks at which it begins. It refuses a
condition that holds at the first tick as well as at the last.

Ticks that damage hides cannot be judged, and are skipped. If another build of the
program or another machine goes on at the tick that is found, a line names both.

The condition is on the whole world,

  ecsdump bisect D 'any(Position.X > 10)'
  ecsdump bisect D 'count(Health <= 0) > 3'
  ecsdump bisect D 'not exists("12v3")' --last
  ecsdump bisect D 'score > 100 and alive < 50'

where any, all, none and count take a condition on entities, and sum, min, max, avg,
distinct and p0 to p100, the percentiles, an expression; or, with --entity, on one entity, false while it is not alive:

  ecsdump bisect D 'Health < 10' --entity 12v3

With --run a command decides, of a state that is written as a save, whose name takes
the place of {} in the arguments and is in ECSDUMP_SAVE; ECSDUMP_TICK and
ECSDUMP_RECORD name the state. Other arguments stay as they are given, with names and
passwords in URLs. It is asked by halves, or with --scan about every tick. It exits with 0: the condition does not hold (good),
1 to 127: it holds (bad), but 125: this state cannot be judged.

  ecsdump bisect D --run -- ./check.sh {}

` + expressionHelp,
	example: `  ecsdump bisect D 'any(Position.X > 10)'
  ecsdump bisect D 'tick > 150 and alive > 50' 100..200 --halve
  ecsdump bisect D 'not exists("12v3")' --last
  ecsdump bisect D 'Health < 10' --entity 12v3 --flips
  ecsdump bisect D 100..200 --run -- ./check.sh {}`,
	complete: []completer{nil, (*completion).ranges},
	run: func(f flags) action {
		b := new(bisector)
		f.entity(&b.entity, "the condition is on this entity")
		f.BoolVar(&b.scan, "scan", false, "ask every tick in turn; the default without --run")
		f.BoolVar(&b.halve, "halve", false, "ask few ticks, by halves; the default with --run")
		f.BoolVar(&b.last, "last", false, "find the last tick at which it changed")
		f.BoolVar(&b.flips, "flips", false, "list all ticks at which it changed")
		f.BoolVar(&b.run, "run", false, "run the command behind -- for each state")
		f.point(&b.at)
		return func(c *call) error {
			if err := b.arguments(c); err != nil {
				return err
			}
			return c.read(c.args[0], b.bisect)
		}
	},
}

// A bisector searches the states of a route for bad states, for which a condition holds. It finds
// the first one, or the places where the verdict changes.
//
//	         judges                      finds
//	--scan   all, in turn (first)        the first bad state after a good one
//	--halve  few, by halves (halved)     the first bad state, if all later ones are bad
//	--last   the last ones (newestOf)    the last state whose verdict differs from the one before
//	--flips  all, in turn (list)         all states whose verdict differs from the one before
//
// The words good and bad are those of git bisect. Each judged state is loaded. A judge sees only
// the state, so it can be a program that does not read stores. In a scan, a condition is updated
// with what each tick changed.
//
// The fields come in three groups: the command line, the route with its cursor and its damage,
// and the results so far.
type bisector struct {
	at      string
	text    string // The condition.
	span    string // A..B, or "" for all states.
	entity  string
	scan    bool
	halve   bool
	last    bool
	flips   bool
	run     bool
	command []string

	*route
	judge judge
	count int // Number of judged states.
	// Verdicts by index, kept for states that may be visited again: all of a search by halves,
	// the skipped ones of a scan.
	asked map[int]probeDoc
	// First judged state of a scan; newest is the last one.
	oldest probeDoc
	newest probeDoc
	// In a scan, the range at the beginning in which the condition held, once it stops holding.
	held *heldDoc
	doc  *bisectDoc
}

// A judge decides whether a state is bad. c is the tick that led to the state if the state before
// it was the last one judged; otherwise nil.
type judge func(im state, c *inspect.Commit) (verdict string, err error)

// Verdicts: whether the condition holds.
const (
	good = "false"
	bad  = "true"
	skip = "skip" // Unknown.
)

// arguments parses the command line. Cobra removes "--" and only reports its position: with
// --run, everything after it is the command. Without --run, an expression and perhaps a range
// follow STORE. With --run, only the range can stand between STORE and the command.
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
	// At most one word is left: the range. Join returns "" if no word is left.
	if b.span = strings.Join(args[least:], ""); b.span != "" && c.flags.Changed("at") {
		return c.misused("give either --at or a range")
	}
	if !b.last && !b.flips && !b.halve {
		b.scan, b.halve = b.scan || !b.run, b.run && !b.scan
	}
	return cmp.Or(c.exclusive("scan", "halve", "last", "flips"), c.exclusive("run", "entity"))
}

// bisect finds the state, or all changes, and prints them.
//
// The judge is made for the last state before any state is judged, so a condition that does not
// compile costs one state. If nothing is found and damage hid some states, the failure is the
// damage: the searched state may be among them.
func (b *bisector) bisect(s *source) (err error) {
	b.asked = map[int]probeDoc{}
	if b.route, err = s.route(b.span, b.at); err != nil {
		return err
	}
	last := len(b.states) - 1
	// The cursor of a new route stands at its end.
	end, err := b.appoint(b.route.end())
	if err != nil {
		return err
	}
	defer end()
	b.doc = &bisectDoc{States: len(b.states), Scan: b.scan, Last: b.last, Probes: []probeDoc{}, by: b}
	find := b.first // Each of these finds one state; list prints changes while it finds them.
	switch {
	case b.flips:
		return cmp.Or(b.list(last), b.unread)
	case b.halve:
		find = b.halved
	case b.last:
		find = b.newestOf
	}
	at, err := find(last)
	switch {
	case err != nil && b.unread != nil: // Damage may hide the searched state.
		return notFoundIn(classify(b.path, b.unread), classify(b.path, err))
	case err != nil:
		return err
	}
	b.doc.stateDoc, b.doc.Holds, b.doc.Before, b.doc.Asked = at.stateDoc, at.Holds, at.Before, b.count
	b.doc.Held, b.doc.Builds = b.held, at.Builds
	return cmp.Or(s.tell(b.doc), b.unread)
}

// appoint sets the judge that the command line asks for: a command, or a condition that is
// compiled for im, the last state. The last state most likely has all components that the
// condition names. Calling end removes the files of the judge.
//
//	--run             the command, see runner
//	--entity          a condition on the entity; false while that is not alive
//	neither of these  a condition on the whole world
//
// Given the tick that led to a state, a condition evaluates only what the tick changed. Without a
// tick, as in a search by halves, it evaluates the whole state. The components may differ between
// two states, so the condition may be compiled again, which can fail.
func (b *bisector) appoint(im state) (end func(), err error) {
	if b.run {
		return b.runner()
	}
	e, want := ecs.Vacant, query.WantWorld
	if b.entity != "" {
		want = query.WantCondition
		if e, err = b.source.entity(b.entity, im.seq); err != nil {
			return nil, err
		}
		b.entity = e.String()
	}
	x, err := b.compile(im, "bisect", b.text, want)
	b.judge = func(im state, c *inspect.Commit) (string, error) {
		if err := x.Follow(im.Image, c); err != nil {
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

// ask judges im, state i of the route, to which c led. The state counts as judged whatever the
// verdict is. A skipped state is not judged twice: only a command skips, and a command needs no
// tick.
func (b *bisector) ask(i int, im *inspect.Image, c *inspect.Commit) (probeDoc, error) {
	if p, ok := b.asked[i]; ok {
		return p, nil
	}
	now := state{im, b.states[i]}
	v, err := b.judge(now, c)
	b.count++
	p := probeDoc{now.doc(), v, i}
	if v == skip {
		b.asked[i] = p
	}
	return p, err
}

// halved finds the first bad state by halves. It judges the ends first: if the last state is
// good, or the first one is bad, the search ends.
//
//	first   last    answer
//	any     skip    unknown
//	any     good    not found; a scan could still find bad states in between
//	bad     bad     no change in between: an error that suggests --last and --flips
//	good    bad     narrow finds the first bad state
//	skip    bad     the same, but skipped states may precede the first bad one
//
// The first state is judged second, because the verdict of the last one alone can end the search.
func (b *bisector) halved(last int) (at flipDoc, err error) {
	end, err := b.probe(last)
	switch {
	case err != nil:
		return at, err
	case end.Verdict == skip:
		return at, fail(exitProblem, "", "%s: the last state cannot be judged", b.path)
	case end.Verdict == good:
		return at, b.missing(b.again("--scan"), "it does not hold at %s, the last of %v", end.place(), b.states)
	case last == 0:
		return at, b.missing("", "it holds at %s, the only state: when it began is unknown", end.place())
	}
	begin, err := b.probe(0)
	switch {
	case err != nil:
		return at, err
	case begin.Verdict == bad:
		return at, b.missing(b.again("--last")+"\n"+b.again("--flips"), "it holds at %s already, the first of %v, and at %s, the last: it did not begin between them",
			begin.place(), b.states, end.place())
	}
	first, err := b.narrow(0, last)
	if err != nil {
		return at, err
	}
	return b.flip(b.asked[first], b.asked[first-1]), nil
}

// probe judges state i of the route. The cursor moves there from the last state, or from a
// snapshot if that is nearer. The judge gets no tick, because the last judged state is not the
// one before. If damage hides the state, only its record is known. The search then skips this
// state and all states that need the same records.
func (b *bisector) probe(i int) (p probeDoc, err error) {
	if b.cursor.Seq() != b.states[i] {
		if err := b.cursor.Seek(b.ctx, b.states[i]); damaged(err) {
			b.pass(i, err)
			return probeDoc{stateDoc{Seq: b.states[i]}, skip, i}, nil
		} else if err != nil {
			return p, err
		}
	}
	p, err = b.ask(i, b.cursor.Image(), nil)
	b.asked[i] = p
	b.doc.Probes = append(b.doc.Probes, p)
	return p, err
}

// skipped reports whether state i of the route was skipped or is unreadable.
func (b *bisector) skipped(i int) bool { return b.lost[i] || b.asked[i].Verdict == skip }

// narrow finds the first bad state after lo, up to hi.
//
// The state hi is bad. The state lo is good, or is the first state and was skipped. A skipped
// state moves neither end: the next nearest to the middle is judged instead. So the search is
// undecided only if all states between lo and hi were skipped.
//
// At the end every state between lo and hi was skipped. If hi-1 is lo and was judged, hi is the
// answer. Otherwise any state after lo may be the first bad one, and lo too if it was skipped.
// The failure then names these records.
func (b *bisector) narrow(lo, hi int) (int, error) {
	for hi-lo > 1 {
		i, ok := b.middle(lo, hi)
		if !ok {
			break
		}
		switch p, err := b.probe(i); {
		case err != nil:
			return 0, err
		case p.Verdict == bad:
			hi = i
		case p.Verdict == good:
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
	return 0, fail(exitProblem, "", "%s: it is one of records %d to %d; those before the last cannot be judged", b.path, b.states[first], b.states[hi])
}

// middle returns the state nearest to the middle between lo and hi that was not skipped, the
// earlier one on a tie. It returns false if all were skipped.
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

// changes walks over the states first to last of the route whose verdict differs from the last
// judged state. It judges all of them in order.
//
// A skipped state is ignored, so the two judged states of a change may be far apart, and each
// change names the state before. Each call resets oldest and newest, which then say whether any
// state was judged.
func (b *bisector) changes(first, last int, visit func(flipDoc) error) error {
	b.oldest, b.newest = probeDoc{Verdict: skip}, probeDoc{Verdict: skip}
	return b.each(first, last, func(i int, im *inspect.Image, c *inspect.Commit) error {
		p, err := b.ask(i, im, c)
		if err != nil || p.Verdict == skip {
			return err
		}
		was := b.newest
		if b.newest = p; was.Verdict == skip {
			b.oldest = p
		} else if was.Verdict != p.Verdict {
			return visit(b.flip(p, was))
		}
		return nil
	})
}

// flip returns the change from the state of before to the state of p.
func (b *bisector) flip(p, before probeDoc) flipDoc {
	return flipDoc{p.stateDoc, p.Verdict == bad, before.stateDoc, describe.BuildsOf(b.Build(before.Seq), b.Build(p.Seq))}
}

// first finds the first change to bad. A change to good comes earlier only if the condition holds
// at the beginning; it sets held.
func (b *bisector) first(last int) (at flipDoc, err error) {
	err = b.changes(0, last, func(f flipDoc) error {
		if f.Holds {
			at = f
			return errEnough
		}
		b.held = &heldDoc{b.oldest.stateDoc, f.Before}
		return nil
	})
	switch {
	case err != nil:
		return at, ended(err)
	case b.held != nil:
		return at, b.missing(b.again("--last"), "it holds %v, and does not begin to hold again in the rest of %v", b.held, b.states)
	}
	return at, b.missing("", "%s", b.unchanged())
}

// newestOf finds the last change. It goes back block by block, doubling the size each time. A
// recent change is found soon, and an old one costs at most twice the number of states. A block
// ends with the first judged state of the block after it.
//
//	states    ·········|················|········| last
//	blocks         3.        2.             1.          judged forward, newest block first
//
// Within a block it judges forward, because only then can a condition follow the ticks. The last
// change of the block is the answer. A block ends with oldest, the first judged state of the
// block after it, so a change between two blocks is found.
func (b *bisector) newestOf(last int) (at flipDoc, err error) {
	for size := backwardBlock; ; size *= 2 {
		first, changed := max(0, last-size), false
		err := b.changes(first, last, func(f flipDoc) error {
			at, changed = f, true
			return nil
		})
		switch {
		case err != nil || changed:
			return at, err
		case first == 0:
			return at, b.missing("", "%s", b.unchanged())
		// Otherwise the whole block was skipped: the next block ends at the same state, and is
		// longer.
		case b.oldest.Verdict != skip:
			last = b.oldest.i
			b.asked[last] = b.oldest // It is also the end of the next block.
		}
	}
}

// unchanged describes states among which the verdict does not change.
func (b *bisector) unchanged() string {
	texts := map[string]string{good: "it does not hold at any of %v", bad: "it holds at all of %v", skip: "none of %v can be judged"}
	return fmt.Sprintf(texts[b.newest.Verdict], b.states)
}

// list prints all changes. As text, they are rows that are printed as they are found. Without
// changes it prints the constant verdict.
func (b *bisector) list(last int) error {
	if b.json {
		doc := &flipsDoc{States: len(b.states), Flips: []flipDoc{}}
		return stream(b.app, doc, func(visit func(flipDoc) error) error {
			err := b.changes(0, last, visit)
			// Members after the list are printed after it, so End can be set here.
			doc.End = b.newest.Verdict
			return err
		})
	}
	changes := func(visit func(flipDoc) error) error { return b.changes(0, last, visit) }
	g := b.Grid(">TICK", ">RECORD", "HOLDS")
	n, err := rows(b.app, changes, g, func(at flipDoc) {
		g.Row(at.Tick, at.Seq, at.Holds)
		if line := at.Builds.Line("the state before", "this one"); line != "" {
			g.Text("%s", line)
		}
	})
	switch {
	case err != nil:
		return err
	case n == 0:
		b.Line("it never changes: %s", b.unchanged())
	default:
		b.Line("")
		b.Line("%s, %v asked", term.Count(n, "change", "changes"), b.states)
	}
	return nil
}

// again returns this call with another flag, for a failure to suggest. It omits --at if it is the
// default, and arguments that were not given.
func (b *bisector) again(flag string) string {
	words := []string{b.path, b.text, b.span}
	if b.entity != "" {
		words = append(words, "--entity", b.entity)
	}
	if b.at != "@latest" {
		words = append(words, "--at", b.at)
	}
	if words = append(words, flag); b.run {
		words = slices.Concat(words, []string{"--run", "--"}, b.command)
	}
	return try("bisect", slices.DeleteFunc(words, func(word string) bool { return word == "" })...)
}

// print prints the steps of a search by halves, then the result, its certainty, and the command
// to run next.
func (d *bisectDoc) print(a *app) {
	if len(d.Probes) > 0 {
		term.Table(a.Out, d.Probes, func(p probeDoc) []any { return []any{p.Tick, p.Seq, p.Verdict} }, ">TICK", ">RECORD", "HOLDS")
		a.Line("")
	}
	switch {
	case d.Scan:
		again := ""
		if d.Held != nil {
			again = fmt.Sprintf("; it also held %v", d.Held)
		}
		a.Line("begins at %s%s", d.place(), again)
		a.Line("%s of %d asked, in turn, up to it; --flips lists all changes", term.Count(d.Asked, "state", "states"), d.States)
	case d.Last:
		a.Line("last change at %s: %s", d.place(), map[bool]string{true: "it holds since then", false: "it does not hold any more"}[d.Holds])
		a.Line("%s of %d asked, from the last one back", term.Count(d.Asked, "state", "states"), d.States)
	default:
		a.Line("begins at %s", d.place())
		a.Line("%s of %d asked, by halves: once it holds, it is taken to stay true", term.Count(d.Asked, "state", "states"), d.States)
	}
	// The previous state of the route is not the last judged one: states between them were
	// skipped or are damaged.
	if i := slices.Index(d.by.states, d.Seq); i > 0 && d.by.states[i-1] != d.Before.Seq {
		a.Line("the states between %s and it are unknown", d.Before.place())
	}
	if line := d.Builds.Line("the state before", "this one"); line != "" {
		a.Line("%s", line)
	}
	a.Line("see: %s", d.by.next())
}

// next returns the command that shows the tick of the result. For a condition on an entity, this
// is its history since the last judged state, because any tick in between may be the cause.
// Otherwise it is what the tick changed.
func (b *bisector) next() string {
	seq := fmt.Sprintf("record:%d", b.doc.Seq)
	if b.entity != "" {
		return try("history", b.path, b.entity, fmt.Sprintf("record:%d..%s", b.doc.Before.Seq, seq))
	}
	return try("log", b.path, seq, "-p")
}

// Exit statuses of a command, as for git bisect run: 0 is good, exitSkip skips the state, and the
// others up to exitBad are bad. A higher status, or a signal, is no verdict and ends the search:
// a command that crashes must not decide.
const (
	exitSkip = 125
	exitBad  = 127
)

// runner sets a judge that runs the command for each state, which is saved to its own directory;
// end removes the directory. The output of the command goes to standard error, because standard
// output is for the result.
//
// Each save is removed when its command ends, so only one exists at a time. The save is written
// from a world, so it equals a save of the program, and the program can open it. The command gets
// URLs with their secrets, because it needs them to open the URLs.
func (b *bisector) runner() (end func(), err error) {
	dir, err := os.MkdirTemp("", "ecsdump-bisect-")
	b.judge = func(im state, _ *inspect.Commit) (string, error) {
		file := filepath.Join(dir, fmt.Sprintf("%d.save", im.seq))
		if err := b.save(im, file); err != nil {
			return skip, err
		}
		defer os.Remove(file)
		args := describe.Listed(b.command, func(arg string) string { return strings.ReplaceAll(b.secrets.whole(arg), "{}", file) })
		cmd := exec.CommandContext(b.ctx, args[0], args[1:]...)
		cmd.Env = append(os.Environ(),
			"ECSDUMP_SAVE="+file, fmt.Sprintf("ECSDUMP_TICK=%d", im.Tick), fmt.Sprintf("ECSDUMP_RECORD=%d", im.seq))
		cmd.Stdout, cmd.Stderr = b.stderr, b.stderr
		return b.verdict(im, cmd.Run())
	}
	// A file that cannot be removed stays in the directory for temporary files.
	return func() { _ = os.RemoveAll(dir) }, system(err)
}

// verdict returns the verdict for a command that ended with err. A command that cannot be started
// is an error, not a verdict. An interrupt also reaches the command, so its exit status then says
// nothing about the state.
func (b *bisector) verdict(im state, err error) (string, error) {
	var exit *exec.ExitError
	switch {
	case b.ctx.Err() != nil:
		return skip, b.ctx.Err()
	case err == nil:
		return good, nil
	case !errors.As(err, &exit):
		return skip, system(err)
	case exit.ExitCode() == exitSkip:
		return skip, nil
	case interrupted(exit): // The command may see the interrupt before this program does.
		return skip, context.Canceled
	case exit.ExitCode() < 0 || exit.ExitCode() > exitBad:
		return skip, fail(exitProblem, "", "%s at %v: %w: no verdict", b.command[0], im, exit)
	}
	return bad, nil
}

// interrupted reports whether an interrupt ended a command.
func interrupted(exit *exec.ExitError) bool {
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGINT
}

// save writes im as a save.
func (b *bisector) save(im state, file string) error {
	w, err := im.World(ecs.Options{})
	if err != nil {
		return err
	}
	return system(persist.Save(b.ctx, file, w))
}
