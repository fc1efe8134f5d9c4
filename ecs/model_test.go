package ecs

import (
	"flag"
	"fmt"
	"strings"
	"testing"

	"github.com/stet-ecs/stet/ecs/internal/track"
	"github.com/stet-ecs/stet/internal/deep"
)

// How the model tests work
//
// A test names the operations to try, such as adds(0, 3) or ticks(), and calls explore. explore
// runs every sequence of at most n operations. Each sequence starts with a new model, which is a
// World together with an oracle. The oracle implements the documentation of World in the simplest
// way: it copies the whole state at every checkpoint and tick.
//
// Each operation changes the world and the oracle, and compares the results of both. After a
// sequence, model.check compares everything that the World's methods return, and World.check tests
// its invariants. A difference panics with a failure, which explore reports with the names of the
// operations.
//
// The models handle every component as an int. An intStore converts between ints and components, so
// one test runs on all kinds of storages. Operations refer to entities by handles, which are the
// positions of entities in the order of their creation. program_test.go runs the same operations in
// long random orders. docs/TESTING.md shows how to add a test.

var depth = flag.Int("depth", deep.Or(3, 4), "operations in the sequences that the exhaustive models try; some try one more")

// An operation is one step of a model. It returns false if it has no effect. In this case,
// explore() skips longer sequences that begin with the same steps.
type operation struct {
	name string
	do   func(p *model) bool
}

// explore tries every sequence of at most n operations, each on a new model, and checks the model
// after each sequence.
func explore(t *testing.T, s modelOptions, all []operation, n int) {
	t.Helper()
	x := explorer{t: t, options: s, operations: all}
	x.extend(n)
	if x.tried < 100 {
		t.Errorf("only %d sequences were tried", x.tried)
	}
	t.Logf("%d sequences of up to %d operations", x.tried, n)
}

type explorer struct {
	t          *testing.T
	options    modelOptions
	operations []operation
	sequence   []int
	tried      int
	pages      []*track.Page
	// Called at the end of every sequence. May be nil.
	last func(p *model) bool
}

func (x *explorer) extend(n int) {
	if n == 0 || x.t.Failed() {
		return
	}
	for o := range x.operations {
		x.sequence = append(x.sequence, o)
		applied, err := x.run()
		if err != nil {
			x.t.Errorf("%s: %v", x.names(), err)
			return
		}
		if applied {
			x.tried++
			x.extend(n - 1)
		}
		if x.t.Failed() {
			return
		}
		x.sequence = x.sequence[:len(x.sequence)-1]
	}
}

func (x *explorer) names() string {
	var names []string
	for _, o := range x.sequence {
		names = append(names, x.operations[o].name)
	}
	return strings.Join(names, ", ")
}

func (x *explorer) run() (applied bool, err error) {
	defer catch(&err)
	p := newModelOn(x.options, x.pages)
	p.digest = x.tried%32 == 0
	for _, o := range x.sequence {
		applied = x.operations[o].do(p)
	}
	if applied && x.last != nil {
		x.last(p)
	}
	if applied {
		p.check()
	}
	x.pages = p.pages()
	return applied, nil
}

var freshPage = track.NewPage(0)

// pages returns sparse pages of p for the next model, after clearing them. If every model allocated
// new pages, short sequences would spend most of their time on this.
func (p *model) pages() (pages []*track.Page) {
	for _, s := range p.w.sets {
		var page *track.Page
		if len(s.sparse.Pages) > 0 && !s.special {
			page = s.sparse.Pages[0]
			*page = *freshPage
		}
		pages = append(pages, page)
	}
	return pages
}

// catch turns the panic of a model into an error. It passes other panics on.
func catch(err *error) {
	switch r := recover().(type) {
	case nil:
	case failure:
		*err = fmt.Errorf("%s", string(r))
	default:
		panic(r)
	}
}

// The functions below return groups of operations.

func on(name string, handles int, do func(p *model, e Entity) bool) []operation {
	var list []operation
	for i := range handles {
		list = append(list, operation{fmt.Sprintf("%s e%d", name, i), func(p *model) bool {
			return i < len(p.handles) && do(p, p.handle(i))
		}})
	}
	return list
}

// adds is like the function sets, but its operations skip entities that already have the component.
func adds(store, handles int) []operation {
	return on(fmt.Sprintf("add %d to", store), handles, func(p *model, e Entity) bool {
		return !p.stores[store].has(e) && p.set(store, e)
	})
}

func sets(store, handles int) []operation {
	return on(fmt.Sprintf("set %d of", store), handles, func(p *model, e Entity) bool { return p.set(store, e) })
}

func writes(store, handles int) []operation {
	return on(fmt.Sprintf("write %d of", store), handles, func(p *model, e Entity) bool { return p.increase(store, e) })
}

func removes(store, handles int) []operation {
	return on(fmt.Sprintf("remove %d from", store), handles, func(p *model, e Entity) bool { return p.remove(store, e) })
}

func destroys(handles int) []operation {
	return on("destroy", handles, (*model).destroy)
}

// createsAt returns operations that call CreateAt. Some use the entities of handles. The others use
// the first indices, with the generations 1 and 2.
func createsAt(handles, indices int) []operation {
	list := on("create at", handles, (*model).createAt)
	for i := range 2 * indices {
		e := NewEntity(uint32(i/2), uint32(1+i%2))
		list = append(list, operation{fmt.Sprint("create at ", e), func(p *model) bool { return p.createAt(e) }})
	}
	return list
}

func checkpoints(n int) []operation {
	list := []operation{{"checkpoint", (*model).checkpoint}}
	for i := range n {
		list = append(list,
			operation{fmt.Sprint("restore ", i), func(p *model) bool { return p.restore(i) }},
			operation{fmt.Sprint("release ", i), func(p *model) bool { return p.release(i) }})
	}
	return list
}

func tries(f func(p *model)) []operation {
	end := func(o outcome) func(p *model) bool {
		return func(p *model) bool { return p.try(func() { f(p) }, o) }
	}
	return []operation{{"try", end(succeed)}, {"try and fail", end(fail)}, {"try and panic", end(crash)}}
}

func ticks() []operation {
	return []operation{
		{"commit", (*model).commit},
		{"rewind 0", func(p *model) bool { return p.rewind(0) }},
		{"rewind 1", func(p *model) bool { return p.rewind(1) }},
		{"rewind 2", func(p *model) bool { return p.rewind(2) }},
		{"forward 1", func(p *model) bool { return p.seek(p.oracle.tick + 1) }},
		{"forward 2", func(p *model) bool { return p.seek(p.oracle.tick + 2) }},
	}
}

func clearStore(i int) operation {
	return operation{fmt.Sprint("clear ", i), func(p *model) bool { return p.clear(i) }}
}

var (
	create   = operation{"create", (*model).create}
	clearAll = operation{"clear all", (*model).clearAll}
)

func operations(lists ...any) []operation {
	var all []operation
	for _, l := range lists {
		switch l := l.(type) {
		case operation:
			all = append(all, l)
		case []operation:
			all = append(all, l...)
		}
	}
	return all
}

func TestModel_ThreeCheckpoints(t *testing.T) {
	t.Parallel()
	for name, k := range map[string]kind{
		"plain": plainKind, "large": largeKind, "list": listKind, "tag": labelKind, "indexed": indexedKind, "gaps": gapKind, "hashed": hashedKind, "ordered": orderedKind,
	} {
		t.Run(name, func(t *testing.T) {
			s := modelOptions{kinds: []kind{k}, entities: 3, members: 3}
			explore(t, s, operations(adds(0, 3), removes(0, 3), writes(0, 3), clearStore(0), checkpoints(3)), *depth+1)
		})
	}
}

func TestModel_EmptyStorage(t *testing.T) {
	t.Parallel()
	s := modelOptions{kinds: []kind{listKind}, entities: 3}
	explore(t, s, operations(adds(0, 3), removes(0, 3), writes(0, 2), clearStore(0), checkpoints(3)), *depth+1)
}

func TestModel_CreateDestroy(t *testing.T) {
	t.Parallel()
	s := modelOptions{kinds: []kind{plainKind}, entities: 3, members: 2, maxGeneration: 3}
	explore(t, s, operations(create, destroys(4), clearAll, adds(0, 2), checkpoints(3)), *depth+1)
}

// With a maximum of two generations, an index is used up after its second entity.
func TestModel_GenerationsUsedUp(t *testing.T) {
	t.Parallel()
	s := modelOptions{maxGeneration: 2}
	explore(t, s, operations(create, destroys(6), clearAll, checkpoints(2)), *depth+2)
	s.maxGeneration, s.entities = 1, 2
	explore(t, s, operations(create, destroys(6), clearAll, checkpoints(2)), *depth+2)
}

func TestModel_CreateAt(t *testing.T) {
	t.Parallel()
	s := modelOptions{maxGeneration: 2}
	explore(t, s, operations(create, destroys(3), clearAll, createsAt(0, 4), checkpoints(1)), *depth+1)
	s.entities, s.history, s.record = 2, 2, true
	explore(t, s, operations(create, destroys(2), createsAt(3, 0), createsAt(0, 4)[4:], ticks()), *depth+1)
	s = modelOptions{entities: 2, maxGeneration: 1} // Every entity uses up its index.
	explore(t, s, operations(create, destroys(3), createsAt(2, 0)), *depth+2)
}

func TestModel_Ticks(t *testing.T) {
	t.Parallel()
	for _, history := range []int{1, 2, 3} {
		for name, k := range map[string]kind{"list": listKind, "large": largeKind} {
			t.Run(fmt.Sprint(name, ", history ", history), func(t *testing.T) {
				s := modelOptions{kinds: []kind{k}, entities: 2, members: 2, history: history, record: history == 2}
				explore(t, s, operations(adds(0, 2), removes(0, 2), writes(0, 2), ticks(), checkpoints(2)), *depth+1)
			})
		}
	}
}

func TestModel_TicksCreateDestroy(t *testing.T) {
	t.Parallel()
	s := modelOptions{kinds: []kind{plainKind}, entities: 2, members: 1, history: 3, maxGeneration: 2, record: true}
	explore(t, s, operations(create, destroys(3), clearAll, adds(0, 2), ticks(), checkpoints(1)), *depth+1)
}

// Without history, a recorder needs only the numbers of the written rows. So the frames are bare:
// they save no old values.
func TestModel_RecorderOnly(t *testing.T) {
	t.Parallel()
	s := modelOptions{kinds: []kind{listKind}, entities: 3, members: 2, record: true}
	commit := operation{"commit", (*model).commit}
	back := operation{"rewind 0", func(p *model) bool { return p.rewind(0) }}
	explore(t, s, operations(adds(0, 3), removes(0, 2), writes(0, 2), clearStore(0), commit, back, checkpoints(2)), *depth+1)
	s = modelOptions{kinds: []kind{plainKind}, entities: 2, members: 2, record: true, maxGeneration: 2}
	explore(t, s, operations(create, destroys(3), clearAll, commit, back, checkpoints(2)), *depth+1)
}

// Without history and recorder, Commit only increments the tick.
func TestModel_NoHistory(t *testing.T) {
	t.Parallel()
	s := modelOptions{kinds: []kind{plainKind}, entities: 2, members: 2}
	explore(t, s, operations(removes(0, 2), adds(0, 2), ticks(), checkpoints(2)), *depth+1)
}

func TestModel_Try(t *testing.T) {
	t.Parallel()
	program := func(p *model) {
		p.remove(0, p.handle(0))
		p.create()
		p.set(0, p.handles[len(p.handles)-1])
		p.set(0, p.handle(0))
		p.increase(0, p.handle(1))
	}
	empty := func(*model) {}
	s := modelOptions{kinds: []kind{largeKind}, entities: 2, members: 2, history: 2, record: true}
	explore(t, s, operations(tries(program), tries(empty), removes(0, 2), writes(0, 2), ticks(), checkpoints(1)), *depth)
}

func TestModel_NoRewind(t *testing.T) {
	t.Parallel()
	s := modelOptions{kinds: []kind{extraKind, plainKind}, entities: 2, members: 2, history: 2, record: true}
	explore(t, s, operations(create, destroys(3), adds(0, 3), writes(0, 2), removes(0, 1), writes(1, 1), ticks(), checkpoints(1)), *depth)
}

func TestModel_Resources(t *testing.T) {
	t.Parallel()
	s := modelOptions{resources: 2, history: 2, record: true}
	var all []operation
	for i := range 2 {
		all = append(all,
			operation{fmt.Sprint("set resource ", i), func(p *model) bool { return p.setResource(i) }},
			operation{fmt.Sprint("write resource ", i), func(p *model) bool { return p.increaseResource(i) }})
	}
	explore(t, s, operations(all, ticks(), checkpoints(2)), *depth+1)
}

// Every tick that writes needs at least one chunk of 32 rows, so the byte limit is enough for a few
// ticks.
func TestModel_ByteLimit(t *testing.T) {
	t.Parallel()
	s := modelOptions{kinds: []kind{plainKind}, entities: 2, members: 2, history: 4, historyBytes: 1000, record: true}
	explore(t, s, operations(writes(0, 2), removes(0, 1), adds(0, 1), ticks(), checkpoints(1)), *depth+1)
}
