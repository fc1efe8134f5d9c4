package ecs

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/stet-ecs/stet/ecs/layout"
)

// This file has the untyped access to components by name, for editors, consoles and live views.
// World.Storage finds a storage by its name.

var (
	errNotAlive = errors.New("the entity is not alive")
	errNoType   = errors.New("the program has not registered it, so there is no type for its values; use SetJSON")
)

// A valueError reports a value that could not be written by name, and the reason.
type valueError struct {
	text string
	err  error
}

func (e *valueError) Error() string { return "ecs: " + e.text }
func (e *valueError) Unwrap() error { return e.err }

// valueFault adds the name of the component or resource to err. It also adds the entity of a
// component, and the path of the field if err has one.
func valueFault(name string, t *layout.Type, e Entity, resource bool, err error) error {
	if err == nil {
		return nil
	}
	what, why := name, err.Error()
	if fault, ok := errors.AsType[*layout.DataError](err); ok {
		what, why = what+fieldPath(t, fault.Path), fault.Reason
	}
	if !resource {
		what += " of " + e.String()
	}
	return &valueError{what + ": " + why, err}
}

// fieldPath removes the type name from the start of path. "Position.X" becomes ".X".
func fieldPath(t *layout.Type, path string) string {
	path = strings.TrimPrefix(path, t.Name)
	if path != "" && path[0] != '.' && path[0] != '[' {
		path = "." + path
	}
	return path
}

// noJSON returns an error that says why values of type T have no JSON form.
func noJSON[T any]() error {
	_, err := layout.Of(reflect.TypeFor[T]())
	if fault, ok := errors.AsType[*layout.TypeError](err); ok {
		return fmt.Errorf("it has no JSON: %s: %s", fault.Path, fault.Reason)
	}
	return fmt.Errorf("it has no JSON: %w", err)
}

// asType converts v to T. v must be a T or a pointer to a T.
func asType[T any](v any) (x T, err error) {
	switch v := v.(type) {
	case T:
		return v, nil
	case *T:
		if v != nil {
			return *v, nil
		}
		return x, fmt.Errorf("a nil pointer, where %v is wanted", reflect.TypeFor[T]())
	case nil:
		return x, fmt.Errorf("nil, where %v is wanted", reflect.TypeFor[T]())
	}
	return x, fmt.Errorf("a value of type %T, where %v is wanted", v, reflect.TypeFor[T]())
}
