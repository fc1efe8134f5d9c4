package ecs

import "slices"

// An oracleRelation is a relation over the values of a store. The function targetOf returns the
// target of a value.
type oracleRelation struct {
	store  int
	policy Policy
}

// targetOf returns the entity to which a value refers. The entity has a low index. It may be alive,
// dead or not created yet.
func targetOf(v int) Entity { return NewEntity(uint32(v/10%11), uint32(1+v/110%2)) }

// relationPolicies has the policies of the relations, by the names of the stores.
var relationPolicies = map[string]Policy{"plain": Cascade, "word": Detach, "hashed": Refuse, "list": Cascade, "ordered": Detach, "extra": Cascade}

// An intRelation gives the models access to a relation of any type.
type intRelation struct {
	of func(target Entity) []Entity
	in func(*World) intRelation
}

func newIntRelation[T any](r *Relation[T]) intRelation {
	return intRelation{
		of: func(target Entity) []Entity { return slices.Collect(r.Of(target)) },
		in: func(w *World) intRelation { return newIntRelation(r.In(w)) },
	}
}

// addRelations creates the relations of the stores.
func (p *model) addRelations() {
	for i, f := range p.stores {
		if policy, ok := relationPolicies[f.name]; ok {
			p.relations, p.oracle.relations = append(p.relations, f.relation(policy)), append(p.oracle.relations, oracleRelation{i, policy})
		}
	}
}

func (p *model) checkRelations() {
	for k, r := range p.oracle.relations {
		for _, target := range p.probes() {
			if got, want := p.relations[k].of(target), p.oracle.sources(r, target); !slices.Equal(got, want) {
				failf("the sources of %v in %s are %v, want %v", target, p.stores[r.store].name, got, want)
			}
		}
	}
}

// sources returns the entities that refer to target, by ascending index.
func (w *oracle) sources(r oracleRelation, target Entity) (sources []Entity) {
	s := &w.stores[r.store]
	for row, e := range s.entities {
		if e != Vacant && targetOf(s.values[row]) == target {
			sources = append(sources, e)
		}
	}
	slices.SortFunc(sources, byIndex)
	return sources
}

// resolveRelations applies the policies to the sources of e. It returns false if a policy refuses
// to destroy e.
func (w *oracle) resolveRelations(e Entity) bool {
	doomed := []Entity{e}
	for i := 0; i < len(doomed); i++ {
		for _, r := range w.relations {
			for _, source := range w.sources(r, doomed[i]) {
				if r.policy == Cascade && !slices.Contains(doomed, source) {
					doomed = append(doomed, source)
				}
			}
		}
	}
	var free []func()
	for _, r := range w.relations {
		for _, d := range doomed {
			for _, source := range w.sources(r, d) {
				if slices.Contains(doomed, source) {
					continue
				}
				if r.policy == Refuse {
					return false
				}
				free = append(free, func() { w.remove(r.store, source) })
			}
		}
	}
	for _, f := range free {
		f()
	}
	for _, d := range slices.Backward(doomed[1:]) {
		w.end(d)
	}
	return true
}
