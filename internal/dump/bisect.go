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

// The command bisect searches the ticks at which a condition changes. It has three parts:
//
//   - A route visits the states from A to B, and knows which of them are unreadable.
//   - A judge gives a verdict on one state: true, false or skip. It evaluates the condition, or
//     runs a command.
//   - The search chooses the states to judge. It is firstBad, binarySearch, lastChange or
//     listChanges.
//
// A scan reads every tick, and evaluates only what the tick changed. A binary search loads a few
// states, and assumes that the condition stays true once it holds.
//
// An unreadable state gets the verdict skip, and the search goes on. The damage is reported after
// the result, and sets the exit status.

// bisectDoc is what bisect --json prints.
type bisectDoc struct {
	// The first state for which the condition holds; with --last, the newest state at which the
	// condition became true or false.
	stateDoc
	// True if the condition holds at the result. It can be false only with --last.
	Holds bool `json:"holds"`
	// The last judged state before the result; its verdict is the opposite.
	Before stateDoc `json:"before"`
	States int      `json:"states"` // Number of states in the range.
	Judged int      `json:"asked"`  // Number of states that were judged.
	// True if all states up to the result were judged. False after a binary search, which assumes
	// that the condition stays true once it holds.
	Scan bool `json:"scan"`
	// The range of states at the start for which the condition held, if it then stopped holding.
	// Only a scan sets this.
	Held *heldDoc `json:"held,omitempty"`
	// True with --last: all states from the result to the end were judged.
	Last bool `json:"last"`
	// The builds that wrote the result and the state before it, if the builds differ.
	Builds *describe.Builds `json:"builds,omitempty"`
	// The states that a binary search judged, in order; empty for a scan.
	Probes []probeDoc `json:"probes"`

	by *bisectCmd
}

// A heldDoc is the range of states, at the start of the search, for which the condition held.
type heldDoc struct {
	// The first state at which the search found that the condition holds.
	From stateDoc `json:"from"`
	// The last such state before the condition stopped holding.
	To stateDoc `json:"to"`
}

func (d heldDoc) String() string {
	if d.From == d.To {
		return fmt.Sprintf("at tick %d", d.From.Tick)
	}
	return fmt.Sprintf("from tick %d to %d", d.From.Tick, d.To.Tick)
}

// A probeDoc is a state with its verdict: whether the condition holds for it.
type probeDoc struct {
	stateDoc
	Verdict string `json:"verdict"` // true, false or skip.

	i int // Index in the states of the route.
}

// flipsDoc is what bisect --flips --json prints.
type flipsDoc struct {
	States int       `json:"states"` // Number of states in the range; all were judged.
	Flips  []flipDoc `json:"flips"`  // Ordered by tick.
	// The verdict on the last judged state: true or false; skip if no state was judged.
	End string `json:"end"`
}

// A flipDoc is a state whose verdict differs from that of the last judged state before it.
type flipDoc struct {
	stateDoc
	Holds  bool     `json:"holds"`
	Before stateDoc `json:"before"` // The last judged state before this one.
	// The builds that wrote this state and the state before it, if the builds differ.
	Builds *describe.Builds `json:"builds,omitempty"`
}

var bisectCommand = command{
	use: "bisect STORE EXPR [A..B] | bisect STORE [A..B] --run -- CMD ARGS…",
	doc: `Find the tick at which a condition begins to hold, or changes

Find the first tick at which a condition begins to hold. The search covers the ticks
from A to B, or all ticks that lead to the state of --at. It judges every tick in order
until it finds one. After the first tick it judges only the entities that changed, so
the search takes little longer than reading the ticks.

If the condition holds in the first state and stops later, the result also names that
earlier period. For example, not exists("12v3") holds in an empty world. --last finds
the last tick at which the condition changed, to true or to false. --flips lists all
ticks at which it changed.

--halve does a binary search, which judges few ticks. Use it for a condition that stays
true once it holds. For another condition, the result is one of the ticks at which it
begins to hold. --halve reports an error if the condition holds both at the first tick
and at the last.

Ticks that cannot be read because of damage are skipped. If the found tick and the tick
before it were written by different builds or on different machines, the result names
both.

The condition is about the whole world:

  ecsdump bisect D 'any(Position.X > 10)'
  ecsdump bisect D 'count(Health <= 0) > 3'
  ecsdump bisect D 'not exists("12v3")' --last
  ecsdump bisect D 'score > 100 and alive < 50'

The functions any, all, none and count take a condition on an entity. The functions
sum, min, max, avg, distinct and p0 to p100 (percentiles) take an expression on an
entity. With --entity, the condition is about one entity, and is false while that
entity is not alive:

  ecsdump bisect D 'Health < 10' --entity 12v3

With --run, a command judges each state. The state is written as a save. The name of
the save replaces {} in the arguments of the command, and is in the variable
ECSDUMP_SAVE. The variables ECSDUMP_TICK and ECSDUMP_RECORD have the tick and the
record of the state. All other arguments are passed unchanged, including names and
passwords in URLs. --run does a binary search unless you add --scan. The exit status of
the command is the verdict: 0 means that the condition does not hold (good), 1 to 127
that it holds (bad). The status 125 means that the command cannot judge this state.
A higher status than 127, or a signal, ends the search with an error.

  ecsdump bisect D --run -- ./check.sh {}

` + expressionHelp,
	example: `  ecsdump bisect D 'any(Position.X > 10)'
  ecsdump bisect D 'tick > 150 and alive > 50' 100..200 --halve
  ecsdump bisect D 'not exists("12v3")' --last
  ecsdump bisect D 'Health < 10' --entity 12v3 --flips
  ecsdump bisect D 100..200 --run -- ./check.sh {}`,
	complete: []completer{nil, (*completion).ranges},
	run: func(f flags) action {
		b := new(bisectCmd)
		f.entity(&b.entity, "make the condition about this entity")
		f.BoolVar(&b.scan, "scan", false, "judge every tick in order; the default without --run")
		f.BoolVar(&b.halve, "halve", false, "judge few ticks, by binary search; the default with --run")
		f.BoolVar(&b.last, "last", false, "find the last tick at which the condition changed")
		f.BoolVar(&b.flips, "flips", false, "list all ticks at which the condition changed")
		f.BoolVar(&b.run, "run", false, "judge each state with the command after --")
		f.point(&b.at)
		return func(c *call) error {
			if err := b.arguments(c); err != nil {
				return err
			}
			return c.read(c.args[0], b.bisect)
		}
	},
}

// A bisectCmd searches a sequence of states for bad states. A state is bad if the condition holds
// for it. As with git bisect, --run judges a state by running a command instead of a condition.
// Each flag selects a function that finds the result:
//
//	--scan    firstBad judges every state in order. It finds the first change from good to bad.
//	--halve   binarySearch judges a few states. It finds the first bad state, if all later
//	          states are bad.
//	--last    lastChange judges the newest states. It finds the newest change of the verdict.
//	--flips   listChanges judges every state in order. It finds every change of the verdict.
//
// Each judged state is loaded. In a scan, a condition evaluates only what each tick changed.
type bisectCmd struct {
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
	// Verdicts by index of the state. A binary search stores all verdicts; a scan stores only
	// skipped states.
	verdicts map[int]probeDoc
	// The oldest state that the latest call of changes() judged. Skipped states do not count.
	oldest probeDoc
	// The newest state that the latest call of changes() judged. Skipped states do not count.
	newest probeDoc
	doc    *bisectDoc
}

// A judge decides whether the state im is bad. The argument c is the tick that led to im, or nil.
// If the previous call judged the state before c, the judge may evaluate only what c changed.
// Otherwise it evaluates the whole state.
type judge func(im state, c *inspect.Commit) (verdict string, err error)

// Verdicts on a state. The condition holds for a bad state.
const (
	good = "false"
	bad  = "true"
	skip = "skip" // The verdict is unknown.
)

// arguments parses the command line.
//
//	without --run   STORE EXPR [A..B]
//	with --run      STORE [A..B] -- CMD …
//
// Cobra removes "--" and reports its position.
func (b *bisectCmd) arguments(c *call) error {
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
	if !b.last && !b.flips && !b.halve {
		b.scan, b.halve = b.scan || !b.run, b.run && !b.scan
	}
	return cmp.Or(c.exclusive("scan", "halve", "last", "flips"), c.exclusive("run", "entity"))
}

// bisect finds the state, or all changes, and prints the result.
//
// It compiles the condition before it judges any state, so a wrong condition fails early. If it
// finds nothing and some states are unreadable, bisect returns the damage, because the searched
// state may be unreadable.
func (b *bisectCmd) bisect(s *source) (err error) {
	b.verdicts = map[int]probeDoc{}
	if b.route, err = s.route(b.span, b.at); err != nil {
		return err
	}
	last := len(b.states) - 1
	// The last state is loaded already: the cursor of a new route is there.
	end, err := b.setJudge(b.route.lastState())
	if err != nil {
		return err
	}
	defer end()
	b.doc = &bisectDoc{States: len(b.states), Scan: b.scan, Last: b.last, Probes: []probeDoc{}, by: b}
	// Each function finds one state, except listChanges, which prints changes as it finds them.
	find := b.firstBad
	switch {
	case b.flips:
		return cmp.Or(b.listChanges(last), b.unread)
	case b.halve:
		find = b.binarySearch
	case b.last:
		find = b.lastChange
	}
	at, err := find(last)
	switch {
	case err != nil && b.unread != nil: // Damage may hide the searched state.
		return notFoundIn(classify(b.path, b.unread), classify(b.path, err))
	case err != nil:
		return err
	}
	b.doc.stateDoc, b.doc.Holds, b.doc.Before, b.doc.Builds = at.stateDoc, at.Holds, at.Before, at.Builds
	return cmp.Or(s.printReport(b.doc), b.unread)
}

// setJudge sets b.judge. It compiles the condition for im, the newest state, because older states
// may lack some components. The caller must call the returned function, which removes temporary
// files. The flags select the judge:
//
//	--run          runs the command, see commandJudge
//	--entity       evaluates a condition on the entity; false while the entity is dead
//	neither flag   evaluates a condition on the whole world
//
// If a state has other components, the judge compiles the condition again. It returns an error if
// that fails.
func (b *bisectCmd) setJudge(im state) (end func(), err error) {
	if b.run {
		return b.commandJudge()
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
			return skip, fmt.Errorf("the components were different at %v: %w", im, err)
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

// judgeState judges im, the state with index i. c is the tick that led to im, or nil. A skipped
// state is not judged again.
func (b *bisectCmd) judgeState(i int, im *inspect.Image, c *inspect.Commit) (probeDoc, error) {
	if p, ok := b.verdicts[i]; ok {
		return p, nil
	}
	now := state{im, b.states[i]}
	v, err := b.judge(now, c)
	b.doc.Judged++
	p := probeDoc{now.doc(), v, i}
	if v == skip {
		b.verdicts[i] = p
	}
	return p, err
}

// binarySearch finds the first bad state by binary search. It judges the newest state and then the
// oldest state. Each row has the two verdicts and the result:
//
//	oldest   newest   result
//	any      skip     an error: the result is unknown
//	any      good     not found; a scan could still find bad states in between
//	bad      bad      an error that suggests --last and --flips
//	good     bad      narrow finds the first bad state
//	skip     bad      narrow finds a bad state, but earlier skipped states may be bad
func (b *bisectCmd) binarySearch(last int) (at flipDoc, err error) {
	end, err := b.probe(last)
	switch {
	case err != nil:
		return at, err
	case end.Verdict == skip:
		return at, fail(exitProblem, "", "%s: the last state cannot be judged", b.path)
	case end.Verdict == good:
		return at, b.missing(b.withFlag("--scan"), "the condition does not hold at %s, the last of %v", end.Place(), b.states)
	case last == 0:
		return at, b.missing("", "the condition holds at %s, the only state: when it began is unknown", end.Place())
	}
	begin, err := b.probe(0)
	switch {
	case err != nil:
		return at, err
	case begin.Verdict == bad:
		return at, b.missing(b.withFlag("--last")+"\n"+b.withFlag("--flips"), "the condition holds at %s, the first of %v, and at %s, the last: a binary search cannot find a change",
			begin.Place(), b.states, end.Place())
	}
	first, err := b.narrow(0, last)
	if err != nil {
		return at, err
	}
	return b.flip(b.verdicts[first], b.verdicts[first-1]), nil
}

// probe loads the state with index i and judges the whole state. An unreadable state gets the
// verdict skip. probe then also marks the states after it as lost, up to the next snapshot.
func (b *bisectCmd) probe(i int) (p probeDoc, err error) {
	if b.cursor.Seq() != b.states[i] {
		if err := b.cursor.Seek(b.ctx, b.states[i]); damaged(err) {
			b.markLost(i, err)
			return probeDoc{stateDoc{Seq: b.states[i]}, skip, i}, nil
		} else if err != nil {
			return p, err
		}
	}
	p, err = b.judgeState(i, b.cursor.Image(), nil)
	b.verdicts[i] = p
	b.doc.Probes = append(b.doc.Probes, p)
	return p, err
}

// skipped reports whether the state with index i was skipped or is unreadable.
func (b *bisectCmd) skipped(i int) bool { return b.lost[i] || b.verdicts[i].Verdict == skip }

// narrow finds the first bad state in the range lo+1 to hi. The caller knows that the state hi is
// bad, and that the state lo is good. The state lo may also be skipped if it is the first state.
//
// Skipped states cannot be judged. If the state before the first known bad state was skipped,
// narrow returns an error that names the possible records.
func (b *bisectCmd) narrow(lo, hi int) (int, error) {
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
	return 0, fail(exitProblem, "", "%s: the tick is one of records %d to %d; all but the last of them cannot be judged", b.path, b.states[first], b.states[hi])
}

// middle returns the state nearest to the middle between lo and hi, among the states that can be
// judged. On a tie, it returns the earlier state. It returns false if all states between lo and hi
// were skipped.
func (b *bisectCmd) middle(lo, hi int) (int, bool) {
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

// changes judges the states first to last, in order. It visits a state if the verdict differs from
// the verdict on the previous judged state. Skipped states are ignored.
//
// changes also sets b.oldest and b.newest to the oldest and the newest judged state. If no state
// was judged, both get the verdict skip.
func (b *bisectCmd) changes(first, last int, visit func(flipDoc) error) error {
	b.oldest, b.newest = probeDoc{Verdict: skip}, probeDoc{Verdict: skip}
	return b.each(first, last, func(i int, im *inspect.Image, c *inspect.Commit) error {
		p, err := b.judgeState(i, im, c)
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

// flip returns the change between two judged states. The argument p is the later state.
func (b *bisectCmd) flip(p, before probeDoc) flipDoc {
	return flipDoc{p.stateDoc, p.Verdict == bad, before.stateDoc, describe.BuildsOf(b.Build(before.Seq), b.Build(p.Seq))}
}

// firstBad finds the first change to bad. If the condition holds at the start and stops later,
// firstBad sets Held of the document.
func (b *bisectCmd) firstBad(last int) (at flipDoc, err error) {
	err = b.changes(0, last, func(f flipDoc) error {
		if f.Holds {
			at = f
			return errEnough
		}
		b.doc.Held = &heldDoc{b.oldest.stateDoc, f.Before}
		return nil
	})
	switch {
	case err != nil:
		return at, ignoreEnough(err)
	case b.doc.Held != nil:
		return at, b.missing(b.withFlag("--last"), "the condition holds %v, and does not begin to hold again in the rest of %v", b.doc.Held, b.states)
	}
	return at, b.missing("", "%s", b.unchanged())
}

// lastChange finds the newest change. It searches blocks of states, the newest block first. Each
// block is twice as long as the block before it. So it finds a recent change quickly. Within a
// block, it judges the states forward.
//
// Two neighbouring blocks share a state: the oldest judged state of the newer block is the last
// state of the older block. So lastChange also finds a change between two blocks.
func (b *bisectCmd) lastChange(last int) (at flipDoc, err error) {
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
		// If all states of the block were skipped, last stays the same. The next block is longer
		// and judges older states too.
		case b.oldest.Verdict != skip:
			last = b.oldest.i
			// The next block ends with this state. Store the verdict, so that the state is not
			// judged twice.
			b.verdicts[last] = b.oldest
		}
	}
}

// unchanged returns the sentence for a search that found no change.
func (b *bisectCmd) unchanged() string {
	texts := map[string]string{good: "the condition does not hold at any of %v", bad: "the condition holds at all of %v", skip: "none of %v can be judged"}
	return fmt.Sprintf(texts[b.newest.Verdict], b.states)
}

// listChanges prints all changes. Each row is printed as soon as the change is found.
func (b *bisectCmd) listChanges(last int) error {
	doc := &flipsDoc{States: len(b.states), Flips: []flipDoc{}}
	changes := func(visit func(flipDoc) error) error {
		err := b.changes(0, last, visit)
		// stream prints this member after the list, so it can still be set here.
		doc.End = b.newest.Verdict
		return err
	}
	if b.json {
		return stream(b.app, doc, changes)
	}
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
		b.Line("no change: %s", b.unchanged())
	default:
		b.Line("")
		b.Line("%s, %v judged", term.Count(n, "change", "changes"), b.states)
	}
	return nil
}

// withFlag returns the current command line with an additional flag. Errors suggest this command.
func (b *bisectCmd) withFlag(flag string) string {
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
	return describe.Command("bisect", slices.DeleteFunc(words, func(word string) bool { return word == "" })...)
}

// print prints the steps of a binary search, then the result, its certainty, and the command to run
// next.
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
		a.Line("begins at %s%s", d.Place(), again)
		a.Line("judged %s of %d, in order; --flips lists all changes", term.Count(d.Judged, "state", "states"), d.States)
	case d.Last:
		a.Line("last change at %s: %s", d.Place(), map[bool]string{true: "the condition holds since then", false: "the condition no longer holds"}[d.Holds])
		a.Line("judged %s of %d, backwards from the last one", term.Count(d.Judged, "state", "states"), d.States)
	default:
		a.Line("begins at %s", d.Place())
		a.Line("judged %s of %d by binary search, which assumes that the condition stays true once it holds", term.Count(d.Judged, "state", "states"), d.States)
	}
	// The search skips states that it cannot judge. So there may be states between Before and the
	// result.
	if i := slices.Index(d.by.states, d.Seq); i > 0 && d.by.states[i-1] != d.Before.Seq {
		a.Line("the states after %s and before this tick are unknown", d.Before.Place())
	}
	if line := d.Builds.Line("the state before", "this one"); line != "" {
		a.Line("%s", line)
	}
	a.Line("see: %s", d.by.nextCommand())
}

// nextCommand returns a command that shows the cause of the result. For a condition on an entity,
// the command shows the history of the entity. Otherwise it shows what the tick of the result
// changed.
func (b *bisectCmd) nextCommand() string {
	seq := fmt.Sprintf("record:%d", b.doc.Seq)
	if b.entity != "" {
		return describe.Command("history", b.path, b.entity, fmt.Sprintf("record:%d..%s", b.doc.Before.Seq, seq))
	}
	return describe.Command("log", b.path, seq, "-p")
}

// Exit statuses of a command, as for git bisect run. The status 0 means good, and exitSkip skips
// the state. All other statuses up to exitBad mean bad. A higher status, or a signal, means that
// the command crashed, and ends the search.
const (
	exitSkip = 125
	exitBad  = 127
)

// commandJudge sets b.judge to a function that runs the command on a state. For each run, the
// function saves the state to a temporary file. The caller must call the returned function, which
// removes the directory of the files. The output of the command goes to standard error. The command
// line contains the passwords of URLs, because the command must open the URLs.
func (b *bisectCmd) commandJudge() (end func(), err error) {
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
	// The operating system will remove the directory later if RemoveAll fails.
	return func() { _ = os.RemoveAll(dir) }, systemError(err)
}

// verdict returns the verdict for a command that ended with err. If the command cannot be started,
// or was interrupted, verdict returns an error.
func (b *bisectCmd) verdict(im state, err error) (string, error) {
	exit, ended := errors.AsType[*exec.ExitError](err)
	switch {
	case b.ctx.Err() != nil:
		return skip, b.ctx.Err()
	case err == nil:
		return good, nil
	case !ended:
		return skip, systemError(err)
	case exit.ExitCode() == exitSkip:
		return skip, nil
	case interrupted(exit): // The command may receive the interrupt before this program does.
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

// save writes im as a save to file.
func (b *bisectCmd) save(im state, file string) error {
	w, err := im.World(ecs.Options{})
	if err != nil {
		return err
	}
	return systemError(persist.Save(b.ctx, file, w))
}
