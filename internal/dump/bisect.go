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

// Bisect looks for where in time a condition changes: in turn, which reads every tick but asks only
// about what it changed, or by halves, which loads a few states.
//
//	STORE, A..B ──▶ route ──▶ the states of the way, and which of them damage hides
//	EXPR, CMD   ──▶ judge ──▶ a verdict on one state: true, false or skip
//	first, halved, newestOf or list: which states the judge is asked about, until one is found
//
// What it finds is reported with the state before, and with what it took for granted: who reads the
// document must be able to tell a fact from a promise of the user. By halves it takes for granted
// that the condition, once it holds, stays true; in turn, nothing.
//
// Damage does not end the search. A state that cannot be read has the verdict skip, like one that a
// command cannot judge; the damage is the error after the result, with its exit status.

// bisectDoc is what bisect --json prints.
type bisectDoc struct {
	stateDoc                  // The first state for which the condition holds; with --last the newest at which it changed.
	Holds    bool             `json:"holds"`            // There. Only with --last it may not.
	Before   stateDoc         `json:"before"`           // The last state before it of which is known whether it holds: for that it is the other way round.
	States   int              `json:"states"`           // In the range.
	Asked    int              `json:"asked"`            // How many of them were.
	Scan     bool             `json:"scan"`             // All states up to it were asked; else it is taken to stay true.
	Held     *heldDoc         `json:"held,omitempty"`   // With scan: it held at the first state too, but not for all of the time.
	Last     bool             `json:"last"`             // All states from it on were asked.
	Builds   *describe.Builds `json:"builds,omitempty"` // Which builds wrote the state before and this one, if they differ.
	Probes   []probeDoc       `json:"probes"`           // Those that were asked by halves, in order; in turn it is empty.

	by *bisector
}

// A heldDoc says from which state to which a condition held before it began to hold again.
type heldDoc struct {
	From stateDoc `json:"from"` // The first state of the range that was judged.
	To   stateDoc `json:"to"`   // The last judged state before the first one for which it does not hold.
}

func (d heldDoc) String() string {
	if d.From == d.To {
		return fmt.Sprintf("at tick %d", d.From.Tick)
	}
	return fmt.Sprintf("from tick %d to %d", d.From.Tick, d.To.Tick)
}

// A probeDoc is a state that was asked.
type probeDoc struct {
	stateDoc
	Verdict string `json:"verdict"` // true, false or skip.

	i int // Of the way.
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
	Holds  bool             `json:"holds"`
	Before stateDoc         `json:"before"`           // The last state before it of which is known whether it holds.
	Builds *describe.Builds `json:"builds,omitempty"` // Which builds wrote the state before and this one, if they differ.
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

// A bisector looks among the states of a way for those that are bad, for which a condition
// holds: for the first of them, or where good and bad ones meet.
//
//	         asks                        finds
//	--scan   all, in turn (first)        the first bad one behind a good one
//	--halve  few, by halves (halved)     the first bad one, if all behind it are bad
//	--last   the last ones (newestOf)    the last that is other than the one before it
//	--flips  all, in turn (list)         all that are
//
// The words are those of git bisect. To be asked, a state is loaded: a judge needs nothing but the
// state, so it can be a program that knows nothing of stores. A condition that is asked in turn is
// kept up to date by what each tick changed.
//
// The fields come in three groups: what the command line says; the way with its cursor and its
// damage (route); and what is known so far.
type bisector struct {
	at      string
	text    string // The condition.
	span    string // A..B, or "".
	entity  string
	scan    bool
	halve   bool
	last    bool
	flips   bool
	run     bool
	command []string

	*route
	judge  judge
	count  int              // States asked.
	asked  map[int]probeDoc // Of the way, that may be come to again: by halves all, in turn those that were skipped.
	oldest probeDoc         // The first and the last that were judged, in turn.
	newest probeDoc
	held   *heldDoc // In turn: where it held at the beginning, once it does not hold any more.
	doc    *bisectDoc
}

// A judge says of a state whether it is bad. c is the tick that led to it, if the state before it
// was the last that was judged, or nil.
type judge func(im state, c *inspect.Commit) (verdict string, err error)

// Verdicts: whether the condition holds.
const (
	good = "false"
	bad  = "true"
	skip = "skip" // Nobody knows.
)

// arguments takes the command line apart. Cobra takes "--" out of the arguments and only says where
// it stood: with --run all behind it is the command. Without --run there is an expression and
// perhaps a range; with it only the range can stand between STORE and the command.
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
	// At most one word is left: the range. Joined, it is "" if there is none.
	if b.span = strings.Join(args[least:], ""); b.span != "" && c.flags.Changed("at") {
		return c.misused("give either --at or a range")
	}
	if !b.last && !b.flips && !b.halve {
		b.scan, b.halve = b.scan || !b.run, b.run && !b.scan
	}
	return cmp.Or(c.exclusive("scan", "halve", "last", "flips"), c.exclusive("run", "entity"))
}

// bisect finds the state, or all of them, and prints it.
//
// The judge is made for the last state before anything is asked, so a condition that does not
// compile costs one state. If nothing is found and some states were hidden by damage, the failure
// is the damage: what was looked for may lie in it.
func (b *bisector) bisect(s *source) (err error) {
	b.asked = map[int]probeDoc{}
	if b.route, err = s.route(b.span, b.at); err != nil {
		return err
	}
	last := len(b.states) - 1
	// The cursor of a route stands at its end.
	end, err := b.appoint(b.route.end())
	if err != nil {
		return err
	}
	defer end()
	b.doc = &bisectDoc{States: len(b.states), Scan: b.scan, Last: b.last, Probes: []probeDoc{}, by: b}
	find := b.first // Each of these finds one state; a list is printed while it is found.
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
	case err != nil && b.unread != nil: // What damage hides may be just what was looked for.
		return notFoundIn(classify(b.path, b.unread), classify(b.path, err))
	case err != nil:
		return err
	}
	b.doc.stateDoc, b.doc.Holds, b.doc.Before, b.doc.Asked = at.stateDoc, at.Holds, at.Before, b.count
	b.doc.Held, b.doc.Builds = b.held, at.Builds
	return cmp.Or(s.tell(b.doc), b.unread)
}

// appoint sets the judge that the command line asks for: a condition, compiled for im, the
// last state, or a command. Calling end removes the judge's files. The last state is the one
// that most likely has all components that the condition names.
//
//	--run             the command, see runner
//	--entity          a condition on the entity; false while that is not alive
//	neither of these  a condition on the whole world
//
// A condition follows the ticks: given the one that led to a state it asks only again what that
// changed, and without one, as by halves, all of the state. Between two states the components may
// be other ones, so it may have to be compiled again, and that can fail.
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

// ask asks the judge about im, state i of the way, to which c led. Whatever the verdict, the state
// counts as asked. One that is come to again is not asked again if it was skipped: only a command
// skips, and that needs no tick before it.
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

// halved finds the first bad state by halves. The ends come first: if the last state is
// good there is nothing to find, and neither is there if the first is bad already.
//
//	first   last    answer
//	any     skip    nothing can be said
//	any     good    nothing is found; a scan could still find a stretch in which it holds
//	bad     bad     it did not begin between them: an error that suggests --last and --flips
//	good    bad     narrow finds the first bad one
//	skip    bad     the same; the first bad one may be next to states that nobody can judge
//
// The first state is asked second, as the answer of the last one alone can end the search.
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

// probe asks about state i of the way. States are reached from the one asked before, or
// from a snapshot if that is nearer: the cursor knows. The judge gets no tick: the state asked
// before is another one than that before this. Of a state that damage hides, the tick is not known,
// only the record; it and those that are reached by the same records are left out from here on.
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

// skipped reports whether state i of the way was asked in vain, or cannot be.
func (b *bisector) skipped(i int) bool { return b.lost[i] || b.asked[i].Verdict == skip }

// narrow finds the first bad state behind lo, up to hi.
//
// Always hi is bad, and lo is good, or is the first state and was skipped. States that are
// skipped move neither end: the next nearest to the middle is asked in their place, so that
// the search only ends undecided when all between lo and hi was skipped.
//
// At the end all between lo and hi was skipped. If hi - 1 is lo and was judged, hi is the answer;
// else any of the states behind lo, and lo itself if nobody knows what it is, may be the first bad
// one, and the failure names these records.
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

// middle returns the state nearest to the middle between lo and hi that was not
// skipped. It looks outward from the middle, earlier states first where two are as near; it reports
// false if all between were skipped.
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

// changes walks over the states first to last of the way that are good while the one
// judged before them is bad, or the other way round. It asks all of them in turn.
//
// A state that is skipped is passed as if it were not there: a change is one between two that were
// judged, however far apart these are, which is why it has the state before with it. oldest and
// newest are set anew by each call, and tell afterwards whether any state could be judged.
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

// flip returns the change from the state of before to that of p.
func (b *bisector) flip(p, before probeDoc) flipDoc {
	return flipDoc{p.stateDoc, p.Verdict == bad, before.stateDoc, describe.BuildsOf(b.Build(before.Seq), b.Build(p.Seq))}
}

// first finds the first change to bad. A change to good comes before it only if the condition holds
// at the beginning, and sets held.
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

// newestOf finds the last change. It goes back block by block, each twice as long as the one
// behind it, so that a change that is not long ago is found soon, and one that is by asking
// twice as many states as there are at most. A block ends with the first state of which is
// known what it is in the block behind it.
//
//	states    ·········|················|········| last
//	blocks         3.        2.             1.          asked forward, newest block first
//
// Within a block it asks forward, as only that lets a condition follow the ticks, and the last
// change of the block is the answer. The block before ends with oldest, the first state judged in
// this one, so that a change just between the two blocks is seen.
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
		case b.oldest.Verdict != skip: // Else all of the block was skipped: the next one begins where it did, and is longer.
			last = b.oldest.i
			b.asked[last] = b.oldest // It ends the next block as well.
		}
	}
}

// unchanged says what is known of states among which there is no change.
func (b *bisector) unchanged() string {
	texts := map[string]string{good: "it does not hold at any of %v", bad: "it holds at all of %v", skip: "none of %v can be judged"}
	return fmt.Sprintf(texts[b.newest.Verdict], b.states)
}

// list prints all changes. For people they are rows, printed as they are found; if there are none,
// what the condition is all along.
func (b *bisector) list(last int) error {
	if b.json {
		doc := &flipsDoc{States: len(b.states), Flips: []flipDoc{}}
		return stream(b.app, doc, func(visit func(flipDoc) error) error {
			err := b.changes(0, last, visit)
			doc.End = b.newest.Verdict // It is printed behind the list.
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

// again returns this call with another flag. It is what a failure suggests, to be pasted: the point
// of --at is left out if it is the default, and so are words that were not given.
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

// print prints the search if it was one by halves, which people may want to follow; then what
// was found, how sure that is, and where to look next.
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
	// The state before on the way is not the last one judged: between them some were skipped or are
	// damaged.
	if i := slices.Index(d.by.states, d.Seq); i > 0 && d.by.states[i-1] != d.Before.Seq {
		a.Line("the states between %s and it are unknown", d.Before.place())
	}
	if line := d.Builds.Line("the state before", "this one"); line != "" {
		a.Line("%s", line)
	}
	a.Line("see: %s", d.by.next())
}

// next returns the command that shows what happened in the tick that was found. For a condition on
// an entity that is what became of it since the last state known, as nobody knows which tick of
// those between it was; else what the tick changed.
func (b *bisector) next() string {
	seq := fmt.Sprintf("record:%d", b.doc.Seq)
	if b.entity != "" {
		return try("history", b.path, b.entity, fmt.Sprintf("record:%d..%s", b.doc.Before.Seq, seq))
	}
	return try("log", b.path, seq, "-p")
}

// Exit statuses of a command, as those of git bisect run: 0 is good, exitSkip says that it cannot
// judge the state, all else up to exitBad is bad. What is above, and the end by a signal, is no
// verdict and ends the search: a command that crashes must not decide anything.
const (
	exitSkip = 125
	exitBad  = 127
)

// runner sets a judge that runs the command for each state, which is a save in a directory
// of its own; end removes that. What the command prints goes to standard error: standard output
// is for the result.
//
// Each save is removed when the command has ended, so that there is one at a time. It is made of a
// world, so a save that the command sees is what a program would have saved, and can be opened by
// one. URLs are given to it with their secrets, or it could not open what they lead to.
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
	return func() { _ = os.RemoveAll(dir) }, system(err) // What cannot be removed is left to the system: it lies where such files do.
}

// verdict returns what it means that the command ended with err. A command that could not be
// started at all is an error of the system, not a verdict. An interrupt reaches the command too, and
// whatever it ended with then says nothing of the state.
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
	case interrupted(exit): // It may be seen before the signal to this program is.
		return skip, context.Canceled
	case exit.ExitCode() < 0 || exit.ExitCode() > exitBad:
		return skip, fail(exitProblem, "", "%s at %v: %w: no verdict", b.command[0], im, exit)
	}
	return bad, nil
}

// interrupted reports whether a command was ended by an interrupt.
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
