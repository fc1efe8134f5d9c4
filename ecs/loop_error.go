package ecs

import (
	"fmt"
	"strings"
)

// change describes the change of a storage that has invalidated the span of c.
func (c *cursor) change() string {
	for i, s := range c.j.allSets {
		if s.version <= c.since {
			continue
		}
		name, from := s.storage.Name(), c.readNotes
		switch {
		case s.arrangedAt > c.since:
			return fmt.Sprintf("the rows of %s were %s%s", name, s.arrangedBy, s.caller())
		case s.rows.N == 0:
			return fmt.Sprintf("the last entity was removed from %s%s", name, s.caller())
		case s == c.set && s.log.end() > c.progress.moves && c.progress.moves >= s.log.first:
			return s.changed(s.log.moves[c.progress.moves-s.log.first].a)
		case i < len(from) && s.notes > from[i] && s.notes-from[i] <= uint64(len(s.ring)):
			return s.changed(s.noted(from[i]))
		case s.kind != Indexed:
			return s.changed(s.dense.Live[s.rows.N-1])
		}
		return fmt.Sprintf("the members of %s changed%s", name, s.caller())
	}
	return "the rows of a storage have moved"
}

// text returns the name of a query, for errors.
func (j *join) text() string {
	names := make([]string, len(j.columns))
	for i, c := range j.columns {
		names[i] = c.name
	}
	return fmt.Sprintf("Query%d(%s)", len(names), strings.Join(names, ", "))
}
