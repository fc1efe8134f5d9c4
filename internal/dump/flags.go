package dump

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/internal/describe"
	"github.com/stet-ecs/stet/internal/query"
	"github.com/stet-ecs/stet/internal/term"
)

// Flags are declared by the functions of this file, each of which says what a flag takes: for help,
// for errors, for shells and for the tools of agents. A flag that takes any text, or a truth, is
// declared as package pflag does it.
//
//	--limit=x ──▶ pflag ──▶ value.Set ──▶ errTakes ──▶ wrongFlag: "--limit takes a whole number, …"

// flags are those of a command.
type flags struct {
	*pflag.FlagSet
	cmd *cobra.Command
}

// A value is what a flag takes that is more than a text, or may be given several times. Its
// words are what help and errors say of it, so that a wrong one is always answered by what
// would be right.
//
// set is called once each time that the flag is given. kind is also how others tell what a flag is:
// see isList in tools.go, which lists those that can be given several times.
type value struct {
	kind  string   // What help calls it.
	takes string   // What it takes, as errors say it behind "takes".
	words []string // The only words that it takes, if they are few.
	begin string   // What it is without the flag.
	set   func(text string) error
}

func (v *value) String() string        { return v.begin }
func (v *value) Set(text string) error { return v.set(text) }
func (v *value) Type() string          { return v.kind }

// errTakes is why a value refuses a text, if there is nothing to say but what it takes.
var errTakes = fmt.Errorf("not what the flag takes")

// pointForms is what help texts say of points besides marks.
const pointForms = "a tick, @latest~N, @first, @-5s, @02:47:10, record:N"

// point declares the flag --at.
func (f flags) point(at *string) {
	f.StringVar(at, "at", "@latest", "point in time to show: "+pointForms+", snap:N or mark:NAME")
}

// output declares the flag -o.
func (f flags) output(out *string, usage string) { f.StringVarP(out, "output", "o", "", usage) }

// number declares a flag that counts something; short may be "". Hexadecimal and binary numbers are
// taken as well, as in Go.
func (f flags) number(to *uint, name, short string, n uint, usage string) {
	*to = n
	f.VarP(&value{kind: "uint", takes: "a whole number, 0 or more", begin: strconv.Itoa(int(n)), set: parsed(to, func(text string) (uint, error) {
		n, err := strconv.ParseUint(text, 0, 0)
		return uint(n), err
	})}, name, short, usage)
}

// interval declares the flag --interval.
func (f flags) interval(to *time.Duration, begin time.Duration, usage string) {
	*to = begin
	f.Var(&value{kind: "duration", takes: "a time above 0 with its unit, as in 500ms or 2s", begin: begin.String(), set: parsed(to, func(text string) (time.Duration, error) {
		d, err := time.ParseDuration(text)
		if d <= 0 {
			err = errTakes
		}
		return d, err
	})}, "interval", usage)
}

// oneOf declares a flag that takes one of a few words.
func oneOf[T ~string](f *pflag.FlagSet, to *T, name, kind, usage string, words ...T) {
	*to = words[0]
	texts := describe.Listed(words, func(word T) string { return string(word) })
	f.Var(&value{kind: kind, takes: alternatives(texts), words: texts, begin: texts[0], set: parsed(to, func(text string) (T, error) {
		return T(text), among(text, texts)
	})}, name, usage)
}

// among returns an error if word is none of words.
func among(word string, words []string) error {
	if !slices.Contains(words, word) {
		return errTakes
	}
	return nil
}

// parsed returns how a flag is set to what parse makes of its text. If parse fails, what was there
// stays.
func parsed[T any](to *T, parse func(text string) (T, error)) func(text string) error {
	return func(text string) error {
		v, err := parse(text)
		if err == nil {
			*to = v
		}
		return err
	}
}

// someOf declares a flag that takes some of a few words, with commas between or again.
func (f flags) someOf(to *[]string, name, usage string, words []string) {
	f.Var(&value{kind: "words", takes: alternatives(words), words: words, set: commaSeparated(to, func(word string) (string, error) {
		return word, among(word, words)
	})}, name, usage)
}

// entity declares the flag --entity of commands that take one. Given twice it would drop the
// first without a word, so it is refused.
func (f flags) entity(to *string, usage string) {
	f.Var(&value{kind: "entity", takes: "one entity, INDEXvGENERATION as in 12v3, or the index of one that is alive", set: func(text string) error {
		if !isEntity(text) || *to != "" {
			return errTakes
		}
		*to = text
		return nil
	}}, "entity", usage)
}

// entities declares the flag --entity of commands that take several, with commas between
// or again. They become what entities print as. An index alone is not taken: the states that are
// printed may have it in different generations.
func (f flags) entities(to *[]string, usage string) {
	f.Var(&value{kind: "entities", takes: "entities, INDEXvGENERATION, as in 12v3", set: commaSeparated(to, func(text string) (string, error) {
		e, err := ecs.ParseEntity(text)
		return e.String(), err
	})}, "entity", usage)
}

// commaSeparated returns how a flag is set that adds what one makes of each of the words that
// it is given. A word that is wrong is an error even if others were added before it: the command
// does not run then.
func commaSeparated(to *[]string, one func(word string) (string, error)) func(text string) error {
	return func(text string) error {
		for word := range strings.SplitSeq(text, ",") {
			made, err := one(word)
			if err != nil {
				return err
			}
			*to = append(*to, made)
		}
		return nil
	}
}

// expressions declares a flag that takes expressions, with commas between or again.
func (f flags) expressions(to *[]string, name, usage string) {
	f.texts(to, name, "exprs", usage, query.Split)
}

// condition declares a flag that takes an expression, and again one that must hold as well.
func (f flags) condition(to *[]string, name, usage string) {
	f.texts(to, name, "expr", usage, func(text string) []string { return []string{text} })
}

// texts declares a flag that adds the parts of each text that it is given. An empty text adds
// nothing, as a script may give one for no condition.
func (f flags) texts(to *[]string, name, kind, usage string, parts func(text string) []string) {
	f.Var(&value{kind: kind, takes: "an expression", set: func(text string) error {
		if strings.TrimSpace(text) != "" {
			*to = append(*to, parts(text)...)
		}
		return nil
	}}, name, usage)
}

// A limit is how much of a list to print; 0: all.
type limit uint

// shownLimit is the limit of every list that people are shown. Programs, which have --json, --ndjson or CSV
// printed, get all: what is left out would be missed without a word.
const shownLimit = 20

// limit declares the flag --limit.
func (f flags) limit(l *limit, what string) {
	f.number((*uint)(l), limitFlag, "n", shownLimit, "print at most this many "+what+"; 0: all, as for programs")
}

const limitFlag = "limit"

// unlimited takes the limit away that is for people, unless somebody has asked for it. It is called
// with --json, --ndjson and CSV, before the command runs.
func (f flags) unlimited() error {
	if l := f.Lookup(limitFlag); l != nil && !l.Changed {
		return l.Value.Set("0")
	}
	return nil
}

// of returns how many of n things to print, and how many not. Comparing in 64 bits: a limit may be
// larger than any list.
func (l limit) of(n int) (shown, more int) {
	if l == 0 || uint64(l) >= uint64(n) {
		return n, 0
	}
	return int(l), n - int(l)
}

// A window is the part of a list to print.
type window struct {
	from  uint
	limit limit
}

// of returns the part of n things.
func (w window) of(n int) (first, end int) {
	first = int(min(uint64(w.from), uint64(n)))
	shown, _ := w.limit.of(n - first)
	return first, first + shown
}

// global declares the flags of every command.
func (a *app) global(f *pflag.FlagSet) {
	when := func(to *term.When, name, usage string) {
		oneOf(f, to, name, "when", usage, term.Auto, term.Always, term.Never)
	}
	f.BoolVar(&a.json, "json", false, "print one JSON document")
	f.BoolVar(&a.ndjson, "ndjson", false, "print JSON, each element of a list on a line of its own")
	when(&a.color, "color", "colour the output: auto (on a terminal), always or never")
	when(&a.progress, "progress", "show on standard error how far it has come: auto (on a terminal), always or never")
	f.BoolVar(&a.noPager, "no-pager", false, "do not show long output with a pager")
}
