package schedule

import (
	"slices"

	"github.com/stet-ecs/stet/ecs/raw"
)

// An Access names what a system uses: queries, storages, resources, events, indexes, relations and
// bundles. The package description says what each of them includes.
type Access interface{ Uses() []raw.Use }

type uses []raw.Use

func (u uses) Uses() []raw.Use { return u }

// Uses returns an access that combines several accesses.
func Uses(all ...Access) Access { return access(all, func(*raw.Use) {}) }

// Reads returns an access that reads everything that the given accesses name, and writes nothing.
func Reads(all ...Access) Access {
	return access(all, func(u *raw.Use) {
		u.Values, u.Members, u.Hooked = min(u.Values, raw.Reads), min(u.Members, raw.Reads), false
	})
}

func access(all []Access, change func(*raw.Use)) Access {
	return later(func() (named []raw.Use) {
		for _, a := range all {
			for _, u := range a.Uses() {
				change(&u)
				named = append(named, u)
			}
		}
		return named
	})
}

// A later access is computed when the schedule needs it, because a query may get filters until
// then.
type later func() []raw.Use

func (f later) Uses() []raw.Use { return f() }

var (
	// Creates is the access of a system that creates or destroys entities. It includes the
	// components of destroyed entities, and those that a bundle gives to new entities. To set or
	// remove other components, add their storages. The system runs after all systems before it in
	// the list, and before all systems after it.
	Creates Access = uses{{Members: raw.Writes}}

	// Alone is the access of a system that may do anything, such as to register hooks, to take a
	// checkpoint or to change a mask. No other system runs at the same time.
	Alone Access = alone{}
)

type alone struct{}

func (alone) Uses() []raw.Use { return nil }

// creates reports whether the uses include creating or destroying entities.
func creates(uses []raw.Use) bool {
	return slices.ContainsFunc(uses, func(u raw.Use) bool { return u.Storage == nil && u.Members == raw.Writes })
}
