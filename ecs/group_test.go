package ecs

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/stet-ecs/stet/ecs/raw"
)

func TestGroupModel_Checkpoints(t *testing.T) {
	t.Parallel()
	for _, kinds := range [][]kind{{plainKind, listKind}, {labelKind, wordKind}} {
		s := modelOptions{kinds: kinds, groups: [][]int{{0, 1}}, entities: 3, members: 2}
		explore(t, s, operations(adds(0, 3)[2:], adds(1, 3), removes(0, 1), removes(1, 2)[1:], clearStore(1), checkpoints(3)), *depth)
	}
}

func TestGroupModel_CreateDestroy(t *testing.T) {
	t.Parallel()
	s := modelOptions{kinds: []kind{plainKind, listKind}, groups: [][]int{{1, 0}}, entities: 3, members: 2}
	explore(t, s, operations(create, destroys(2), clearAll, adds(0, 4)[2:], adds(1, 4)[2:], checkpoints(1)), *depth)
}

func TestGroupModel_Ticks(t *testing.T) {
	t.Parallel()
	for _, history := range []int{0, 2} {
		s := modelOptions{kinds: []kind{plainKind, listKind}, groups: [][]int{{0, 1}}, entities: 3, members: 2, history: history, record: true}
		explore(t, s, operations(adds(0, 3)[2:], adds(1, 3)[2:], removes(0, 2), destroys(1), clearStore(0), ticks(), checkpoints(1)[:2]), *depth)
	}
}

func TestGroupModel_ThreeStorages(t *testing.T) {
	t.Parallel()
	s := modelOptions{kinds: []kind{plainKind, listKind, labelKind}, groups: [][]int{{2, 0, 1}}, entities: 3, members: 2, history: 1, record: true}
	explore(t, s, operations(adds(0, 3)[2:], adds(1, 3)[2:], adds(2, 3)[1:], removes(0, 1), removes(1, 2)[1:], removes(2, 2)[1:], ticks()[:3], checkpoints(1)[:2]), *depth)
}

func TestGroupModel_EightStorages(t *testing.T) {
	t.Parallel()
	s := modelOptions{kinds: largeGroup, groups: [][]int{{4, 0, 1, 2, 3, 5, 6, 7}}, entities: 3, members: 2, history: 1, record: true}
	explore(t, s, operations(adds(0, 3)[1:], adds(4, 3)[2:], adds(7, 3)[1:], removes(0, 1), removes(7, 2)[1:], sorts(6)[1:2], removes(5, 2)[1:],
		everything(2), ticks()[:3], checkpoints(1)[:2]), *depth)
}

// largeGroup has as many components as a query can have.
var largeGroup = []kind{plainKind, paddedKind, wordKind, labelKind, listKind, hashedKind, orderedKind, markedKind}

// everything returns an operation that adds all components to the entity of a handle.
func everything(handle int) []operation {
	return []operation{{fmt.Sprintf("give e%d all", handle), func(p *model) (some bool) {
		for i := range p.stores {
			some = !p.stores[i].has(p.handle(handle)) && p.set(i, p.handle(handle)) || some
		}
		return some
	}}}
}

// The group is created at any point of a sequence. So a rewind can go back to a state from before
// the group.
func TestGroupModel_NewGroup(t *testing.T) {
	t.Parallel()
	for _, history := range []int{0, 3} {
		s := modelOptions{kinds: []kind{plainKind, listKind}, entities: 3, members: 2, history: history, record: history > 0}
		changes := operations(adds(0, 3)[2:], adds(1, 3)[2:], removes(0, 1), clearStore(1), grouping(0, 1), packing)
		explore(t, s, operations(changes, ticks()[:5], checkpoints(1)[:2]), *depth)
	}
}

func TestGroupModel_NewGroupScattered(t *testing.T) {
	t.Parallel()
	s := modelOptions{kinds: []kind{plainKind, listKind}, entities: 4, members: 1, history: 3}
	scatter := operation{"scatter", func(p *model) bool {
		p.set(0, p.handle(1))
		p.set(0, p.handle(2))
		p.set(1, p.handle(3))
		p.set(1, p.handle(2))
		return p.set(1, p.handle(1))
	}}
	explore(t, s, operations(scatter, removes(1, 2), sorts(1, 0)[:2], grouping(0, 1), ticks()[:5], checkpoints(1)[:2]), *depth)
}

func TestGroupModel_Queries(t *testing.T) {
	t.Parallel()
	s := modelOptions{kinds: queryKinds, groups: [][]int{{0, 1}}, entities: 3, members: 2, history: 2}
	exploreQueries(t, s, *depth-1, adds(0, 3)[1:], removes(0, 2), adds(1, 3)[1:], removes(1, 2), clearStore(0), destroys(1), checkpoints(1)[:2], ticks()[:3])
	s = modelOptions{kinds: queryKinds, groups: [][]int{{1, 2, 0, 3}}, filler: 62, entities: 4, members: 3}
	exploreQueries(t, s, *depth-1, adds(0, 4)[3:], removes(0, 2)[1:], adds(1, 4)[3:], removes(2, 1), adds(2, 4)[3:], adds(3, 4)[3:])
}

func TestGroupModel_QueriesBeforePack(t *testing.T) {
	t.Parallel()
	s := modelOptions{kinds: queryKinds, entities: 4, members: 3, history: 2}
	exploreQueries(t, s, *depth-1, grouping(1, 0), removes(0, 2), adds(0, 4)[3:], removes(1, 1), adds(1, 4)[3:], packing, ticks()[:4], checkpoints(1)[:2])
}

// groupSteps are the steps of programs that also sort. The normal list has some steps twice. Here,
// a step that sorts replaces one of the two.
var groupSteps = func() []func(r *programRunner, arg int) {
	list := slices.Clone(steps)
	list[1] = func(r *programRunner, arg int) { r.sortValues(arg % len(r.stores)) }
	list[3] = func(r *programRunner, arg int) {
		if arg < 128 {
			r.sortLike(arg%len(r.stores), arg/7%len(r.stores))
		} else {
			r.align(arg%len(r.stores), arg/5%len(r.stores), arg/7%len(r.stores))
		}
	}
	list[11] = func(r *programRunner, arg int) { r.sortEntities(arg % len(r.stores)) }
	return list
}()

func TestProgram_RandomOperationsWithGroups(t *testing.T) {
	groups := [][][]int{
		{{storePlain, storePadded}},
		{{storeWord, storeList, storeLabel}, {storePadded, storePlain}},
		{{storeLabel, storePadded, storeList, storePlain}},
		{{storeLabel, storePadded, storeList, storeHashed, storePlain, storeOrdered, storeWord, storeMarked}},
		{}, // No groups: the program only sorts.
	}
	rapid.Check(t, func(t *rapid.T) {
		p := program(rapid.SliceOfN(rapid.Byte(), 100, 500).Draw(t, "program"))
		if err := p.runWith(groupSteps, groups[rapid.IntRange(0, len(groups)-1).Draw(t, "groups")]...); err != nil {
			t.Fatal(err)
		}
	})
}

// grouped returns a world with a group of a and b. It creates n members and n entities that have
// only a plain, in alternation.
func grouped(n int, o Options) (w *World, a *Storage[plain], b *Storage[padded], g *Group, entities []Entity) {
	w = NewWorld(o)
	a = plainKind.add(w).any().(*Storage[plain])
	b = paddedKind.add(w).any().(*Storage[padded])
	g = Must(w.NewGroup(a, b))
	for i := range 2 * n {
		e := w.Create()
		a.Set(e, plain{int32(i), int32(-i)})
		if i%2 == 0 {
			b.Set(e, padded{B: int64(i)})
		}
		entities = append(entities, e)
	}
	return w, a, b, g, entities
}

func TestGroupQuery_YieldsOneRun(t *testing.T) {
	w, a, b, g, entities := grouped(10_000, Options{})
	checkAtEnd(t, w)
	q := NewQuery2(Read(b), Read(a))
	for _, step := range []func(){
		func() {},
		func() { b.Remove(entities[4000]) },
		func() { w.Destroy(entities[8]) },
		func() { b.Set(entities[9], padded{}); b.Set(entities[19_999], padded{}) },
		func() { w.Restore(w.Checkpoint()); g.Pack() },
	} {
		step()
		var lengths []int
		at := 0
		for run := range q.Runs() {
			if &run.A[0] != &b.Values()[at] || &run.B[0] != &a.Values()[at] || run.Entities[0] != g.Entities()[at] {
				t.Fatalf("the run of rows from %d on differs", at)
			}
			at += len(run.Entities)
			lengths = append(lengths, len(run.Entities))
		}
		if want := []int{4096, 4096, g.Len() - 8192}; !slices.Equal(lengths, want) || q.Count() != g.Len() {
			t.Errorf("runs of %v rows, Count() = %d, want %v, %d", lengths, q.Count(), want, g.Len())
		}
	}
}

func TestGroupQuery_SkipsOtherRows(t *testing.T) {
	const n = 6000
	w, a, b, g, entities := grouped(n, Options{})
	checkAtEnd(t, w)
	for _, e := range entities[n:] {
		if !b.Remove(e) {
			b.Set(w.Create(), padded{})
		}
	}
	c := MustRegister[label](w)
	all, more, one := NewQuery2(Read(a), Read(b)), NewQuery1(Read(b)).With(a).Without(c), NewQuery1(Read(a)).Without(c)
	count := func(j *join, count func() int) (n, chunks int) {
		n = count()
		for i := range j.caches {
			chunks += len(j.caches[i].chunks)
		}
		return n, chunks
	}
	for name, q := range map[string]struct {
		j                  *join
		count              func() int
		found, most, least int
	}{
		"all":        {&all.join, all.Count, g.Len(), 1, 1},
		"and others": {&more.join, more.Count, g.Len(), 1, 1},
		"one":        {&one.join, one.Count, a.Len(), 3, 3},
	} {
		if n, chunks := count(q.j, q.count); n != q.found || chunks > q.most || chunks < q.least {
			t.Errorf("%s: found %d in %d chunks, want %d in %d to %d", name, n, chunks, q.found, q.least, q.most)
		}
	}
}

func TestNewGroup_Errors(t *testing.T) {
	w, a, b, _ := members(1, Options{})
	c, free := MustRegister[word](w), MustRegister(w, Component[extra]{NoRewind: true})
	_, far, _, _ := members(1, Options{})
	r := Must(RegisterResource(w, label{}, Component[label]{Name: "rules"}))
	if err := w.Raw().Load(&raw.State{Storages: []raw.StorageState{{Name: "stranger", Layout: MustRegister[label](NewWorld(Options{})).Raw().Layout()}}}); err != nil {
		t.Fatal(err)
	}
	stranger := w.names["stranger"]
	Must(w.NewGroup(b, c))
	for want, storages := range map[string][]AnyStorage{
		"0 storages":       {},
		"1 storages":       {a},
		"named twice":      {a, a},
		"is nil":           {a, nil},
		"rules":            {a, r},
		"another world":    {a, far},
		"in a group":       {a, b},
		"is NoRewind":      {a, free},
		"is not registere": {a, stranger},
	} {
		if g, err := w.NewGroup(storages...); g != nil || err == nil || !strings.HasPrefix(err.Error(), "ecs: bad group: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("NewGroup = %v, %v, want a bad group with %q", g, err, want)
		}
	}
	if a.group != nil || len(w.groups) != 1 {
		t.Error("a refused group has left something")
	}
	defer func() {
		if err, _ := recover().(error); err == nil || !strings.HasPrefix(err.Error(), "ecs: bad group: ") {
			t.Errorf("Must panics with %v", err)
		}
	}()
	Must(w.NewGroup(a))
}

func TestGroup_LoadMembersInOrder(t *testing.T) {
	w, _, _, g, entities := grouped(50, Options{})
	w.Destroy(entities[10])
	v, _, _, h, _ := grouped(3, Options{History: 1})
	checkAtEnd(t, v)
	if err := v.Raw().Load(stateOf(w)); err != nil {
		t.Fatal(err)
	}
	if h.rows.Extra != 1 || !slices.Equal(h.Entities(), g.Entities()) {
		t.Errorf("%v are packed, all: %v, want %v", h.Entities(), h.rows.Extra == 1, g.Entities())
	}
	v.Commit()
	if err := v.Raw().Load(&raw.State{}); err != nil || h.Len() != 0 || h.rows.Extra != 1 {
		t.Errorf("Load = %v, %d rows packed of an empty world", err, h.Len())
	}
}

// Load does not move rows. If the members of a group are in scattered rows, the next commit packs
// them. So a recorder gets the moved rows.
func TestGroup_CommitPacksLoadedMembers(t *testing.T) {
	for _, change := range []bool{false, true} {
		w := NewWorld(Options{})
		a, b := MustRegister[plain](w), MustRegister[padded](w)
		var entities []Entity
		for i := range 20 {
			e := w.Create()
			entities = append(entities, e)
			a.Set(e, plain{X: int32(i)})
		}
		for i := range 10 {
			b.Set(entities[19-2*i], padded{B: int64(i)})
		}
		v, x, y, g, _ := grouped(0, Options{})
		checkAtEnd(t, v)
		if err := v.Raw().Load(stateOf(w)); err != nil {
			t.Fatal(err)
		}
		if v.Digest() != w.Digest() || g.Len() != 0 || v.Raw().Dirty() {
			t.Error("Load moved rows")
		}
		var got []raw.StorageChange
		if err := v.Raw().Attach(recorderFunc(func(c *raw.Change) uint64 {
			for _, changed := range c.Storages {
				s := c.Of(changed)
				got = append(got, raw.StorageChange{Storage: s.Storage, Before: s.Before, Entities: slices.Clone(s.Entities)})
			}
			return 1
		}), 1); err != nil {
			t.Fatal(err)
		}
		if change {
			y.Remove(entities[1])
			y.Set(entities[2], padded{})
			if want := []Entity{entities[2]}; !slices.Equal(g.Entities(), want) {
				t.Errorf("%v are packed, want %v", g.Entities(), want)
			}
		}
		v.Commit()
		if g.Len() != 10 || g.rows.Extra != 1 || v.Raw().Dirty() {
			t.Errorf("%d of 10 are packed after Commit", g.Len())
		}
		if len(got) == 0 || got[0].Storage != x.Raw() || len(got[0].Entities) == 0 {
			t.Errorf("the recorder got %v", got)
		}
		got = nil
		if v.Commit(); len(got) != 0 {
			t.Errorf("a commit without changes recorded %v", got)
		}
	}
}

func TestGroup_CloneOfWorldHasOwnGroup(t *testing.T) {
	w, a, b, g, entities := grouped(20, Options{History: 2})
	c := w.Clone()
	checkAtEnd(t, c)
	h := g.In(c)
	if h == nil || h == g || g.In(w) != g || g.In(NewWorld(Options{})) != nil {
		t.Fatalf("In = %v", h)
	}
	if !slices.Equal(h.Entities(), g.Entities()) || a.In(c).group != h {
		t.Errorf("%v are packed in the clone, want %v", h.Entities(), g.Entities())
	}
	for _, s := range []*Storage[padded]{b, b.In(c)} {
		s.Remove(entities[4])
		s.Set(entities[7], padded{})
	}
	if w.Digest() != c.Digest() || w == c {
		t.Error("the clone packs other rows")
	}
	_, _ = w.History().Oldest(), w.History().Rewind(0)
	if h.Len() != 20 || g.Len() != 0 {
		t.Errorf("Len() = %d, that of the clone %d after the rewind of the first tick", g.Len(), h.Len())
	}
}

// While an entity is being removed from the group, a hook may make the entity a member again.
func TestGroup_HookAddsMemberAgain(t *testing.T) {
	for name, change := range map[string]func(w *World, b *Storage[padded], e Entity){
		"destroy":   func(w *World, _ *Storage[padded], e Entity) { w.Destroy(e) },
		"remove":    func(_ *World, b *Storage[padded], e Entity) { b.Remove(e) },
		"clear":     func(_ *World, b *Storage[padded], _ Entity) { b.Clear() },
		"clear all": func(w *World, _ *Storage[padded], _ Entity) { w.Clear() },
	} {
		t.Run(name, func(t *testing.T) {
			w, a, b, g, entities := grouped(5, Options{})
			checkAtEnd(t, w)
			busy := false
			again := func(e Entity) {
				if !busy {
					busy = true
					a.Remove(e)
					a.Set(e, plain{})
					young := w.Create()
					a.Set(young, plain{})
					b.Set(young, padded{})
					busy = false
				}
			}
			a.OnRemove(func(e Entity, _ plain) { again(e) })
			b.OnRemove(func(e Entity, _ padded) { again(e) })
			a.OnAdd(func(e Entity, _ plain) {
				if b.Has(e) && a.row(e) >= g.Len() {
					t.Errorf("%v is a member, but is not packed yet", e)
				}
			})
			change(w, b, entities[2])
		})
	}
}

func TestGroup_Allocations(t *testing.T) {
	w, a, b, g, entities := grouped(100, Options{History: 2})
	q := NewQuery1(Write(a))
	tick := func() {
		for _, e := range entities[:20] {
			if !b.Remove(e) {
				b.Set(e, padded{})
			}
		}
		a.SortFunc(func(x, y plain) int { return int(y.X - x.X) })
		a.SortFunc(func(x, y plain) int { return int(x.X - y.X) })
		b.SortLike(a)
		b.SortEntities(byIndexBackwards)
		for e, p := range q.All() {
			if p.X++; e == g.Entities()[0] {
				b.Remove(e)
				b.Set(entities[1], padded{})
				b.Remove(entities[1])
				break
			}
		}
		b.Set(entities[0], padded{})
		cp := w.Checkpoint()
		w.Destroy(entities[2])
		w.Restore(cp)
		w.Release(cp)
		w.Commit()
	}
	for range 10 {
		tick()
	}
	if n := allocations(t, 20, tick); n != 0 {
		t.Errorf("a tick allocates %v times, want never", n)
	}
}

func TestGroup_SavesMovedRowsOnly(t *testing.T) {
	w, a, b, g, entities := grouped(100, Options{})
	checkAtEnd(t, w)
	w.Checkpoint()
	b.Remove(entities[2*99]) // This is the last member, so no row of a moves.
	if rows := saved(a); rows != [3]int{} || !a.rows.Untouched() {
		t.Errorf("%v rows are saved of a storage in which none moves", rows)
	}
	b.Remove(entities[0])
	if rows := saved(a); rows != [3]int{2, 2, 2} || g.Len() != 98 {
		t.Errorf("%v rows are saved of one exchange, want 2, 2, 2", rows)
	}
}

// Rows of an Indexed storage cannot move. So groups, sorts and Align refuse the storage and change
// nothing.
func TestNewGroup_RefusesIndexedStorage(t *testing.T) {
	w := NewWorld(Options{})
	a := MustRegister[plain](w)
	at := MustRegister(w, Component[extra]{Kind: Indexed})
	for i, e := range w.CreateN(nil, 4) {
		at.Set(e, extra{V: int64(9 - i)})
		if i%2 == 1 {
			a.Set(e, plain{X: int32(i)})
		}
	}
	before := w.Digest()
	for _, storages := range [][]AnyStorage{{a, at}, {at, a}} {
		if g, err := w.NewGroup(storages...); g != nil || err == nil || !strings.Contains(err.Error(), "is Indexed, and its rows cannot move") {
			t.Errorf("NewGroup = %v, %v, want an error", g, err)
		}
	}
	if w.Digest() != before {
		t.Error("a group that was refused moved rows")
	}
	if _, err := w.NewGroup(a, MustRegister(w, Component[extra]{Name: "dense"})); err != nil {
		t.Errorf("NewGroup after a refusal: %v", err)
	}
}

// A seek goes back to a tick from before the group. The members are not packed in this tick, but a
// query over the group's components finds all of them.
func TestGroupQuery_MembersNotPacked(t *testing.T) {
	w := NewWorld(Options{History: 4})
	a, b := MustRegister[plain](w), MustRegister[extra](w)
	all := w.CreateN(nil, 6)
	a.SetAll(all, plain{})
	for _, i := range []int{1, 4, 2} {
		b.Set(all[i], extra{})
	}
	w.Commit()
	g := Must(w.NewGroup(a, b))
	w.Commit()
	if g.Len() != 3 {
		t.Fatalf("%d rows are packed, want 3", g.Len())
	}
	if err := w.History().Seek(1); err != nil {
		t.Fatal(err)
	}
	if g.Len() == 3 {
		t.Fatal("the group is packed in a tick from before the group")
	}
	q := NewQuery2(Read(a), Read(b))
	for _, q := range []AnyQuery{q, NewQuery2(Read(b), Read(a))} {
		got := q.AppendEntities(nil)
		slices.Sort(got)
		if want := []Entity{all[1], all[2], all[4]}; !slices.Equal(got, want) || q.Count() != 3 {
			t.Errorf("the query finds %v, want %v", got, want)
		}
	}
}
