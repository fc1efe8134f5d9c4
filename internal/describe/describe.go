// Package describe holds the common parts of the documents of ecsdump and of its web page. It also
// formats values, entities and errors for these documents.
package describe

import (
	"errors"
	"strings"
	"time"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/persist"
)

// Listed returns doc(item) for each item. The result is never nil, so that an empty list becomes []
// in JSON, not null.
func Listed[T, D any](items []T, doc func(T) D) []D {
	docs := make([]D, len(items))
	for i, item := range items {
		docs[i] = doc(item)
	}
	return docs
}

// TryListed returns doc(item) for each item, or the first error.
func TryListed[T, D any](items []T, doc func(T) (D, error)) (docs []D, err error) {
	docs = make([]D, len(items))
	for i, item := range items {
		if docs[i], err = doc(item); err != nil {
			return nil, err
		}
	}
	return docs, nil
}

// Known returns a pointer to t, or nil if t is zero. In JSON, a nil is null or a missing member.
func Known(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// Kind returns the kind of a storage with rows of type t: "component", "resource", or "tag". The
// rows of a tag take no bytes.
func Kind(t *layout.Type, resource bool) string {
	switch {
	case resource:
		return "resource"
	case t.Width() == 0:
		return "tag"
	}
	return "component"
}

// Holder returns the name of the entity that has a value. It returns "" for a resource, which
// package inspect stores under entity 0.
func Holder(e ecs.Entity, resource bool) string {
	if resource {
		return ""
	}
	return e.String()
}

// Unprefixed returns the text of err without the prefix of package persist, or "" for nil.
func Unprefixed(err error) string {
	if err == nil {
		return ""
	}
	return strings.TrimPrefix(err.Error(), "persist: ")
}

// A ProblemDoc describes damage, or another reason why bytes cannot be used.
type ProblemDoc struct {
	Kind string `json:"kind"` // corrupt, foreign, newer or missing.
	// File name relative to STORE. For a save, the name of the save.
	File    string `json:"file,omitempty"`
	Offset  *int64 `json:"offset,omitempty"`  // First affected byte, if known.
	Length  *int64 `json:"length,omitempty"`  // Number of affected bytes, if known.
	Message string `json:"message,omitempty"` // Text of the whole problem.
}

// ProblemOf describes a problem, with its position in a file if it has one. A problem without a
// known cause counts as damage.
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
