package dump

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"

	"github.com/stet-ecs/stet/ecs/layout"
	"github.com/stet-ecs/stet/persist"
)

// changesDoc is what export --format json or ndjson prints of a range: it needs no --json.
type changesDoc struct {
	From    stateDoc           `json:"from"`
	To      uint64             `json:"to_seq"`
	Changes []tickDifferentDoc `json:"changes"` // In the order of the ticks.
}

// A tickDifferentDoc is a difference that a tick made.
type tickDifferentDoc struct {
	Tick uint64 `json:"tick"`
	Seq  uint64 `json:"seq"`
	differenceDoc
}

// changes writes what the ticks of a range changed.
func (x *exporter) changes(ctx context.Context, a *app, s *source, text string) error {
	ends := diffEnds([]string{s.path, text})
	if ends.store != "" {
		err := fmt.Errorf("%q is not a range; write A..B, of points in time", text)
		return &failure{exitUsage, err, "ecsdump export --help"}
	}
	from, err := s.Resolve(ends.a)
	if err != nil {
		return err
	}
	to, err := s.Resolve(ends.b)
	if err != nil {
		return err
	}
	if _, err := s.Path(from, to); err != nil {
		err = fmt.Errorf("%s: record %d is not on the way to record %d: %w", s.path, from, to, err)
		return &failure{exitNotFound, err, command("diff", s.path, "seq:"+strconv.FormatUint(from, 10), "seq:"+strconv.FormatUint(to, 10))}
	}
	if err := x.knows(ctx, s, to); err != nil {
		return err
	}
	if x.format == "csv" {
		return x.changesCSV(ctx, a, s, from, to)
	}
	a.ndjson = x.format == "ndjson"
	doc := changesDoc{From: stateDoc{Seq: from}, To: to, Changes: []tickDifferentDoc{}}
	if e, ok := s.Log().Find(from); ok {
		doc.From.Tick = e.Tick
	}
	return stream(a, &doc, x.ticks(ctx, s, from, to))
}

// knows returns an error unless the state after record seq has the components that
// are asked for.
func (x *exporter) knows(ctx context.Context, s *source, seq uint64) error {
	if len(x.components) == 0 {
		return nil
	}
	im, err := s.At(ctx, seq)
	if err != nil {
		return err
	}
	for _, name := range x.components {
		if _, err := s.component(state{Image: im, seq: seq}, name); err != nil {
			return err
		}
	}
	return nil
}

// ticks iterates over what the ticks on the way changed.
func (x *exporter) ticks(ctx context.Context, s *source, from, to uint64) iter.Seq2[tickDifferentDoc, error] {
	return func(yield func(tickDifferentDoc, error) bool) {
		err := x.each(ctx, s, from, to, func(c *persist.Commit, y difference) error {
			doc, err := y.doc()
			if err != nil {
				return err
			}
			if !yield(tickDifferentDoc{c.Tick, c.Seq, doc}, nil) {
				return errEnough
			}
			return nil
		})
		if err != nil && !errors.Is(err, errEnough) {
			yield(tickDifferentDoc{}, err)
		}
	}
}

// each calls f with every difference that a tick on the way made.
func (x *exporter) each(ctx context.Context, s *source, from, to uint64, f func(*persist.Commit, difference) error) error {
	return s.Changes(ctx, from, to, func(d *persist.Diff, c *persist.Commit) error {
		if len(x.components) > 0 {
			d.Registry = persist.RegistryDiff{}
			d.Components = slices.DeleteFunc(d.Components, func(c *persist.ComponentDiff) bool { return !slices.Contains(x.components, c.Name) })
		}
		for _, y := range differences(d, false) {
			if err := f(c, y); err != nil {
				return err
			}
		}
		return nil
	})
}

// changesCSV writes a line for each field that changed.
func (x *exporter) changesCSV(ctx context.Context, a *app, s *source, from, to uint64) error {
	out := csv.NewWriter(a.Out)
	if err := out.Write([]string{"tick", "seq", "entity", "component", "change", "field", "old", "new"}); err != nil {
		return err
	}
	err := x.each(ctx, s, from, to, func(c *persist.Commit, y difference) error {
		return y.lines(func(field, before, after string) error {
			entity, component := y.entity.String(), ""
			if y.component != nil {
				component = y.component.Name
				if y.component.Resource {
					entity = ""
				}
			}
			return out.Write([]string{
				strconv.FormatUint(c.Tick, 10), strconv.FormatUint(c.Seq, 10), entity, component, y.change, field, before, after,
			})
		})
	})
	out.Flush()
	return firstError(err, out.Error())
}

// lines calls f for every field of x that differs; once, without a field, for what
// was added or removed.
func (x difference) lines(f func(field, before, after string) error) error {
	if x.component == nil {
		return f("", "", "")
	}
	if x.change != "changed" {
		before, after, err := x.values()
		if err != nil {
			return err
		}
		return f("", exactText(before), exactText(after))
	}
	fields, err := x.component.Fields(x.row)
	for _, d := range fields {
		if err := f(d.Path, exactText(d.Old), exactText(d.New)); err != nil {
			return err
		}
	}
	return err
}

// exactText returns v as exact JSON; nothing if it is not there.
func exactText(v layout.Value) string {
	if v.Kind() == 0 {
		return ""
	}
	return string(v.AppendExact(nil))
}
