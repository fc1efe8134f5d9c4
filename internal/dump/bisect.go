package dump

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/internal/query"
	"github.com/stet-ecs/stet/internal/term"
	"github.com/stet-ecs/stet/journal"
	"github.com/stet-ecs/stet/persist"
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

func newBisect(a *app) *cobra.Command {
	b := &bisector{app: a}
	cmd := &cobra.Command{
		Use:   "bisect STORE EXPR [A..B] | bisect STORE [A..B] --run -- CMD ARGS…",
		Short: "Find the first tick at which a condition holds",
		Long: `Find the first tick at which a condition holds, on the way to --at or from A to
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
		Example: `  ecsdump bisect D 'any(Position.X > 10)'
  ecsdump bisect D 'alive < 50' 100..200 --scan
  ecsdump bisect D 'Health < 10' --entity 12v3
  ecsdump bisect D 100..200 --run -- ./check.sh {}`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := b.arguments(cmd, args); err != nil {
				return err
			}
			return a.read(cmd.Context(), args[0], func(s *source) error { return b.bisect(cmd.Context(), s) })
		},
	}
	cmd.Flags().StringVar(&b.entity, "entity", "", "the condition is on this entity")
	cmd.Flags().BoolVar(&b.scan, "scan", false, "ask every tick, one after the other")
	cmd.Flags().BoolVar(&b.run, "run", false, "run the command behind -- for each state")
	b.at.flag(cmd)
	return cmd
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
	judge  judge
	way    way
	doc    bisectDoc
}

// A judge says of a state whether it is bad.
type judge interface {
	judge(ctx context.Context, im state) (verdict, error)
}

// A verdict is what a judge says.
type verdict int

const (
	good verdict = iota // The condition does not hold.
	bad
	skip // Nobody knows.
)

func (v verdict) String() string { return [...]string{"false", "true", "skip"}[v] }

// A way is the states to look at, oldest first, by their records.
type way []uint64

// arguments takes the command line apart.
func (b *bisector) arguments(cmd *cobra.Command, args []string) error {
	usage := &failure{exitUsage, errors.New("usage: ecsdump " + cmd.Use), "ecsdump bisect --help"}
	if dash := cmd.ArgsLenAtDash(); b.run && dash >= 0 {
		args, b.command = args[:dash], args[dash:]
	}
	least := 2
	if b.run {
		least = 1
	}
	if len(args) < least || len(args) > least+1 || b.run && (len(b.command) == 0 || b.entity != "") {
		return usage
	}
	if !b.run {
		b.text = args[1]
	}
	if b.span = strings.Join(args[least:], ""); b.span != "" && cmd.Flags().Changed("at") {
		return &failure{exitUsage, errors.New("give either --at or a range"), ""}
	}
	return nil
}

// bisect finds the state and prints it.
func (b *bisector) bisect(ctx context.Context, s *source) (err error) {
	b.source = s
	if b.way, err = s.way(b.span, b.at); err != nil {
		return err
	}
	b.doc = bisectDoc{States: len(b.way), Scan: b.scan, Probes: []probeDoc{}}
	var first int
	if b.scan {
		first, err = b.scanned(ctx)
	} else {
		first, err = b.halved(ctx)
	}
	if err != nil {
		return err
	}
	return b.found(first)
}

// way returns the states of a range, or those on the way to at.
func (s *source) way(text string, at point) (way, error) {
	first, last, isRange := strings.Cut(text, "..")
	if text == "" {
		last = at.at
	} else if !isRange {
		return nil, &failure{exitUsage, fmt.Errorf("%q is no range; write A..B, A.. or ..B", text), ""}
	}
	to, err := s.Resolve(last)
	if err != nil {
		return nil, err
	}
	from := s.oldest(to)
	if first != "" {
		if from, err = s.Resolve(first); err != nil {
			return nil, err
		}
	}
	path, err := s.Path(from, to)
	if errors.Is(err, journal.ErrNotAncestor) {
		err = fmt.Errorf("%s: record %d does not lead to record %d", s.path, from, to)
		return nil, &failure{exitNotFound, err, command("log", s.path)}
	}
	if err != nil {
		return nil, err
	}
	w := way{from}
	for _, e := range path {
		w = append(w, e.ID.Seq)
	}
	return w, nil
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

// judgeOf returns the judge that the command line asks for. Conditions are compiled
// for im, the last state.
func (b *bisector) judgeOf(im state) (judge, error) {
	if b.run {
		return newRunner(b.app, b.command)
	}
	if b.entity == "" {
		x, err := b.source.compile(im, "bisect", b.text, query.WantWorld)
		return &worldJudge{x}, err
	}
	e, err := parseEntity(b.source.path, b.entity)
	if err != nil {
		return nil, err
	}
	x, err := b.source.compile(im, "bisect", b.text, query.WantCondition)
	return &entityJudge{e, x}, err
}

// A worldJudge judges by a condition on the world.
type worldJudge struct{ x *query.Expr }

func (j *worldJudge) judge(_ context.Context, im state) (verdict, error) {
	if err := rebind(j.x, im); err != nil {
		return skip, err
	}
	return verdictOf(j.x.HoldsHere())
}

// An entityJudge judges by a condition on an entity.
type entityJudge struct {
	e ecs.Entity
	x *query.Expr
}

func (j *entityJudge) judge(_ context.Context, im state) (verdict, error) {
	if err := rebind(j.x, im); err != nil {
		return skip, err
	}
	if !im.IsAlive(j.e) {
		return good, nil
	}
	return verdictOf(j.x.Holds(j.e))
}

// rebind makes x read im, whose layouts may be older than those x was written for.
func rebind(x *query.Expr, im state) error {
	if err := x.Bind(im.Image); err != nil {
		return fmt.Errorf("at %v the components were others: %w", im, err)
	}
	return nil
}

func verdictOf(holds bool, err error) (verdict, error) {
	if holds {
		return bad, err
	}
	return good, err
}

// halved finds the first bad state by halves.
func (b *bisector) halved(ctx context.Context) (first int, err error) {
	last := len(b.way) - 1
	p, err := b.prober(ctx, last)
	if err != nil {
		return 0, err
	}
	defer p.end()
	switch v, err := p.probe(ctx, last); {
	case err != nil:
		return 0, err
	case v == skip:
		return 0, &failure{exitProblem, fmt.Errorf("%s: the last state cannot be judged", b.source.path), ""}
	case v == good:
		return 0, b.never(p.states[last])
	case last == 0:
		p.remember(0, p.states)
		return 0, nil
	}
	if v, err := p.probe(ctx, 0); err != nil || v == bad {
		p.remember(0, p.states)
		return 0, err
	}
	return p.narrow(ctx, 0, last)
}

// A prober asks a judge about states of a way.
type prober struct {
	*bisector
	cursor  *persist.Cursor
	states  map[int]stateDoc
	skipped map[int]bool
}

// prober returns a prober at state i.
func (b *bisector) prober(ctx context.Context, i int) (*prober, error) {
	c, err := b.source.Cursor(ctx, b.way[i])
	if err != nil {
		return nil, err
	}
	b.judge, err = b.judgeOf(state{c.Image(), b.way[i]})
	return &prober{b, c, map[int]stateDoc{}, map[int]bool{}}, err
}

// end lets go of what the judge keeps.
func (b *bisector) end() {
	if r, ok := b.judge.(*runner); ok {
		r.end()
	}
}

func (p *prober) probe(ctx context.Context, i int) (verdict, error) {
	if p.cursor.Seq() != p.way[i] {
		if err := p.cursor.Seek(ctx, p.way[i]); err != nil {
			return skip, err
		}
	}
	im := state{p.cursor.Image(), p.way[i]}
	v, err := p.judge.judge(ctx, im)
	p.states[i], p.skipped[i] = im.doc(), v == skip
	p.doc.Probes = append(p.doc.Probes, probeDoc{im.doc(), v.String()})
	return v, err
}

// narrow finds the first bad state behind lo, which is good or unknown, up to hi,
// which is bad.
func (p *prober) narrow(ctx context.Context, lo, hi int) (int, error) {
	for hi-lo > 1 {
		i, ok := p.middle(lo, hi)
		if !ok {
			break
		}
		switch v, err := p.probe(ctx, i); {
		case err != nil:
			return 0, err
		case v == bad:
			hi = i
		case v == good:
			lo = i
		}
	}
	if p.skipped[hi-1] {
		return 0, p.unclear(lo, hi)
	}
	p.remember(hi, p.states)
	return hi, nil
}

// middle returns the state nearest to the middle between lo and hi that was not
// skipped.
func (p *prober) middle(lo, hi int) (int, bool) {
	mid := lo + (hi-lo)/2
	for d := 0; mid-d > lo || mid+d < hi; d++ {
		for _, i := range []int{mid - d, mid + d} {
			if i > lo && i < hi && !p.skipped[i] {
				return i, true
			}
		}
	}
	return 0, false
}

// unclear says that states that were skipped hide the first bad one.
func (p *prober) unclear(lo, hi int) error {
	first := lo + 1
	if p.skipped[lo] {
		first = lo
	}
	err := fmt.Errorf("%s: it is one of records %d to %d; those before the last cannot be judged", p.source.path, p.way[first], p.way[hi])
	return &failure{exitProblem, err, ""}
}

// remember notes what is printed of state i and the one before it.
func (b *bisector) remember(i int, states map[int]stateDoc) {
	b.doc.stateDoc = states[i]
	if before, ok := states[i-1]; ok {
		b.doc.Before = &before
	}
}

// never says that no state is bad.
func (b *bisector) never(last stateDoc) error {
	what := "any of " + term.Count(len(b.way), "state", "states")
	if !b.scan {
		what = fmt.Sprintf("tick %d, record %d, the last of %s", last.Tick, last.Seq, term.Count(len(b.way), "state", "states"))
	}
	f := &failure{exitNotFound, fmt.Errorf("%s: it does not hold at %s", b.source.path, what), ""}
	if !b.scan && !b.run {
		f.next = command("bisect", b.source.path, b.text, "--scan")
	}
	return f
}

// errFound ends a walk.
var errFound = errors.New("found")

// scanned asks all states in turn, up to the first that is bad.
func (b *bisector) scanned(ctx context.Context) (first int, err error) {
	last := len(b.way) - 1
	p, err := b.prober(ctx, last)
	if err != nil {
		return 0, err
	}
	defer p.end()
	if err := p.cursor.Seek(ctx, b.way[0]); err != nil {
		return 0, err
	}
	i := 0
	ask := func(im *persist.Image) error {
		p.states[i] = state{im, b.way[i]}.doc()
		delete(p.states, i-2)
		v, err := b.judge.judge(ctx, state{im, b.way[i]})
		if err == nil && v == bad {
			err = errFound
		}
		i++
		return err
	}
	err = ask(p.cursor.Image())
	if err == nil {
		err = b.source.Walk(ctx, b.way[0], b.way[last], func(im *persist.Image, _ *persist.Commit) error { return ask(im) })
	}
	if err == nil {
		return 0, b.never(p.states[last])
	}
	if !errors.Is(err, errFound) {
		return 0, err
	}
	b.remember(i-1, p.states)
	return i - 1, nil
}

// found prints the result: state i of the way.
func (b *bisector) found(i int) error {
	if b.json {
		return b.document(b.doc)
	}
	if !b.scan {
		g := b.Grid(">TICK", ">RECORD", "HOLDS")
		for _, p := range b.doc.Probes {
			g.Row(p.Tick, p.Seq, p.Verdict)
		}
		g.Flush()
		b.Line("")
	}
	b.Line("first at tick %d, record %d", b.doc.Tick, b.doc.Seq)
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
	return nil
}

// next returns the command that shows what happened in the tick that was found.
func (b *bisector) next() string {
	seq := fmt.Sprintf("seq:%d", b.doc.Seq)
	if b.entity != "" {
		return command("history", b.source.path, b.entity, fmt.Sprintf("seq:%d..%s", b.doc.Before.Seq, seq))
	}
	return command("log", b.source.path, seq, "-p")
}
