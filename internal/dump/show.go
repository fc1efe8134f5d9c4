package dump

import (
	"cmp"
	"iter"
	"math"
	"slices"
	"strings"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/internal/describe"
	"github.com/stet-ecs/stet/internal/term"
	"github.com/stet-ecs/stet/persist/inspect"
)

// The command show prints an entity in four parts:
//
//	components        from the nearest snapshot and the ticks after it (findWriters)
//	their writers     from older ticks, read backward up to showBytes (findWriters)
//	referrers         from all components that can contain entities (referrers)
//	dead references   from the registry, if a field contains an entity (markDangling)
//
// --brief prints only the first part. --resources prints all resources of a state.

// resourcesDoc is what show --resources --json prints, and show --json for a resource.
type resourcesDoc struct {
	stateDoc
	Resources []resourceDoc `json:"resources"`
}

// A resourceDoc is an object for a resource, with its value.
type resourceDoc struct {
	Name  string       `json:"name"`
	Value layout.Value `json:"value"` // Null if it was registered but not saved yet.
	originDoc
}

// showDoc is what show --json prints for an entity.
type showDoc struct {
	stateDoc
	// Row in the list of entities that are alive, in storage order.
	Row        int           `json:"row"`
	Entity     string        `json:"entity"`
	Components []shownDoc    `json:"components"`
	Referrers  *referrersDoc `json:"referrers,omitempty"` // Missing with --brief.

	living int // Number of entities that are alive.
}

// A shownDoc is a component of the entity.
type shownDoc struct {
	valueDoc
	originDoc
}

// An originDoc says what a component or resource refers to, and which ticks wrote it.
type originDoc struct {
	// Fields with a dead entity; missing with --brief.
	Dead []string `json:"dead,omitempty"`
	// The tick that set this value. Missing with --brief, with --resources, and in a save.
	Changed *writerDoc `json:"changed,omitempty"`
	Written *writerDoc `json:"written,omitempty"` // The last write, even of the same value.
}

// A referrersDoc lists the entities and resources that refer to the entity.
type referrersDoc struct {
	Total    int           `json:"total"`
	Entities []referrerDoc `json:"entities"` // By component and row; at most --limit.
}

// A referrerDoc is a value that refers to the entity.
type referrerDoc struct {
	Entity    string `json:"entity,omitempty"` // Missing for a resource.
	Component string `json:"component"`
	Row       int    `json:"row"`
	// Paths of fields that contain the entity: Target, Links[3].
	Fields []string `json:"fields"`
}

var showCommand = command{
	use: "show STORE [ENTITY|RESOURCE]",
	doc: `Show one entity with all fields, or the resources

Show one entity with all fields, the tick that last wrote each component, and the
references to the entity. A resource is shown in the same way.

To find the fields, show reads only the pages of the entity and the ticks after the
nearest snapshot. To find the last writers, it also reads up to 64 MiB of older ticks. A
value that none of these ticks wrote was written "at or before" the oldest of them. Use
ecsdump blame to search the whole journal, field by field. To find the references, show
reads all components that can hold entities. It also checks whether the entities in the
fields are alive. With --component, it shows only these components and their writers.
With --brief, it shows only the fields.`,
	example: `  ecsdump show D 12v3
  ecsdump show D 12v3 --at @latest~10 --brief
  ecsdump show D 12v3 --component Position,Health
  ecsdump show D Weather
  ecsdump show D --resources`,
	complete: []completer{(*completion).holders},
	run: func(f flags) action {
		var e showCmd
		var resources bool
		f.BoolVar(&resources, "resources", false, "show the resources instead of an entity")
		f.BoolVar(&e.brief, "brief", false, "show only the fields: no last writers, references, or dead entities")
		f.StringSliceVar(&e.components, "component", nil, "only these components (comma-separated, or repeat the flag)")
		f.point(&e.at)
		f.limit(&e.limit, "references to the entity")
		return func(c *call) error {
			if resources != (len(c.args) == 1) {
				return c.misused("give either an entity, the name of a resource or --resources")
			}
			if err := cmp.Or(c.exclusive("resources", "brief"), c.exclusive("resources", "component")); err != nil {
				return err
			}
			return c.read(c.args[0], func(s *source) error {
				if resources {
					return s.showResources(e.at)
				}
				return e.run(s)
			})
		}
	},
}

// showResources shows all resources that have a value. It reads the registry only if a resource
// contains an entity.
func (s *source) showResources(at string) error {
	return s.readState(at, func(st *inspect.State) (err error) {
		doc := &resourcesDoc{outline(st).doc(), []resourceDoc{}}
		for _, c := range st.Outline().Components {
			if !c.Resource {
				continue
			}
			r := resourceDoc{Name: c.Name}
			if c.Len() > 0 {
				if r.Value, err = st.Value(c, 0); err != nil {
					return err
				}
				// Read the registry only once.
				for range entitiesIn(r.Value) {
					if err := st.Count(s.ctx); err != nil {
						return err
					}
				}
				r.Dead = danglingFields(r.Value, st.IsAlive)
			}
			doc.Resources = append(doc.Resources, r)
		}
		return s.printReport(doc)
	})
}

// print prints a row for each field of each resource.
func (d *resourcesDoc) print(a *app) {
	if len(d.Resources) == 0 {
		a.Line("there are no resources at %s", d.Place())
		return
	}
	g := d.Resources[0].grid(a, "RESOURCE")
	for _, r := range d.Resources {
		r.rows(g, r.Value, r.Name)
	}
	g.Flush()
}

// showBytes is the maximum size of the ticks that show reads to find the last writers. The ticks
// after the nearest snapshot are always read and do not count.
const showBytes = 64 << 20

// A showCmd has the flags of show.
type showCmd struct {
	at    string
	brief bool
	limit limit // Largest number of printed referrers.

	components []string // Requested components; empty for all.
}

// run shows the entity or resource, without loading a state. If there are several errors, run
// returns the first in this order: no such entity, no such component, not alive, no requested
// component.
func (o *showCmd) run(s *source) error {
	seq, err := s.Resolve(o.at)
	if err != nil {
		return err
	}
	if !isEntity(s.args[1]) {
		return o.resource(s, seq)
	}
	e, err := s.entity(s.args[1], seq)
	if err != nil {
		return err
	}
	only, err := o.componentNumbers(s, e, seq)
	if err != nil {
		return err
	}
	b, err := o.findWriters(s, e, only, seq)
	if err != nil {
		return err
	}
	if !b.last.Alive {
		return s.notAlive(b.last)
	}
	doc := &showDoc{stateDoc: describe.State(b.last.Tick, b.last.Seq), Row: b.last.Row, Entity: e.String(), Components: b.shown(s), living: b.last.Living}
	// It is an error if the entity has none of the requested components.
	if len(o.components) > 0 && len(doc.Components) == 0 {
		return s.missing(describe.Command("show", s.path, e.String()), "%v has no %s at %s", e, alternatives(o.components), doc.Place())
	}
	if !o.brief {
		if err := doc.markDangling(s, seq); err != nil {
			return err
		}
		if doc.Referrers, err = o.referrers(s, e, seq); err != nil {
			return err
		}
	}
	return cmp.Or(s.printReport(doc), b.unread)
}

// resource shows a resource.
func (o *showCmd) resource(s *source, seq uint64) error {
	sub, last, err := s.subject(s.args[1], seq)
	if err != nil {
		return err
	}
	if len(o.components) > 0 {
		return fail(exitUsage, "", "--component is for an entity; %s is not an entity", s.args[1])
	}
	if !sub.isResource() || sub.field != "" {
		return fail(exitUsage, describe.Command("blame", s.path, sub.String()), "show takes a whole entity or resource: %s", cmp.Or(sub.holder(), sub.component))
	}
	b, err := o.findWriters(s, ecs.Vacant, sub.numbers(), seq)
	if err != nil {
		return err
	}
	r := resourceDoc{Name: sub.component, Value: last.Components[sub.number].Value}
	r.setWriters(s, b.components[sub.number])
	if !o.brief {
		alive, err := s.aliveSet(seq, r.Value)
		if err != nil {
			return err
		}
		r.Dead = danglingFields(r.Value, alive)
	}
	return cmp.Or(s.printReport(&resourcesDoc{describe.State(last.Tick, last.Seq), []resourceDoc{r}}), b.unread)
}

// componentNumbers returns the numbers of the components that --component names.
func (o *showCmd) componentNumbers(s *source, e ecs.Entity, seq uint64) (only []int, err error) {
	if len(o.components) == 0 {
		return nil, nil
	}
	state, err := s.Peek(s.ctx, e, seq)
	if err != nil {
		return nil, err
	}
	names := describe.Listed(state.Components, func(c inspect.EntityComponent) string { return c.Name })
	for _, name := range o.components {
		n := slices.Index(names, name)
		switch {
		case n < 0:
			return nil, s.noComponent(name, names)
		case state.Components[n].Resource:
			return nil, s.isResource(name)
		}
		only = append(only, n)
	}
	return only, nil
}

// findWriters returns a writerSearch for entity e at record seq. For a resource, e is [ecs.Vacant].
// The numbers of the wanted components are given as a list; nil means all components. With --brief,
// the result has the components without their writers.
func (o *showCmd) findWriters(s *source, e ecs.Entity, only []int, seq uint64) (b *writerSearch, err error) {
	b = &writerSearch{only: only, bytes: showBytes}
	if o.brief {
		b.last, err = s.Peek(s.ctx, e, seq)
		return b, err
	}
	return b, b.search(s, e, seq)
}

// referrers lists the values that refer to e. It does not read components without entity fields.
func (o *showCmd) referrers(s *source, e ecs.Entity, seq uint64) (*referrersDoc, error) {
	most, _ := o.limit.of(math.MaxInt)
	list, total, err := s.Referrers(s.ctx, e, seq, most)
	if err != nil {
		return nil, err
	}
	return &referrersDoc{total, describe.Listed(list, func(r inspect.Referrer) referrerDoc {
		return referrerDoc{describe.Holder(r.Entity, r.Resource), r.Component, r.Row, r.Fields}
	})}, nil
}

// setWriters adds the ticks that wrote the component. With --brief, or for a save, it adds no
// ticks.
func (d *originDoc) setWriters(s *source, b *blamedDoc) {
	if b != nil && !s.IsSave() {
		d.Changed, d.Written = b.changed(), b.Written
	}
}

// shown returns the components of the entity.
func (b *writerSearch) shown(s *source) []shownDoc {
	docs := []shownDoc{}
	for n, c := range b.last.Components {
		if c.Row < 0 || !b.wants(n) {
			continue
		}
		d := shownDoc{valueDoc: valueDocOf(c)}
		d.setWriters(s, b.components[n])
		docs = append(docs, d)
	}
	return docs
}

// print prints the row of the entity, its components field by field, then its referrers.
func (d *showDoc) print(a *app) {
	a.Line("%v: alive at %v; row %d of %d", d.Entity, d.Place(), d.Row, d.living)
	if len(d.Components) == 0 {
		a.Line("the entity has no components")
	} else {
		d.components(a)
	}
	if d.Referrers != nil {
		d.Referrers.print(a)
	}
}

// components prints the table of components.
func (d *showDoc) components(a *app) {
	g := d.Components[0].grid(a, "COMPONENT", ">ROW")
	for _, c := range d.Components {
		c.rows(g, c.Value, c.Name, c.Row)
	}
	g.Flush()
}

// markDangling records which fields contain entities that are dead at record seq.
func (d *showDoc) markDangling(s *source, seq uint64) error {
	alive, err := s.aliveSet(seq, describe.Listed(d.Components, func(c shownDoc) layout.Value { return c.Value })...)
	if err != nil {
		return err
	}
	for i := range d.Components {
		d.Components[i].Dead = danglingFields(d.Components[i].Value, alive)
	}
	return nil
}

// aliveSet returns a function that reports whether an entity is alive at record seq. Call it only
// for entities that are in values. It returns false for all others.
func (s *source) aliveSet(seq uint64, values ...layout.Value) (alive func(ecs.Entity) bool, err error) {
	var named []ecs.Entity
	for _, v := range values {
		for _, e := range entitiesIn(v) {
			named = append(named, e)
		}
	}
	var known map[ecs.Entity]bool
	if len(named) > 0 {
		known, err = s.Living(s.ctx, named, seq)
	}
	return func(e ecs.Entity) bool { return known[e] }, err
}

// entitiesIn iterates over the fields of v that contain an entity. It skips ecs.None.
func entitiesIn(v layout.Value) iter.Seq2[string, ecs.Entity] {
	return func(yield func(field string, e ecs.Entity) bool) {
		for field, leaf := range describe.Leaves(v) {
			if leaf.Kind() == layout.Entity && leaf.Uint() != 0 && !yield(field, ecs.Entity(leaf.Uint())) {
				return
			}
		}
	}
}

// danglingFields returns the fields of v that contain a dead entity.
func danglingFields(v layout.Value, alive func(ecs.Entity) bool) (dead []string) {
	for field, e := range entitiesIn(v) {
		if !alive(e) {
			dead = append(dead, field)
		}
	}
	return dead
}

// grid returns a table for values, with columns for the writers if they are known.
func (d *originDoc) grid(a *app, columns ...string) *term.Grid {
	columns = append(columns, "FIELD", "~VALUE")
	if d.Changed != nil {
		columns = append(columns, "CHANGED", "WRITTEN")
	}
	return a.Grid(columns...)
}

// rows adds a row for each field of v, and marks fields with dead entities. The first row also has
// the given cells on the left and the writers on the right.
func (d *originDoc) rows(g *term.Grid, v layout.Value, before ...any) {
	var behind []any
	if d.Changed != nil {
		behind = []any{d.Changed, d.Written.textUnless(d.Changed)}
	}
	for field, leaf := range describe.Leaves(v) {
		text := leafText(leaf)
		if slices.Contains(d.Dead, field) {
			text += " (not alive)"
		}
		g.Row(slices.Concat(before, []any{field, text}, behind)...)
		before, behind = slices.Repeat([]any{""}, len(before)), nil
	}
}

// print prints the referrers, one per line.
func (d *referrersDoc) print(a *app) {
	if d.Total == 0 {
		return
	}
	a.Line("")
	a.Line("%s to it:", term.Count(d.Total, "value refers", "values refer"))
	for _, r := range d.Entities {
		a.Line("  %s", strings.Join(describe.Listed(r.Fields, r.place), " "))
	}
	a.printMore(d.Total-len(d.Entities), d.Total, "value", "values")
}

// place returns a field with its entity: 12v3.Target.Of, or score for a resource. A map key is
// marked with (key).
func (d *referrerDoc) place(field string) string {
	name := d.Component
	if d.Entity != "" {
		name = d.Entity + "." + name
	}
	if rest, ok := strings.CutPrefix(field, "key of "); ok {
		return "(key) " + name + describe.Dotted(rest)
	}
	return name + describe.Dotted(field)
}
