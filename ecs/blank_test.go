package ecs

import "testing"

// A command tries to destroy an entity, and a relation refuses this. Apply counts a command as
// skipped only if its entity is dead, so it does not count this one.
func TestApply_RefusedDestroyNotCountedAsSkipped(t *testing.T) {
	type tied struct{ To Entity }
	w := NewWorld(Options{})
	ties := MustRegister[tied](w)
	NewRelation(ties, func(c tied) Entity { return c.To }, RelationOptions{Policy: Refuse})
	target, dead := w.Create(), w.Create()
	ties.Set(w.Create(), tied{target})
	w.Destroy(dead)
	var c Commands
	c.Destroy(target)
	c.Destroy(dead)
	if skipped := w.Apply(&c); skipped != 1 || !w.Alive(target) {
		t.Errorf("%d commands are skipped, want only the command for the dead entity", skipped)
	}
}

// Apart from its options, a blank world equals a new world with the same registrations.
func TestBlankWorld_DigestEqualsNewWorld(t *testing.T) {
	register := func() (*World, *Events[plain]) {
		w := NewWorld(Options{})
		MustRegister[padded](w)
		hits := Must(RegisterEvent[plain](w))
		if _, err := hits.Reader("sounds"); err != nil {
			t.Fatal(err)
		}
		return w, hits
	}
	w, hits := register()
	fresh, _ := register()
	if got, want := w.Blank(nil).Digest(), fresh.Digest(); got != want {
		t.Errorf("the digest of Blank is %v, that of a new world %v", got, want)
	}
	hits.Send(plain{1, 2})
	blank := w.Blank(nil)
	if got, want := blank.Digest(), fresh.Digest(); got != want {
		t.Errorf("after an event: the digest of Blank is %v, that of a new world %v", got, want)
	}
	if n := hits.In(blank).Len(); n != 0 {
		t.Errorf("Blank has %d events", n)
	}
}
