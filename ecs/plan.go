package ecs

import (
	"errors"
	"fmt"
	"slices"

	"github.com/stet-ecs/stet/ecs/internal/track"
	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/ecs/raw"
	"github.com/stet-ecs/stet/internal/naming"
)

// Converted returns the conversions of the last Load.
func (w rawWorld) Converted() []raw.Conversion { return w.converted }

// Conversions returns the conversions that Load would make for the given stored components.
func (w rawWorld) Conversions(storages []raw.StorageState) ([]raw.Conversion, error) {
	plans, err := w.plan(storages)
	return w.conversions(plans), err
}

// conversions describes what a load with these plans does. It has an element in these cases:
//
//   - The values of a component are converted.
//   - A stored component is not registered, and is kept as an unknown component.
//   - A registered component has no stored values.
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

// unstored returns the registered persistent storages and resources that have no data in plans.
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

// plan decides how to convert stored components, without reading their rows. The error lists all
// fields that do not fit. If the only faults are values that would be dropped, plan returns
// [raw.ErrDropped] and also the plans.
func (w *World) plan(storages []raw.StorageState) ([]*plan, error) {
	heirs := w.storedTargets(storages)
	names := make(map[string]bool, len(storages))
	plans := make([]*plan, len(storages))
	for i := range storages {
		s := (*storageState)(&storages[i])
		if names[s.Name] {
			return nil, fmt.Errorf("component %s occurs twice", naming.Shown(s.Name))
		}
		names[s.Name] = true
		var err error
		if plans[i], err = w.planOne(s, heirs[s.Name]); err != nil {
			return nil, s.wrapError(err)
		}
	}
	err := w.faults(plans)
	if err != nil && !errors.Is(err, raw.ErrDropped) {
		return nil, err
	}
	return plans, err
}

// faults returns an error that lists the faults of plans, or nil. A fault is a stored value that a
// plan cannot convert, or would drop without the program's consent.
func (w *World) faults(plans []*plan) error {
	byTarget := make(map[AnyStorage]*plan, len(plans))
	for _, p := range plans {
		byTarget[p.target] = p
	}
	var l faultList
	for _, s := range slices.Concat(w.storages, w.resources) {
		p, about := byTarget[s], s.about()
		switch {
		case p != nil && p.misfit != "":
			l.refused = true
			l.addComponent(s.Name(), p.misfit)
		case p != nil:
			l.addFields(s.Name(), about.layout.Name, p.before, p.remedy, p.faults)
		case about.unknown || about.noPersist || about.past().former != nil:
		default:
			k := slices.IndexFunc(plans, func(p *plan) bool {
				return p.target.about().unknown && p.stored.Resource == (s.sparseSet() == nil) && sameFields(p.stored.Layout, about.layout)
			})
			if k >= 0 {
				l.addComponent(s.Name(), probablyRenamed(s.Name(), about.layout.Name, plans[k].stored.Name))
			}
		}
	}
	return l.err()
}

// storedTargets maps stored names to the storages and resources of w that receive the stored rows.
func (w *World) storedTargets(storages []raw.StorageState) map[string]AnyStorage {
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

// A plan describes how the rows of a stored component become rows of its target. The target is a
// registered component, or an unknown component that keeps the rows unchanged.
type plan struct {
	stored  *storageState
	target  AnyStorage
	unknown bool    // The target does not exist in the world yet.
	stages  []stage // The conversions, in order.
	regap   bool    // Overwrite gaps with the target's default value.
	// Readable descriptions of the conversions.
	changes []layout.Change
	misfit  string     // Why the target cannot take any values, or "".
	before  string     // Names the migration before which the fields are converted, or "".
	remedy  string     // Tells the programmer how to convert the fields in faults.
	faults  typeFaults // Fields that the program cannot load.
	// Sparse array of the stored entities, if they were checked before the load. Otherwise nil.
	pages []*track.Page
	put   func() // Writes the rows to target. Set by decode.
}

// A stage converts n rows. It may skip rows that belong to no entity.
type stage func(rows []byte, n int, skip func(row int) bool) ([]byte, error)

// planOne plans where the rows of s go. The parameter heir is the storage or resource of the world
// that has the name or a former name of s, or nil.
//
//   - If heir is registered, the rows are converted to its type.
//   - If heir is unknown, and the rows fit without a change, heir receives them.
//   - Otherwise a new unknown component receives the rows. It replaces heir, if there is one.
func (w *World) planOne(s *storageState, heir AnyStorage) (*plan, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	if heir != nil {
		p, err := newPlan(s, heir)
		if !heir.about().unknown || err == nil && p.misfit == "" && len(p.changes) == 0 && s.NoRewind == heir.about().noRewind {
			return p, err
		}
	}
	return &plan{stored: s, target: w.newUnknown(s), unknown: true}, nil
}

// newPlan plans the conversion of s to target.
func newPlan(s *storageState, target AnyStorage) (*plan, error) {
	p := &plan{stored: s, target: target}
	if err := sameSort(s, target); err != nil {
		p.misfit = fmt.Sprintf("%v; register it under another name", err)
		return p, nil
	}
	if target.about().noPersist {
		p.misfit = "stored, but registered with NoPersist; register it without, or under another name"
		if s.Name != target.Name() {
			p.misfit = "as " + naming.Shown(s.Name) + ", " + p.misfit
		}
		return p, nil
	}
	past := target.about().past()
	if s.Version > past.version {
		return nil, fmt.Errorf("%w: version %d, the program has version %d", raw.ErrNewer, s.Version, past.version)
	}
	if s.Name != target.Name() {
		p.note("was %s", naming.Shown(s.Name))
	}
	at, version := s.Layout, s.Version
	for _, m := range past.migrations {
		if m.from < s.Version {
			continue
		}
		from := at
		if m.source != nil {
			if p.convert(at, m.source); len(p.faults) > 0 && p.before == "" {
				p.before = fmt.Sprintf(" before the migration from version %d:", m.from)
				p.remedy = fmt.Sprintf("add the field to the parameter type of ecs.Migrate(%d, …)", m.from)
			}
			from = m.source
		}
		p.stages = append(p.stages, func(rows []byte, n int, skip func(int) bool) ([]byte, error) {
			return m.run(rows, from, n, skip)
		})
		p.note("migrated from version %d to %d", m.from, m.from+1)
		at, version = m.target, m.from+1
	}
	p.convert(at, target.about().layout)
	if p.remedy == "" {
		p.remedy = migrationLiteral(target.Name(), target.about().layout.Name, version, past.version)
	}
	if s.Version != past.version && len(p.stages) == 0 {
		p.note("version %d became %d", s.Version, past.version)
	}
	p.place()
	return p, nil
}

// sameSort returns an error unless s and target are both components or both resources. It also
// returns an error if the type of target cannot be encoded.
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

// convert adds a stage that converts fields by name, if the layouts differ. It records the fields
// that the program cannot load.
func (p *plan) convert(from, to *layout.Type) {
	c, changes, faults := conversion(from, to, p.target.about().past().dropped)
	p.changes, p.faults = append(p.changes, changes...), append(p.faults, faults...)
	if c == nil || c.Same() {
		return
	}
	p.stages = append(p.stages, func(rows []byte, n int, _ func(int) bool) ([]byte, error) {
		return c.Append(nil, rows, n)
	})
}

// place sets regap if the gaps of an Indexed storage must get a new default value. The stored
// component and the target must both be Indexed. The default is new if the program has changed it,
// or if the rows are converted.
//
// place also describes a new default, and a change from or to an Indexed storage.
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

// emptyOf returns the encoded row that gaps of s have.
func emptyOf(s AnyStorage) []byte {
	if gap := s.Raw().AppendDefault(nil); gap != nil {
		return gap
	}
	return s.about().layout.AppendZero(nil)
}

// decode runs the stages and sets p.put.
func (p *plan) decode(owned bool) (err error) {
	s := *p.stored
	if len(p.stages) > 0 {
		s.Layout, s.Pages = p.target.about().layout, nil
		if s.Rows, err = p.run(); err != nil {
			return err
		}
	}
	p.put, err = p.target.(loadedStorage).prepare(&s, p.pages, owned, p.regap)
	return err
}

// run returns the stored rows, converted to the target's layout.
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
