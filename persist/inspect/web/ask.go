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

// An ask is a request with its parameters. The first that is wrong is kept: whoever answers
// looks once, when all are read. So a method that reads one returns something in any case, which
// is not used if it is wrong.
type ask struct {
	ctx    context.Context
	values url.Values
	err    error
}

// wrong keeps what is wrong with a parameter, unless another one was before.
func (a *ask) wrong(format string, args ...any) {
	if a.err == nil {
		a.err = fail(codeUsage, format, args...)
	}
}

// text returns a parameter; "" if it is not there.
func (a *ask) text(name string) string { return a.values.Get(name) }

// number returns a parameter that is a whole number of at most most; otherwise is what it is
// without one.
func (a *ask) number(name string, otherwise, most uint64) uint64 {
	text := a.text(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n > most {
		a.wrong("%s takes a whole number from 0 to %d", name, most)
	}
	return n
}

// count is number for what fits into an int.
func (a *ask) count(name string, otherwise, most int) int {
	return int(a.number(name, uint64(otherwise), uint64(most)))
}

// record returns a parameter that is the seq of a record, which must be given.
func (a *ask) record(name string) uint64 {
	if a.text(name) == "" {
		a.wrong("%s is missing: the number of a record", name)
	}
	return a.number(name, 0, 1<<63)
}

// entity returns the parameter entity: 12v3.
func (a *ask) entity() ecs.Entity {
	e, err := ecs.ParseEntity(a.text("entity"))
	if err != nil {
		a.wrong("entity takes one entity, INDEXvGENERATION as in 12v3")
	}
	return e
}

// index returns the parameter entity if it is an index alone: 12. It keeps nothing as wrong: if it is
// no index, it may be an entity.
func (a *ask) index() (index uint32, alone bool) {
	n, err := strconv.ParseUint(a.text("entity"), 10, 32)
	return uint32(n), err == nil
}

// entities returns the parameters named entity, which may be given several times.
func (a *ask) entities(most int) (all []ecs.Entity) {
	texts := a.values["entity"]
	if len(texts) > most {
		a.wrong("at most %d of entity", most)
		return nil
	}
	for _, text := range texts {
		e, err := ecs.ParseEntity(text)
		if err != nil {
			a.wrong("entity takes entities, INDEXvGENERATION as in 12v3")
		}
		all = append(all, e)
	}
	return all
}

// ticks returns the parameters from and to: a stretch of ticks, all if they are not given.
func (a *ask) ticks() (from, to uint64) {
	return a.number("from", 0, math.MaxUint64), a.number("to", math.MaxUint64, math.MaxUint64)
}

// desk returns who answers: the near desk, or the far one where beside is 1. A state that is shown
// beside another is held there, so that whoever goes through time does not go back to it at each
// step.
func (a *ask) desk(h *shown) *desk {
	if a.flag("beside") {
		return h.far
	}
	return h.near
}

// flag reports whether a parameter is 1.
func (a *ask) flag(name string) bool { return a.text(name) == "1" }

// expressions returns those of a parameter, which may be given several times, but blank ones.
func (a *ask) expressions(name string, most int) []string {
	texts := slices.DeleteFunc(slices.Clone(a.values[name]), func(s string) bool { return strings.TrimSpace(s) == "" })
	if len(texts) > most {
		a.wrong("at most %d of %s", most, name)
	}
	return texts
}
