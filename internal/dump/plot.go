package dump

import (
	"cmp"
	"math"
	"strconv"
	"strings"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/internal/describe"
	"github.com/stet-ecs/stet/internal/query"
	"github.com/stet-ecs/stet/internal/term"
	"github.com/stet-ecs/stet/persist/inspect"
)

// The command plot draws charts of expressions over the ticks. For each state, points() passes the
// changes of the tick to the expressions. For every Nth state, it also asks for their values, and
// addPoint appends the values to the lines. print() draws a chart of each line, and a table with
// the extremes.
//
// An unreadable state leaves a gap in each line.

// plotDoc is what plot --json prints.
type plotDoc struct {
	// The entity of the expressions; missing for expressions on the whole world.
	Entity      string   `json:"entity,omitempty"`
	States      int      `json:"states"` // Number of states in the range.
	Expressions []string `json:"expressions"`
	// Ordered by tick. Unreadable states have no points.
	Points []plotPointDoc `json:"points"`
}

// A plotPointDoc has the values of the expressions at a state.
type plotPointDoc struct {
	stateDoc
	// Values by the text of the expression; null for a missing value or an error.
	Values cellsDoc `json:"values"`
	Error  string   `json:"error,omitempty"` // The first error of an expression at this state.
}

var plotCommand = command{
	use: "plot STORE EXPR … [A..B]",
	doc: `Draw the values of expressions over time

Draw the values of expressions over time: a chart for each expression, and a table with
its first, last, least and greatest value. The ticks are those that lead from A to B, or
all that lead to the state of --at.

  ecsdump plot D alive                           how many entities there are
  ecsdump plot D 'sum(Health)' 'max(Position.X)'
  ecsdump plot D 'avg(Health.Current)' 100..200  from tick 100 to 200
  ecsdump plot D 'min(Gold)' 1..                 without the empty world of tick 0
  ecsdump plot D Score.Points 1..tip:1           up to the end of a rewound branch
  ecsdump plot D Position.X --entity 12v3        of one entity, while it is alive

The expressions are about the whole world, as in bisect. The functions any, all, none
and count take a condition on an entity, and sum, min, max and avg take an expression on
an entity. A resource is named directly. True is drawn as 1, and false as 0. The chart
has a gap where an expression has no number, where damage hides the state, and before
the component was registered.

Plot reads every tick, but evaluates only the entities that the tick changed, so it takes
little longer than reading the ticks. --every N evaluates only at the ticks A, A+N,
A+2N, … and at the last one. The output is then shorter, but all ticks are still read.

--format csv writes a table for other programs, with a row for each tick and a column
for each expression. Constants and durations are numbers.

` + expressionHelp,
	example: `  ecsdump plot D 'count(Health < 10)'
  ecsdump plot D 'sum(Gold)' 'max(Gold)' mark:start.. --json --every 10
  ecsdump plot D alive 'sum(Gold)' 1..tip:1 --format csv > branch.csv`,
	complete: []completer{nil, (*completion).ranges},
	run: func(f flags) action {
		p := new(plotCmd)
		f.entity(&p.entity, "make the expressions about this entity")
		p.flags(f, "evaluate at the first tick, every Nth after it, and the last one", "chart")
		return func(c *call) error {
			if err := p.arguments(c); err != nil {
				return err
			}
			return c.read(c.args[0], p.plot)
		}
	},
}

// A plotCmd evaluates expressions over a range of ticks.
type plotCmd struct {
	*route
	sampling
	entity string

	// Called for unreadable states, with the tick after the last readable state.
	hide func(tick uint64)
	// The entity of the expressions; Vacant for expressions on the whole world.
	of          ecs.Entity
	exprs       []*query.Expr
	lines       []plotLine
	evaluated   int    // Number of evaluated states.
	first, last uint64 // Ticks of the first and the last evaluated state.
}

// A plotLine holds the values of one expression, and the statistics of its row in the table.
type plotLine struct {
	term.Series
	begin, end query.Answer
	low, high  extreme
	failed     int   // Number of states at which the expression failed.
	failure    error // First error of the expression.
	failedAt   stateDoc
}

// An extreme is the lowest or highest number of a line, with the first tick that has the number.
type extreme struct {
	x      float64
	answer query.Answer
	tick   uint64
}

// plot evaluates the expressions and prints the values. As JSON and CSV, it prints each value as it
// is computed. It prints charts at the end.
//
// Of several errors, plot returns the first in this order: an error that ended the walk, an
// expression that failed at every state, damage.
func (p *plotCmd) plot(s *source) (err error) {
	if s.IsSave() {
		return s.noJournal(describe.Command("query", s.path, "--count"), "it has one state, so there is nothing to plot")
	}
	if p.route, err = s.route(p.span, p.at); err != nil {
		return err
	}
	p.hide = p.breakLines
	if err := p.compile(); err != nil {
		return err
	}
	doc := &plotDoc{States: len(p.states), Expressions: p.texts, Points: []plotPointDoc{}}
	if p.of != ecs.Vacant {
		doc.Entity = p.of.String()
	}
	switch {
	case s.json:
		err = stream(s.app, doc, p.points)
	case p.format == "csv":
		err = writeValues(s.app, append([]string{"tick"}, p.texts...), p.points, func(at plotPointDoc) ([]string, []query.Answer) {
			return []string{strconv.FormatUint(at.Tick, 10)}, at.Values.answers
		})
	default:
		if err = p.points(p.addPoint); err == nil {
			p.print()
		}
	}
	return cmp.Or(err, p.failures(), p.unread)
}

// compile compiles the expressions for the last state, which most likely has all components.
func (p *plotCmd) compile() (err error) {
	want, end := query.WantTotal, p.route.lastState()
	if p.of = ecs.Vacant; p.entity != "" {
		want = query.WantValue
		if p.of, err = p.source.entity(p.entity, end.seq); err != nil {
			return err
		}
	}
	for _, text := range p.texts {
		x, err := p.source.compile(end, "plot", text, want)
		if err != nil {
			return err
		}
		p.exprs, p.lines = append(p.exprs, x), append(p.lines, plotLine{Series: term.Series{Field: text}, low: extreme{x: math.Inf(1)}, high: extreme{x: math.Inf(-1)}})
	}
	return nil
}

// points visits the values of the expressions at the sampled states. An expression has no value for
// a dead entity, or if it fails.
func (p *plotCmd) points(visit func(plotPointDoc) error) error {
	last, seen := len(p.states)-1, stateDoc{}
	before := -1
	return p.each(0, last, func(i int, im *inspect.Image, c *inspect.Commit) error {
		at := plotPointDoc{describe.State(im.Tick, p.states[i]), cellsDoc{p.texts, make([]query.Answer, len(p.texts))}, ""}
		// each() skips unreadable states. If it has skipped a state, draw a gap.
		if i > before+1 && before >= 0 {
			p.hide(seen.Tick + 1)
		}
		before, seen = i, at.stateDoc
		// Each tick must be passed to the expressions, even if the state is not sampled.
		asked := p.states.sampled(i, p.every)
		for n, x := range p.exprs {
			err := x.Follow(im, c)
			if err == nil && asked && (p.of == ecs.Vacant || im.IsAlive(p.of)) {
				at.Values.answers[n], err = x.Of(p.of)
			}
			if err != nil && asked {
				p.lines[n].fail(&at, err)
			}
		}
		if !asked {
			return nil
		}
		p.evaluated++
		return visit(at)
	})
}

// fail records an error of the expression at a state. The document has the first error of each
// state.
func (l *plotLine) fail(at *plotPointDoc, err error) {
	if l.failed++; l.failed == 1 {
		l.failure, l.failedAt = err, at.stateDoc
	}
	at.Error = cmp.Or(at.Error, err.Error())
}

// breakLines begins a gap in all lines at a tick. The next value ends the gap.
func (p *plotCmd) breakLines(tick uint64) {
	for n := range p.lines {
		p.lines[n].Set(tick, math.NaN())
	}
}

// addPoint appends the values of a state to the lines. A missing or infinite value begins a gap.
func (p *plotCmd) addPoint(at plotPointDoc) error {
	if p.evaluated == 1 {
		// p.evaluated already counts this state, so 1 means the first state.
		p.first = at.Tick
	}
	p.last = at.Tick
	for n, v := range at.Values.answers {
		l := &p.lines[n]
		x, ok := v.Float()
		if !ok || math.IsInf(x, 0) {
			x = math.NaN()
		}
		l.Set(at.Tick, x)
		if l.end = v; p.evaluated == 1 {
			l.begin = v
		}
		if x < l.low.x { // Never true if x is NaN.
			l.low = extreme{x, v, at.Tick}
		}
		if x > l.high.x {
			l.high = extreme{x, v, at.Tick}
		}
	}
	return nil
}

// chartWidth is the width of charts if the width of the output is unknown.
const chartWidth = 80

// print prints a chart for each expression, and a table of the first, last, lowest and highest
// values.
func (p *plotCmd) print() {
	width, rows := p.Width, map[bool]int{true: 10, false: 5}[len(p.lines) == 1]
	if width == 0 {
		width = chartWidth
	}
	for i := range p.lines {
		l := &p.lines[i]
		p.StyledLine(term.Heading, "%s", l.Field)
		if l.low.x > l.high.x {
			p.Line("no number at any of %v", term.Count(p.evaluated, "state", "states"))
		} else {
			for _, line := range l.Chart(p.first, p.last, width, rows) {
				p.Line("%s", line)
			}
		}
		p.Line("")
	}
	g := p.Grid("~EXPRESSION", ">FIRST", ">LAST", ">LOW", ">TICK", ">HIGH", ">TICK")
	for i := range p.lines {
		l := &p.lines[i]
		extremes := []any{"-", "", "-", ""}
		if l.low.x <= l.high.x {
			extremes = []any{shortNumber(l.low.answer), l.low.tick, shortNumber(l.high.answer), l.high.tick}
		}
		g.Row(append([]any{l.Field, shortNumber(l.begin), shortNumber(l.end)}, extremes...)...)
	}
	g.Flush()
}

// shortNumber formats v for the table, with the number format of the chart axes.
func shortNumber(v query.Answer) string {
	if x, ok := v.Float(); ok && strings.Contains(v.String(), ".") {
		return term.Number(x)
	}
	return v.String()
}

// failures returns an error for an expression that failed at every state. For an expression that
// failed at some states, it prints a note.
func (p *plotCmd) failures() error {
	for i := range p.lines {
		if l := &p.lines[i]; l.failed > 0 && l.failed == p.evaluated {
			return fail(exitProblem, "", "%s: %w", p.path, l.failure)
		} else if l.failed > 0 {
			p.app.printNote("%s: no value at %s; first at %s: %v", p.path, term.Count(l.failed, "state", "states"), l.failedAt.Place(), l.failure)
		}
	}
	return nil
}
