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

// This file declares flags and describes their values, for help, errors, completion and agents.
//
// For example, package pflag parses --limit=x and calls the method Set of the value. Set returns an
// error, and wrongFlag rewords it: --limit takes a whole number, not "x".

// flags are the flags of a command.
type flags struct {
	*pflag.FlagSet
	cmd *cobra.Command
}

// A value is the value of a flag that needs parsing or can be repeated. set() is called for each
// occurrence of the flag.
type value struct {
	kind  string   // Name of the kind in help.
	takes string   // The valid values, as in an error after "takes".
	words []string // All valid words, if they are few.
	begin string   // The default value, as text.
	set   func(text string) error
}

func (v *value) String() string        { return v.begin }
func (v *value) Set(text string) error { return v.set(text) }
func (v *value) Type() string          { return v.kind }

// errTakes reports an invalid value of a flag. The printed error lists the valid values.
var errTakes = fmt.Errorf("invalid value of the flag")

// pointForms lists the forms of a point in time for help texts.
const pointForms = "a tick, @latest~N, @first, @-5s, @02:47:10, record:N"

// point declares the flag --at.
func (f flags) point(at *string) {
	f.StringVar(at, "at", "@latest", "point in time to show: "+pointForms+", snap:N or mark:NAME")
}

// output declares the flag -o.
func (f flags) output(out *string, usage string) { f.StringVarP(out, "output", "o", "", usage) }

// number declares a flag for a count. The short name may be empty. The flag accepts hexadecimal and
// binary numbers too, as in Go.
func (f flags) number(to *uint, name, short string, n uint, usage string) {
	*to = n
	f.VarP(&value{kind: "uint", takes: "a whole number, 0 or more", begin: strconv.Itoa(int(n)), set: setParsed(to, func(text string) (uint, error) {
		n, err := strconv.ParseUint(text, 0, 0)
		return uint(n), err
	})}, name, short, usage)
}

// interval declares the flag --interval.
func (f flags) interval(to *time.Duration, begin time.Duration, usage string) {
	*to = begin
	f.Var(&value{kind: "duration", takes: "a time above 0 with its unit, as in 500ms or 2s", begin: begin.String(), set: setParsed(to, func(text string) (time.Duration, error) {
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
	f.Var(&value{kind: kind, takes: alternatives(texts), words: texts, begin: texts[0], set: setParsed(to, func(text string) (T, error) {
		return T(text), checkWord(text, texts)
	})}, name, usage)
}

// alternatives joins words as prose: "auto, always or never".
func alternatives(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// checkWord returns an error if words lacks word.
func checkWord(word string, words []string) error {
	if !slices.Contains(words, word) {
		return errTakes
	}
	return nil
}

// setParsed returns a setter that stores the result of parse() in *to. If parse() fails, *to is
// unchanged.
func setParsed[T any](to *T, parse func(text string) (T, error)) func(text string) error {
	return func(text string) error {
		v, err := parse(text)
		if err == nil {
			*to = v
		}
		return err
	}
}

// someOf declares a flag that takes some of a few words, comma-separated or repeated.
func (f flags) someOf(to *[]string, name, usage string, words []string) {
	f.Var(&value{kind: "words", takes: alternatives(words), words: words, set: commaSeparated(to, func(word string) (string, error) {
		return word, checkWord(word, words)
	})}, name, usage)
}

// entity declares the flag --entity of commands that take one entity. Repeating the flag is an
// error.
func (f flags) entity(to *string, usage string) {
	f.Var(&value{kind: "entity", takes: "one entity: INDEXvGENERATION, as in 12v3, or the index of one that is alive", set: func(text string) error {
		if !isEntity(text) || *to != "" {
			return errTakes
		}
		*to = text
		return nil
	}}, "entity", usage)
}

// isEntity reports whether text has the form of an ENTITY.
func isEntity(text string) bool {
	_, err := ecs.ParseEntity(text)
	if err != nil {
		_, err = strconv.ParseUint(text, 10, 32)
	}
	return err == nil
}

// entities declares the flag --entity of commands that take several entities, comma-separated or
// repeated. An index alone is an error, because two states may have different generations of it.
func (f flags) entities(to *[]string, usage string) {
	f.Var(&value{kind: "entities", takes: "entities, INDEXvGENERATION, as in 12v3", set: commaSeparated(to, func(text string) (string, error) {
		e, err := ecs.ParseEntity(text)
		return e.String(), err
	})}, "entity", usage)
}

// commaSeparated returns a setter for a comma-separated list. The setter calls one(word) for each
// word, and appends the result to the list.
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

// expressions declares a flag that takes expressions, comma-separated or repeated.
func (f flags) expressions(to *[]string, name, usage string) {
	f.texts(to, name, "exprs", usage, query.Split)
}

// condition declares a flag that takes an expression. If the flag is repeated, all expressions must
// hold.
func (f flags) condition(to *[]string, name, usage string) {
	f.texts(to, name, "expr", usage, func(text string) []string { return []string{text} })
}

// texts declares a flag that can be repeated. parts() splits each text. An empty text adds nothing,
// so a script can pass an empty condition.
func (f flags) texts(to *[]string, name, kind, usage string, parts func(text string) []string) {
	f.Var(&value{kind: kind, takes: "an expression", set: func(text string) error {
		if strings.TrimSpace(text) != "" {
			*to = append(*to, parts(text)...)
		}
		return nil
	}}, name, usage)
}

// A limit is the largest number of printed list elements; 0 means all.
type limit uint

// shownLimit is the default limit of printed lists. With --json, --ndjson or CSV, there is no
// default limit.
const shownLimit = 20

// limit declares the flag --limit.
func (f flags) limit(l *limit, what string) {
	f.number((*uint)(l), limitFlag, "n", shownLimit, "print at most this many "+what+"; 0: all, also the default for --json, --ndjson and CSV")
}

const limitFlag = "limit"

// unlimited sets the limit to 0, unless the command line has --limit. It is called for --json,
// --ndjson and CSV.
func (f flags) unlimited() error {
	if l := f.Lookup(limitFlag); l != nil && !l.Changed {
		return l.Value.Set("0")
	}
	return nil
}

// of returns how many of n items to print, and how many to leave out. The limit may exceed an int.
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

// of returns the first index of the window in a list of n elements, and the index after the window.
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
	f.BoolVar(&a.ndjson, "ndjson", false, "print JSON, with one line for each element of a list")
	when(&a.color, "color", "colour the output: auto (on a terminal), always or never")
	when(&a.progress, "progress", "show the progress on standard error: auto (on a terminal), always or never")
	f.BoolVar(&a.noPager, "no-pager", false, "do not use a pager for long output")
}
