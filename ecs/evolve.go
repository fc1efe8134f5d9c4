package ecs

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/stet-ecs/stet/ecs/internal/track"
	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/internal/naming"
)

// Migrate says how values of version from become values of version from+1, for
// what no conversion by name can do:
//
//	type speedV1 struct{ Text string } // As it was.
//
//	ecs.Register(w, ecs.Component[Speed]{Version: 2, Migrations: []ecs.Migration{
//		ecs.Migrate(1, func(old speedV1) Speed { … }),
//	}})
//
// Stored values are converted to From by name before, and To by name to what the
// next step or the component takes; fields that From or the next step does not have
// are lost, see Component.Dropped. From may be [layout.Value] instead, which is
// the stored row as it is. The function is called for each row that belongs to an
// entity, in dense order, and must depend on nothing but its argument. It is not
// called for the gaps of an [Indexed] storage, which get the present default.
func Migrate[From, To any](from uint32, f func(From) To) Migration {
	m := Migration{from: from}
	target, err := layout.NewCodec(reflect.TypeFor[To]())
	if err != nil {
		m.fault = err
		return m
	}
	m.target = target.Type()
	var source *layout.Codec
	onValues := reflect.TypeFor[From]() == reflect.TypeFor[layout.Value]()
	if !onValues {
		if source, m.fault = layout.NewCodec(reflect.TypeFor[From]()); m.fault != nil {
			return m
		}
		m.source = source.Type()
	}
	m.run = func(rows []byte, stored *layout.Type, n int, skip func(int) bool) (_ []byte, err error) {
		values := make([]From, n)
		if onValues {
			err = decodeValues(stored, rows, any(values).([]layout.Value), skip)
		} else {
			err = layout.Decode(source, rows, values)
		}
		if err != nil {
			return nil, err
		}
		out := make([]To, n)
		for i := range values {
			if !skip(i) {
				out[i] = f(values[i])
			}
		}
		return layout.Append(target, nil, out), nil
	}
	return m
}

// An evolution is what a component or resource was before.
type evolution struct {
	version    uint32
	former     []string    // Names, the latest first; nil: nothing was said of them.
	dropped    []string    // Stored fields that may be lost.
	migrations []Migration // By version.
}

var noEvolution evolution

// past returns e, also if there is none.
func (e *evolution) past() *evolution {
	if e == nil {
		return &noEvolution
	}
	return e
}

// storedAs returns the name under which something that has the names for which
// has returns true holds it: its own, or the first of its former ones.
func (s *spec) storedAs(has func(name string) bool) (name string, ok bool) {
	if has(s.name) {
		return s.name, true
	}
	for _, name := range s.past().former {
		if has(name) {
			return name, true
		}
	}
	return "", false
}

// A Migration is one step from a version of a component to the next: see [Migrate].
type Migration struct {
	from   uint32
	source *layout.Type // nil: rows as they are stored, as layout.Values.
	target *layout.Type
	fault  error // Why its types cannot be stored.

	// run turns rows of the stored layout, which is source if that is not nil, into
	// rows of target. Rows for which skip returns true become zero.
	run func(rows []byte, stored *layout.Type, n int, skip func(int) bool) ([]byte, error)
}

// decodeValues decodes the rows that are not skipped without their Go type.
func decodeValues(stored *layout.Type, rows []byte, values []layout.Value, skip func(int) bool) error {
	for i := range values {
		row, rest, err := stored.Next(rows)
		if err != nil {
			return err
		}
		if rows = rest; skip(i) {
			continue
		}
		if values[i], err = stored.Value(row); err != nil {
			return err
		}
	}
	return nil
}

// newEvolution returns what a component with that layout, which may be nil, was
// before, as it is said; nil if it was never different.
func newEvolution(said evolution, current *layout.Type) (*evolution, error) {
	if said.version == 0 && said.former == nil && said.dropped == nil && said.migrations == nil {
		return nil, nil
	}
	e := &evolution{said.version, slices.Clone(said.former), slices.Clone(said.dropped), slices.Clone(said.migrations)}
	slices.SortStableFunc(e.migrations, func(a, b Migration) int { return cmp.Compare(a.from, b.from) })
	var before *layout.Type
	for i, m := range e.migrations {
		switch {
		case m.fault != nil:
			return nil, fmt.Errorf("the migration from version %d: %w", m.from, m.fault)
		case m.from >= e.version:
			return nil, fmt.Errorf("a migration from version %d, but it is of version %d; give it a later one as Component.Version", m.from, e.version)
		case i > 0 && e.migrations[i-1].from == m.from:
			return nil, fmt.Errorf("two migrations from version %d", m.from)
		}
		if err := e.follows(before, m.source); err != nil {
			return nil, fmt.Errorf("the migration from version %d does not take what the one before gives: %w", m.from, err)
		}
		before = m.target
	}
	if err := e.follows(before, current); err != nil {
		return nil, fmt.Errorf("the last migration does not give what the component takes: %w", err)
	}
	return e, nil
}

// follows returns why rows of one layout cannot be converted to the next. nil is
// any.
func (e *evolution) follows(before, next *layout.Type) error {
	if before == nil || next == nil {
		return nil
	}
	c, err := layout.NewConversion(before, next)
	if err != nil {
		return err
	}
	if _, l := judge(c.Changes(), cmp.Or(next.Name, before.Name), e.dropped); len(l) > 0 {
		return fmt.Errorf("%w: %v", raw.ErrDropped, l)
	}
	return nil
}

// Converted returns what the last Load converted.
func (w rawWorld) Converted() []raw.Conversion { return w.converted }

// Conversions returns what Load would convert of a state with these storages.
func (w rawWorld) Conversions(storages []raw.StorageState) ([]raw.Conversion, error) {
	plans, err := w.plan(storages)
	return w.conversions(plans), err
}

// conversions returns what plans convert and keep, and behind it what they have
// nothing for.
func (w *World) conversions(plans []*plan) (all []raw.Conversion) {
	if plans == nil {
		return nil
	}
	for _, p := range plans {
		switch {
		case p.target.about().unknown:
			all = append(all, raw.Conversion{Stored: p.stored.Name})
		case len(p.changes) > 0:
			all = append(all, raw.Conversion{Stored: p.stored.Name, Name: p.target.Name(), Changes: p.changes})
		}
	}
	for _, s := range w.unstored(plans) {
		all = append(all, raw.Conversion{Name: s.Name()})
	}
	return all
}

// unstored returns what is registered, and would be stored, but has no part in plans.
func (w *World) unstored(plans []*plan) (missing []AnyStorage) {
	stored := make(map[AnyStorage]bool, len(plans))
	for _, p := range plans {
		stored[p.target] = true
	}
	for _, s := range slices.Concat(w.storages, w.resources) {
		if about := s.about(); !stored[s] && !about.unknown && !about.noPersist {
			missing = append(missing, s)
		}
	}
	return missing
}

// plan works out what becomes of stored components, of which it needs no rows. What
// the program cannot take is refused here, and nowhere else: if it is only that values
// would be lost, the error is [raw.ErrDropped] and the plans are there.
func (w *World) plan(storages []raw.StorageState) ([]*plan, error) {
	heirs := w.heirs(storages)
	names := make(map[string]bool, len(storages))
	plans := make([]*plan, len(storages))
	for i := range storages {
		s := (*storageState)(&storages[i])
		if names[s.Name] {
			return nil, fmt.Errorf("component %s is there twice", naming.Shown(s.Name))
		}
		names[s.Name] = true
		var err error
		if plans[i], err = w.planOne(s, heirs[s.Name]); err != nil {
			return nil, s.fault(err)
		}
	}
	return plans, w.losses(plans)
}

// losses returns what plans would lose that the program does not give up, or nil.
func (w *World) losses(plans []*plan) error {
	var all []string
	for _, p := range plans {
		if len(p.lost) > 0 {
			all = append(all, p.lost.refusal(p.target.Name(), p.target.about().layout.Name))
		}
	}
	for _, s := range w.unstored(plans) {
		about := s.about()
		k := slices.IndexFunc(plans, func(p *plan) bool {
			return p.target.about().unknown && p.stored.Resource == (s.sparseSet() == nil) && sameFields(p.stored.Layout, about.layout)
		})
		if k >= 0 && about.past().former == nil {
			all = append(all, probablyRenamed(s.Name(), about.layout.Name, plans[k].stored.Name))
		}
	}
	if all == nil {
		return nil
	}
	return fmt.Errorf("%w: %s", raw.ErrDropped, strings.Join(all, "\n"))
}

// heirs returns by their stored names the storages and resources of w that stored
// ones become.
func (w *World) heirs(storages []raw.StorageState) map[string]AnyStorage {
	stored := make(map[string]bool, len(storages))
	for i := range storages {
		stored[storages[i].Name] = true
	}
	heirs := make(map[string]AnyStorage, len(storages))
	for _, list := range [2][]AnyStorage{w.storages, w.resources} {
		for _, s := range list {
			if name, ok := s.about().storedAs(func(name string) bool { return stored[name] }); ok {
				heirs[name] = s
			}
		}
	}
	return heirs
}

// A plan is how the rows of a stored component become rows of another one: one that
// the program registered, or an unknown one that takes them as they are.
type plan struct {
	stored  *storageState
	target  AnyStorage
	unknown bool            // target is new to the world.
	stages  []stage         // One after the other.
	regap   bool            // Gaps get the default of target.
	changes []layout.Change // What that does, for people; none: nothing is converted.
	lost    loss            // What the program does not say may be.
	pages   []*track.Page   // The sparse array of stored, if it is known to be right.
	put     func()          // Puts the rows into target; see decode.
}

// A stage converts n rows, of which those that belong to no entity may be
// skipped.
type stage func(rows []byte, n int, skip func(row int) bool) ([]byte, error)

// planOne works out what becomes of s: heir, or if there is none, something that
// holds it as it is.
func (w *World) planOne(s *storageState, heir AnyStorage) (*plan, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	if heir != nil {
		p, err := newPlan(s, heir)
		if !heir.about().unknown || err == nil && len(p.changes) == 0 && s.NoRewind == heir.about().noRewind {
			return p, err
		} // Else it was loaded before as something else; nothing of it is left.
	}
	return &plan{stored: s, target: w.newUnknown(s), unknown: true}, nil
}

// newPlan works out how s becomes target.
func newPlan(s *storageState, target AnyStorage) (*plan, error) {
	if err := sameSort(s, target); err != nil {
		return nil, err
	}
	p := &plan{stored: s, target: target}
	past := target.about().past()
	if s.Version > past.version {
		return nil, fmt.Errorf("%w: version %d, the program has version %d", raw.ErrNewer, s.Version, past.version)
	}
	if s.Name != target.Name() {
		p.note("was %s", naming.Shown(s.Name))
	}
	at := s.Layout
	for _, m := range past.migrations {
		if m.from < s.Version {
			continue
		}
		from := at
		if m.source != nil {
			if err := p.convert(at, m.source); err != nil {
				return nil, fmt.Errorf("before the migration from version %d: %w", m.from, err)
			}
			from = m.source
		}
		p.stages = append(p.stages, func(rows []byte, n int, skip func(int) bool) ([]byte, error) {
			return m.run(rows, from, n, skip)
		})
		p.note("migrated from version %d to %d", m.from, m.from+1)
		at = m.target
	}
	if err := p.convert(at, target.about().layout); err != nil {
		return nil, fmt.Errorf("%w; give the type a version and say how with ecs.Migrate", err)
	}
	if s.Version != past.version && len(p.stages) == 0 {
		p.note("version %d became %d", s.Version, past.version)
	}
	p.place()
	return p, nil
}

// sameSort returns why s and target cannot be the same thing.
func sameSort(s *storageState, target AnyStorage) error {
	if (target.sparseSet() == nil) != s.Resource {
		return errors.New("one of stored and registered is a resource, the other a component")
	}
	if target.about().layout == nil {
		return errors.New("the registered type cannot be encoded")
	}
	return nil
}

func (p *plan) note(format string, args ...any) {
	p.changes = append(p.changes, layout.Change{What: fmt.Sprintf(format, args...)})
}

// convert adds the conversion by name, if there is anything to convert.
func (p *plan) convert(from, to *layout.Type) error {
	c, err := layout.NewConversion(from, to)
	if err != nil {
		return err
	}
	changes, lost := judge(c.Changes(), cmp.Or(to.Name, from.Name), p.target.about().past().dropped)
	p.changes, p.lost = append(p.changes, changes...), append(p.lost, lost...)
	if c.Same() {
		return nil
	}
	p.stages = append(p.stages, func(rows []byte, n int, _ func(int) bool) ([]byte, error) {
		return c.Append(nil, rows, n)
	})
	return nil
}

// place notes what becomes of rows at entity indices. Gaps get the default of the
// program if they held another.
func (p *plan) place() {
	indexed := p.target.Kind() == Indexed
	switch {
	case p.stored.Resource:
	case indexed && !p.stored.Indexed:
		p.note("became Indexed")
	case p.stored.Indexed && !indexed:
		p.note("is no longer Indexed")
	case indexed && len(p.stages) > 0:
		p.regap = true
	case indexed && string(emptyOf(p.target)) != string(*p.stored.emptyRow()):
		p.regap = true
		p.note("gaps have another default")
	}
}

// emptyOf returns the row that gaps of s have.
func emptyOf(s AnyStorage) []byte {
	if gap := s.Raw().AppendDefault(nil); gap != nil {
		return gap
	}
	return s.about().layout.AppendZero(nil)
}

// decode readies put.
func (p *plan) decode(owned bool) (err error) {
	s := *p.stored
	if len(p.stages) > 0 {
		s.Layout, s.Pages = p.target.about().layout, nil
		if s.Rows, err = p.run(); err != nil {
			return err
		}
	}
	p.put, err = p.target.prepare(&s, p.pages, owned, p.regap)
	return err
}

// run returns the stored rows as rows of the target's layout.
func (p *plan) run() (rows []byte, err error) {
	s := p.stored
	rows, n := s.Rows, len(s.Entities)
	if s.Pages != nil {
		rows = slices.Concat(s.Pages...)
	}
	if s.Resource {
		n = 1
	}
	for _, stage := range p.stages {
		if rows, err = stage(rows, n, s.gap); err != nil {
			return nil, err
		}
	}
	return rows, nil
}
