package ecs

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/stet-ecs/stet/internal/naming"
)

// An assembled is a pointer to a query or a bundle. Bind makes it from storages. Bind calls
// assemble on a nil pointer of the type, which returns a new query or bundle.
type assembled interface {
	assemble(p *parts) any
}

// The parts of a query or a bundle are the storages of its components. err is the first error.
type parts struct {
	binding *binding
	words   []string // The words of a query's tag, one for each component.
	used    []AnyStorage
	err     error
}

// assemble adds a function to b.assembles that makes the query or bundle for the field at path. In
// two cases the field stays nil, and the method Build of the program must set it:
//
//   - a query whose field has no tag
//   - a bundle whose storages are missing or ambiguous
func (b *binding) assemble(path string, v reflect.Value, h assembled, tag string, tagged bool) error {
	query := strings.HasPrefix(v.Type().Elem().Name(), "Query")
	switch {
	case tagged && !query:
		return errors.New("a bundle takes no tag; its types name its components")
	case !tagged && query, !v.IsNil():
		return nil
	}
	p := &parts{binding: b}
	if query {
		p.words = strings.Split(tag, ",")
	}
	b.assembles = append(b.assembles, func() error {
		made := h.assemble(p)
		if p.err == nil && len(p.words) > len(p.used) {
			p.err = p.wrongCount()
		}
		switch {
		case p.err == nil:
			v.Set(reflect.ValueOf(made))
		case query:
			return inField(path, p.err)
		default:
			b.reasons[path] = p.err
		}
		return nil
	})
	return nil
}

func (p *parts) wrongCount() error {
	return fmt.Errorf("its tag has %d words; give each component one of the words write, read, write? and read?", len(p.words))
}

// storagePart returns the storage of the next component. It returns nil after an error.
func storagePart[T any](p *parts) *Storage[T] {
	if p.err != nil {
		return nil
	}
	var none *Storage[T]
	s, err := p.binding.find(reflect.ValueOf(none), none, bindTag{}, "create it in Build")
	switch {
	case err != nil:
		p.err = fmt.Errorf("%v: %w", reflect.TypeFor[T](), err)
	case s == nil:
		p.err = fmt.Errorf("the world has no component of type %v; add a field of type *ecs.Storage[%[1]v]", reflect.TypeFor[T]())
	case slices.Contains(p.used, s):
		p.err = fmt.Errorf("it has %s twice", naming.Shown(s.Name()))
	default:
		p.used = append(p.used, s)
		return s.(*Storage[T])
	}
	return nil
}

// accessPart returns the access to the next component, as given by the tag of the query.
func accessPart[T any](p *parts) (a Access[T]) {
	k := len(p.used)
	s := storagePart[T](p)
	if s == nil {
		return a
	}
	if k >= len(p.words) {
		p.err = p.wrongCount()
		return a
	}
	word, optional := strings.CutSuffix(strings.TrimSpace(p.words[k]), "?")
	switch word {
	case "write":
		a = Write(s)
	case "read":
		a = Read(s)
	default:
		p.err = fmt.Errorf("its tag has the unknown word %q; the words are write, read, write? and read?", p.words[k])
		return a
	}
	if optional {
		a = Optional(a)
	}
	return a
}
