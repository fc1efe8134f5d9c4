package ecs

import (
	"errors"
	"strings"
	"testing"

	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/ecs/raw"
)

type (
	speedOne struct{ Text string }
	speedTwo struct{ Metres int32 }
	speed    struct{ Metres, Seconds int64 }
)

func length(old speedOne) speedTwo { return speedTwo{int32(len(old.Text))} }

func TestRegister_InvalidMigrations(t *testing.T) {
	bad := func(name, want string, c Component[speed]) {
		t.Run(name, func(t *testing.T) {
			w := NewWorld(Options{})
			MustRegister(w, Component[plain]{Name: "plain", FormerNames: []string{"old"}})
			var wrong *RegisterError
			if _, err := Register(w, c); !errors.As(err, &wrong) || !strings.Contains(err.Error(), want) {
				t.Errorf("Register = %v, want %q in it", err, want)
			}
		})
	}
	migrated := func(version uint32, migrations ...Migration) Component[speed] {
		return Component[speed]{Version: version, Migrations: migrations}
	}
	bad("no version", "a migration from version 1, but it is of version 0", migrated(0, Migrate(1, length)))
	bad("a version too low", "a migration from version 1, but it is of version 1", migrated(1, Migrate(1, length)))
	bad("twice", "two migrations from version 1", migrated(2, Migrate(1, length), Migrate(1, length)))
	bad("a gap", "the migration from version 2 does not accept the result of the one before: ecs: stored values would be lost: speedOne.Metres: dropped, was int32",
		migrated(3, Migrate(2, length), Migrate(1, length)))
	bad("another end", "the result of the last migration does not fit the component", migrated(1, Migrate(0, func(speed) speedOne { return speedOne{} })))
	bad("a source that cannot be stored", "func values cannot be stored", migrated(1, Migrate(0, func(struct{ F func() }) speed { return speed{} })))
	bad("a target that cannot be stored", "func values cannot be stored", migrated(1, Migrate(0, func(speed) struct{ F func() } { return struct{ F func() }{} })))
	bad("a former name that is one", `the former name "plain" is that of a component`, Component[speed]{FormerNames: []string{"plain"}})
	bad("its own name", `the former name "speed" is that of a component`, Component[speed]{FormerNames: []string{"speed"}})
	bad("a name that another had", `the name "old" is a former name of plain`, Component[speed]{Name: "old"})
	bad("a former name that another has too", `the name "old" is a former name of plain`, Component[speed]{FormerNames: []string{"older", "old"}})
}

func TestMigrate_SkipsGaps(t *testing.T) {
	w := NewWorld(Options{})
	old := MustRegister(w, Component[speedOne]{Name: "speed", Kind: Indexed, Default: speedOne{"gap"}})
	for i, e := range w.CreateN(nil, 5) {
		if i%2 == 0 {
			old.Set(e, speedOne{strings.Repeat("x", i)})
		}
	}
	for _, kind := range []Kind{Indexed, Sparse} {
		calls := 0
		later := NewWorld(Options{})
		c := Component[speed]{Kind: kind, Version: 4, Migrations: []Migration{
			Migrate(2, func(old speedOne) speedTwo { calls++; return length(old) }),
		}}
		if kind == Indexed {
			c.Default = speed{9, 9}
		}
		s := MustRegister(later, c)
		if err := later.Raw().Load(stateOf(w)); err != nil {
			t.Fatal(err)
		}
		for i, e := range later.Entities() {
			if v, has := s.Get(e); has != (i%2 == 0) || has && v != (speed{int64(i), 0}) {
				t.Errorf("%v has %v, %v", e, v, has)
			}
		}
		if kind == Indexed && s.Values()[1] != (speed{9, 9}) {
			t.Errorf("a gap has %v", s.Values()[1])
		}
		if calls != 3 || len(later.Raw().Converted()) != 1 {
			t.Errorf("%d calls, converted %v", calls, later.Raw().Converted())
		}
		if err := later.check(); err != nil {
			t.Error(err)
		}
	}
}

func TestConversions_MatchNamesAndVersions(t *testing.T) {
	w := NewWorld(Options{})
	MustRegister(w, Component[speed]{FormerNames: []string{"v", "velocity"}, Version: 1})
	of := func(name string, version uint32, v AnyStorage) raw.StorageState {
		return raw.StorageState{Name: name, Version: version, Layout: v.Raw().Layout()}
	}
	two := MustRegister[speedTwo](NewWorld(Options{}))
	got, err := w.Raw().Conversions([]raw.StorageState{of("velocity", 0, two), of("other", 7, two)})
	if err != nil || len(got) != 2 || got[0].Stored != "velocity" || got[0].Name != "speed" || got[0].Dropped() {
		t.Errorf("Conversions = %v, %v", got, err)
	}
	got, err = w.Raw().Conversions([]raw.StorageState{of("velocity", 0, two), of("speed", 0, two)})
	if err != nil || len(got) != 2 || got[1].Stored != "speed" || got[1].Name != "speed" {
		t.Errorf("the present name is not preferred: %v, %v", got, err)
	}
	if _, err := w.Raw().Conversions([]raw.StorageState{of("speed", 2, two)}); !errors.Is(err, raw.ErrNewer) {
		t.Errorf("Conversions = %v, want %v", err, raw.ErrNewer)
	}
	if _, err := w.Raw().Conversions([]raw.StorageState{of("speed", 1, MustRegister[speedOne](NewWorld(Options{})))}); !errors.Is(err, raw.ErrDropped) || !strings.Contains(err.Error(), "ecs.Migrate") {
		t.Errorf("Conversions = %v, want %v and a remedy", err, raw.ErrDropped)
	}
}

func TestLoad_GapsGetRegisteredDefault(t *testing.T) {
	w := NewWorld(Options{})
	old := MustRegister(w, Component[plain]{Kind: Indexed, Default: plain{1, 1}})
	old.Set(w.CreateN(nil, 3)[2], plain{5, 5})
	state := stateOf(w)
	later := NewWorld(Options{})
	s := MustRegister(later, Component[plain]{Kind: Indexed})
	for i := range state.Storages {
		state.Storages[i].Indexed, state.Storages[i].Default = true, old.Raw().AppendDefault(nil)
	}
	if err := later.Raw().Load(state); err != nil {
		t.Fatal(err)
	}
	if v := s.Values(); v[0] != (plain{}) || v[2] != (plain{5, 5}) {
		t.Errorf("Values = %v", v)
	}
	if len(later.Raw().Converted()) != 1 {
		t.Errorf("Converted = %v", later.Raw().Converted())
	}
}

// The rows of the state are split into pages, and some rows are gaps. Load must convert the rows of
// all pages, and must not call the migration for a gap.
func TestMigrate_PagedRows(t *testing.T) {
	w := NewWorld(Options{})
	old := MustRegister(w, Component[speedOne]{Name: "speed", Kind: Indexed})
	for i, e := range w.CreateN(nil, 9) {
		if i%4 != 3 {
			old.Set(e, speedOne{strings.Repeat("x", i)})
		}
	}
	state := stateOf(w)
	for i := range state.Storages {
		inPages(&state.Storages[i], 2)
	}
	calls := 0
	later := NewWorld(Options{})
	s := MustRegister(later, Component[speedTwo]{Name: "speed", Version: 1, Migrations: []Migration{
		Migrate(0, func(v layout.Value) speedTwo {
			calls++
			text, _ := v.Field("Text")
			return speedTwo{int32(len(text.Text()))}
		}),
	}})
	if err := later.Raw().Load(state); err != nil {
		t.Fatal(err)
	}
	for i, e := range later.Entities() {
		if v, has := s.Get(e); has != (i%4 != 3) || has && v.Metres != int32(i) {
			t.Errorf("%v has %v, %v", e, v, has)
		}
	}
	if calls != 7 {
		t.Errorf("%d calls, want 7", calls)
	}
}
