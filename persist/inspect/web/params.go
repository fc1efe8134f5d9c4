package web

import (
	"context"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/stet-ecs/stet/ecs"
)

// A params reads the parameters of a request. It records the first invalid parameter in err. The
// handler checks err once, after it has read all parameters. So every method returns some value,
// which is unused if the parameter is invalid.
type params struct {
	ctx    context.Context
	values url.Values
	err    error
}

// invalid records an invalid parameter, unless err is already set.
func (a *params) invalid(format string, args ...any) {
	if a.err == nil {
		a.err = fail(codeUsage, format, args...)
	}
}

// text returns a parameter, or "" if it is missing.
func (a *params) text(name string) string { return a.values.Get(name) }

// number returns a parameter that is a whole number. The second argument is the result if the
// parameter is missing. The third argument is the largest valid number.
func (a *params) number(name string, otherwise, most uint64) uint64 {
	text := a.text(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n > most {
		a.invalid("%s takes a whole number from 0 to %d", name, most)
	}
	return n
}

// count is like number, but for values that fit into an int.
func (a *params) count(name string, otherwise, most int) int {
	return int(a.number(name, uint64(otherwise), uint64(most)))
}

// record returns a required parameter that is the seq of a record.
func (a *params) record(name string) uint64 {
	if a.text(name) == "" {
		a.invalid("%s is missing: the number of a record", name)
	}
	return a.number(name, 0, 1<<63)
}

// entity returns the parameter entity, in the form 12v3.
func (a *params) entity() ecs.Entity {
	e, err := ecs.ParseEntity(a.text("entity"))
	if err != nil || e == ecs.None {
		a.invalid("entity takes one entity, INDEXvGENERATION as in 12v3")
	}
	return e
}

// index returns the parameter entity if it is only an index, like 12. Other values are not an
// error, because they may be an entity.
func (a *params) index() (index uint32, alone bool) {
	n, err := strconv.ParseUint(a.text("entity"), 10, 32)
	return uint32(n), err == nil
}

// entities returns all values of the parameter entity.
func (a *params) entities(most int) (all []ecs.Entity) {
	texts := a.values["entity"]
	if len(texts) > most {
		a.invalid("at most %d entities are allowed", most)
		return nil
	}
	for _, text := range texts {
		e, err := ecs.ParseEntity(text)
		if err != nil {
			a.invalid("entity takes entities, INDEXvGENERATION as in 12v3")
		}
		all = append(all, e)
	}
	return all
}

// ticks returns the parameters from and to, a range of ticks. The default is all ticks.
func (a *params) ticks() (from, to uint64) {
	return a.number("from", 0, math.MaxUint64), a.number("to", math.MaxUint64, math.MaxUint64)
}

// flag reports whether a parameter is 1.
func (a *params) flag(name string) bool { return a.text(name) == "1" }

// expressions returns all values of a parameter, without blank values.
func (a *params) expressions(name string, most int) []string {
	texts := slices.DeleteFunc(slices.Clone(a.values[name]), func(s string) bool { return strings.TrimSpace(s) == "" })
	if len(texts) > most {
		a.invalid("at most %d values of %s are allowed", most, name)
	}
	return texts
}
