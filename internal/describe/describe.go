// Package describe has what the documents of ecsdump and those of its page say alike: parts of
// documents, and how values, entities and errors are named in them.
package describe

import (
	"errors"
	"strings"
	"time"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/persist"
)

// Listed returns what doc makes of each of items. It is never nil, which JSON would
// write as null.
func Listed[T, D any](items []T, doc func(T) D) []D {
	docs := make([]D, len(items))
	for i, item := range items {
		docs[i] = doc(item)
	}
	return docs
}

// Known returns a time for a member that is missing, or null, if it is not known.
func Known(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// Kind returns what has rows of type t: a component, a tag, whose rows take no bytes, or a
// resource.
func Kind(t *layout.Type, resource bool) string {
	switch {
	case resource:
		return "resource"
	case t.Width() == 0:
		return "tag"
	}
	return "component"
}

// Holder names the entity that has a value; a resource has none. Package inspect gives that as
// entity 0, which would print as one.
func Holder(e ecs.Entity, resource bool) string {
	if resource {
		return ""
	}
	return e.String()
}

// Unprefixed returns the text of err, if there is one, without the name of package persist.
func Unprefixed(err error) string {
	if err == nil {
		return ""
	}
	return strings.TrimPrefix(err.Error(), "persist: ")
}

// A ProblemDoc is damage, or something else that keeps bytes from being used.
type ProblemDoc struct {
	Kind    string `json:"kind"`              // corrupt, foreign, newer or missing.
	File    string `json:"file,omitempty"`    // Relative to STORE; for a save its name.
	Offset  *int64 `json:"offset,omitempty"`  // First byte in question, if it is known.
	Length  *int64 `json:"length,omitempty"`  // Bytes in question, if it is known.
	Message string `json:"message,omitempty"` // All of it, for people.
}

// ProblemOf describes a problem, with its place in a file if it has one. Whatever is not known to
// be something else is damage.
func ProblemOf(err error) ProblemDoc {
	doc := ProblemDoc{Kind: "corrupt", Message: Unprefixed(err)}
	switch {
	case errors.Is(err, persist.ErrNewer):
		doc.Kind = "newer"
	case errors.Is(err, persist.ErrForeign):
		doc.Kind = "foreign"
	case errors.Is(err, persist.ErrNotFound):
		doc.Kind = "missing"
	}
	if damage, ok := errors.AsType[*persist.DamageError](err); ok {
		doc.File = damage.File
		if damage.Offset >= 0 {
			doc.Offset, doc.Length = &damage.Offset, &damage.Length
		}
	}
	return doc
}
