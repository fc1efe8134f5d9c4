package dump

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/internal/describe"
	"github.com/stet-ecs/stet/internal/shell"
	"github.com/stet-ecs/stet/persist"
	"github.com/stet-ecs/stet/persist/inspect"
)

// oracles maps each command to a function that runs the command and checks its output. Every
// command has an entry.
var oracles = map[string]func(x *trial){
	"arrays": func(x *trial) { x.states("arrays", url, "Health") },
	"bisect": bisectOracle,
	"blame": func(x *trial) {
		x.writers("blame", url, "0v1")
		x.writers("blame", url, "score")
	},
	"compact": compactOracle,
	"diff":    diffOracle,
	"edit":    func(x *trial) { x.states("edit", url, "Health = 5", "score = 1", "--dry-run") },
	"export":  exportOracle,
	"history": historyOracle,
	"import":  importOracle,
	"info":    infoOracle,
	"log":     logOracle,
	"ls":      func(x *trial) { x.states("ls", url, "--limit", "0") },
	"man":     func(*trial) {}, // Man does not read a store.
	"marks": func(x *trial) {
		args := []string{"marks", url}
		a := x.try(args...)
		x.marks(a, args, items(x.object(a, args...), "marks"), items(x.object(x.original.run("marks", url, "--json")), "marks"))
	},
	"branches": func(x *trial) {
		newest, known := x.shownNewest()
		for _, d := range items(x.object(x.try("branches", url), "branches", url), "branches") {
			if known && d["head"].(bool) != (seqOf(d) == newest) {
				x.fail(answer{}, []string{"branches", url}, "info prints record %d as the newest, branches prints %v", newest, d)
			}
		}
	},
	"panel": func(x *trial) {
		x.valuesOverTime("rows", func(row object) any { return row["entity"] }, "panel", url, "Health", "score", "--limit", "0")
	},
	"plot": func(x *trial) {
		x.valuesOverTime("points", func(object) any { return nil }, "plot", url, "score", "sum(Health)", "count(exists(Target.Of))")
	},
	"query": func(x *trial) {
		x.states("query", url, "Position.X > 3", "--select", "entity, Position.X, score")
		x.states("query", url, "--count", "--sum", "Position.X")
	},
	"recover": recoverOracle,
	"schema":  func(x *trial) { x.states("schema", url) },
	"mcp":     func(*trial) {}, // MCP runs the commands that the other oracles check.
	"serve":   func(*trial) {}, // Serve runs until an interrupt. Package web tests the answers.
	"show": func(x *trial) {
		x.states("show", url, "0v1", "--brief")
		x.states("show", url, "--resources")
		x.states("show", url, "score", "--brief")
		x.writers("show", url, "0v1")
		x.writers("show", url, "score")
		x.writers("show", url, "6v2") // Test another entity.
	},
	"stats": statsOracle,
	"tail":  func(x *trial) { x.ticks("records", "tail", url, "-n", "6") },
	"tree": func(x *trial) {
		x.states("tree", url, "--by", "Target.Of")
		x.states("tree", url, "0v1", "--by", "Target")
	},
	"verify": verifyOracle,
}

// fail fails the test, because the output of a command is impossible.
func (x *trial) fail(a answer, args []string, format string, more ...any) {
	x.t.Helper()
	x.t.Errorf("%s\n%s\nexits with %d: %s\n%.600s", fmt.Sprintf(format, more...), shell.Command(args...), a.code, a.err, a.out)
}

// try runs a command with --json. It checks that an incomplete answer is an error, which names the
// damage and suggests a remedy.
func (x *trial) try(args ...string) (a answer) {
	x.t.Helper()
	args = append(args, "--json")
	want := x.original.run(args...)
	a = runOn(x.t, x.damage.files, args...)
	switch {
	case a.code == exitCorrupt:
		if hopeless := strings.Contains(a.err, "recover cannot save anything"); hopeless {
			if least, some := x.newest(); some {
				x.fail(a, args, "the state of record %d can be saved", least)
			}
		} else if !strings.Contains(a.err, `"try":"ecsdump verify `) && !strings.Contains(a.err, `"try":"ecsdump recover `) {
			x.fail(a, args, "the error suggests no remedy")
		}
		if !strings.Contains(a.err+a.out, "journal") && !strings.Contains(a.err+a.out, "snapshots/") {
			x.fail(a, args, "the error does not name the damage")
		}
	case a.code != want.code:
		x.fail(a, args, "the exit status for the undamaged store is %d", want.code)
	case a.out != want.out && !x.damage.harmless:
		x.fail(a, args, "the output differs from that for the undamaged store, without an error: %s", want.out)
	}
	if a.code == exitCorrupt && x.damage.harmless {
		x.fail(a, args, "the store is undamaged")
	}
	return a
}

// readable reports whether the state of record seq can be computed: from an undamaged snapshot and
// the undamaged records after it.
func (x *trial) readable(seq uint64) bool {
	for at := seq; ; {
		for _, s := range x.original.shots {
			if s.ID.Seq == at && x.snapshotIntact(s) {
				return true
			}
		}
		e, ok := x.original.log.Find(at)
		if !ok || x.damage.lost[at] || x.damage.blind[at] {
			return false
		}
		at = e.Parent
	}
}

// snapshotIntact reports whether the file of s and all files that it refers to are undamaged.
func (x *trial) snapshotIntact(s inspect.SnapshotInfo) bool {
	for _, number := range s.Files {
		if x.damage.bad[number] {
			return false
		}
	}
	return !x.damage.bad[s.Number]
}

// newest returns the newest record on the path to the head whose state is certainly readable.
func (x *trial) newest() (seq uint64, ok bool) {
	for seq = x.original.head; !x.readable(seq); {
		e, ok := x.original.log.Find(seq)
		if !ok {
			return 0, false
		}
		seq = e.Parent
	}
	return seq, true
}

// states runs a command for the state of each record and for the newest state. It compares the
// output with that for the undamaged store.
func (x *trial) states(args ...string) {
	x.t.Helper()
	for _, seq := range x.points {
		x.state(seq, append(slices.Clone(args), "--at", at(seq)))
	}
	x.latest(args, func(seq uint64) []string { return append(slices.Clone(args), "--at", at(seq)) })
}

// state runs a command that reads the state of record seq, and checks the output.
func (x *trial) state(seq uint64, args []string) {
	x.t.Helper()
	a, want := x.try(args...), x.original.run(append(args, "--json")...)
	switch {
	case a.out == want.out:
	case x.readable(seq):
		x.fail(a, args, "the state can be reached")
	case a.out != "":
		x.fail(a, args, "the output for the undamaged store is different: %s", want.out)
	}
}

// latest runs a command for the newest state. If damage hides the newest state, the command must
// print an older readable state, and say that the newest state is missing. at(seq) returns the
// arguments for the state of record seq.
func (x *trial) latest(args []string, at func(seq uint64) []string) {
	x.t.Helper()
	a := x.try(args...)
	least, some := x.newest()
	for seq := x.original.head; ; seq-- {
		if want := x.original.run(append(at(seq), "--json")...); a.out == want.out && a.out != "" {
			if seq != x.original.head && !saysNewestMissing(a) {
				x.fail(a, args, "an old state is printed as the newest")
			}
			return
		}
		if seq == least {
			break
		}
	}
	if some && x.original.run(at(least)...).out != "" {
		x.fail(a, args, "the state of record %d can be reached", least)
	} else if a.out != "" {
		x.fail(a, args, "the output names a state that does not exist")
	}
}

// saysNewestMissing reports whether the answer says that the newest state may be missing.
func saysNewestMissing(a answer) bool {
	return strings.Contains(a.err, "the newest whose state") || strings.Contains(a.err, "newer states than")
}

// An object is a decoded JSON object.
type object = map[string]any

// object decodes the output of a command; it returns nil for empty output.
func (x *trial) object(a answer, args ...string) (doc object) {
	x.t.Helper()
	if a.out == "" {
		return nil
	}
	if err := json.Unmarshal([]byte(a.out), &doc); err != nil {
		x.fail(a, args, "%v", err)
	}
	return doc
}

// items returns the objects in the list with this name in doc.
func items(doc object, name string) (list []object) {
	all, _ := doc[name].([]any)
	for _, item := range all {
		list = append(list, item.(object))
	}
	return list
}

// withoutMembers returns a copy of doc without the named members.
func withoutMembers(doc object, names ...string) object {
	doc = maps.Clone(doc)
	for _, name := range names {
		delete(doc, name)
	}
	return doc
}

// seqOf returns the record that doc names.
func seqOf(doc object) uint64 {
	seq, _ := doc["record"].(float64)
	return uint64(seq)
}

// writers runs a command that prints the ticks that wrote the components of an entity. If such a
// tick is unreadable, the command must print "at or before" another tick.
func (x *trial) writers(args ...string) {
	x.t.Helper()
	points := describe.Listed(x.points, at)
	for _, point := range append(points, "@latest") {
		args := append(slices.Clone(args), "--at", point)
		a := x.try(args...)
		doc := x.object(a, args...)
		if doc == nil {
			continue // The command failed. The function states() checks whether it had to succeed.
		}
		seq := seqOf(doc)
		if point == at(seq) || seq == x.original.head || saysNewestMissing(a) {
			want := x.object(x.original.run(append(args[:len(args)-1], at(seq), "--json")...), args...)
			if !sameWriters(doc, want, seq) {
				x.fail(a, args, "the original is %v", want)
			}
		} else {
			x.fail(a, args, "the output has another state than the requested one")
		}
	}
}

// sameWriters reports whether two documents name the same ticks as writers. The document got is for
// the damaged store, and want is the original. If a writer in got is inexact, its record must be
// between that of the actual writer and record seq.
func sameWriters(got, want any, seq uint64) bool {
	switch got := got.(type) {
	case object:
		want, ok := want.(object)
		if !ok {
			return false
		}
		if _, isWriter := got["exact"]; isWriter {
			return reflect.DeepEqual(got, want) || got["exact"] == false && seqOf(want) <= seqOf(got) && seqOf(got) <= seq
		}
		for name, v := range got {
			if was, ok := want[name]; ok && !sameWriters(v, was, seq) || !ok && name != "written" {
				return false
			}
		}
		return true
	case []any:
		want, ok := want.([]any)
		return ok && len(got) == len(want) && !slices.ContainsFunc(got, func(v any) bool {
			return !slices.ContainsFunc(want, func(was any) bool { return sameWriters(v, was, seq) })
		})
	}
	return reflect.DeepEqual(got, want)
}

// intact reports whether a record and its schema are undamaged.
func (x *trial) intact(seq uint64) bool {
	_, ok := x.original.log.Find(seq)
	return ok && !x.damage.lost[seq] && !x.damage.blind[seq]
}

// shownNewest returns the record that info prints as the newest.
func (x *trial) shownNewest() (seq uint64, known bool) {
	x.t.Helper()
	doc := x.object(x.try("info", url), "info", url)
	return seqOf(doc), doc["record"] != nil
}

// ticks runs a command that lists ticks. It must list every undamaged tick with its original
// contents. Only a tick that was rewound may be marked as rewound.
func (x *trial) ticks(member string, args ...string) {
	x.t.Helper()
	a := x.try(args...)
	was := map[uint64]object{}
	truth := items(x.object(x.original.run(append(slices.Clone(args), "--json")...)), member)
	for _, d := range items(x.object(x.original.run("log", url, "--json")), "records") {
		was[seqOf(d)] = d
	}
	listed := map[uint64]bool{}
	for _, d := range items(x.object(a, args...), member) {
		seq := seqOf(d)
		listed[seq] = true
		want := was[seq]
		unsure := []string{"rewound"}
		if x.damage.knows {
			unsure = nil
		}
		// If the newest state is missing, the record marked as head must be the newest record that
		// info prints.
		if saysNewestMissing(a) {
			unsure = append(unsure, "head", "unreachable")
			newest, known := x.shownNewest()
			if known && (d["head"].(bool) != (seq == newest) || d["unreachable"] == true && (seq < newest || want["rewound"] == true)) {
				x.fail(a, args, "info prints record %d as the newest, but record %d is printed as %v", newest, seq, d)
			}
		}
		if !reflect.DeepEqual(withoutMembers(d, unsure...), withoutMembers(want, unsure...)) || d["rewound"] == true && want["rewound"] != true {
			x.fail(a, args, "record %d is %v in the original", seq, want)
		}
	}
	for _, d := range truth {
		if seq := seqOf(d); x.intact(seq) && !listed[seq] {
			x.fail(a, args, "record %d is undamaged but not listed", seq)
		}
	}
}

func logOracle(x *trial) {
	x.ticks("records", "log", url)
	x.ticks("records", "log", url, "--limit", "4")
	x.ticks("records", "log", url, "--reverse")
	x.ticks("records", "log", url, "--graph")
	for _, seq := range x.points {
		if seq > 0 {
			x.ticks("records", "log", url, at(seq))
		}
	}
}

// historyOracle checks the history of an entity. Each printed event must be in the original
// history. An event must be printed if its record and the states around it can be read, and no
// record header is damaged.
func historyOracle(x *trial) {
	const entity = "0v1"
	ask := func(args []string, seq uint64) {
		a := x.try(args...)
		truth := items(x.object(x.original.run("history", url, entity, "--at", at(seq), "--json")), "events")
		doc := x.object(a, args...)
		if to, ok := doc["to"].(object); ok && saysNewestMissing(a) {
			truth = items(x.object(x.original.run("history", url, entity, "--at", at(seqOf(to)), "--json")), "events")
		}
		said := map[string]bool{}
		for _, e := range items(doc, "events") {
			text := fmt.Sprint(e)
			said[text] = true
			same := slices.ContainsFunc(truth, func(was object) bool { return fmt.Sprint(was) == text })
			switch e["event"] {
			case "alive":
				same = x.original.model[seqOf(e)].entities[entity] != nil
			case "present":
				same = reflect.DeepEqual(e["new"], x.original.model[seqOf(e)].entities[entity][e["component"].(string)])
			}
			if !same {
				x.fail(a, args, "the original has no such event: %s", text)
			}
		}
		for _, e := range truth {
			at := seqOf(e)
			record, _ := x.original.log.Find(at)
			if x.intact(at) && x.readable(at) && x.readable(record.Parent) && x.readable(seq) && x.damage.knows && !said[fmt.Sprint(e)] {
				x.fail(a, args, "a readable event is missing: %v", e)
			}
		}
	}
	for _, seq := range x.points {
		if seq > 0 {
			ask([]string{"history", url, entity, "--at", at(seq)}, seq)
		}
	}
	if newest, ok := x.newest(); ok && newest > 0 {
		ask([]string{"history", url, entity}, x.original.head)
	}
}

// bisectOracle checks the result of bisect. If all states are readable, bisect must find the exact
// change. Otherwise it must find two readable states around the change.
func bisectOracle(x *trial) {
	reached := true
	for e := range x.original.log.Ancestors(x.original.head) {
		reached = reached && x.readable(e.ID.Seq) && x.readable(e.Parent)
	}
	for _, flag := range []string{"", "--scan", "--last", "--flips"} {
		args := slices.DeleteFunc([]string{"bisect", url, "score > 20", flag}, func(arg string) bool { return arg == "" })
		a, want := x.try(args...), x.original.run(append(args, "--json")...)
		doc, was := x.object(a, args...), x.object(want)
		switch {
		case doc == nil && reached:
			x.fail(a, args, "all states can be reached")
		case doc == nil:
		case flag == "--flips":
			for _, f := range items(doc, "flips") {
				if !slices.ContainsFunc(items(was, "flips"), func(g object) bool { return changeWithin(g, f) }) {
					x.fail(a, args, "the change is %v", was)
				}
			}
		case !changeWithin(was, doc) || reached && doc["record"] != was["record"]:
			x.fail(a, args, "the change is at record %v", was["record"])
		}
	}
}

// valuesOverTime runs a command that prints values over time. Each printed value must equal the
// original value. A readable state must be printed if the state before it is printed. The function
// of(value) returns the key of a value, such as its entity.
func (x *trial) valuesOverTime(list string, of func(object) any, args ...string) {
	a := x.try(args...)
	name := func(p object) string { return fmt.Sprint(seqOf(p), of(p)) }
	was := map[string]string{}
	for _, p := range items(x.object(x.original.run(append(args, "--json")...)), list) {
		was[name(p)] = fmt.Sprint(p)
	}
	printed := map[uint64]bool{}
	for _, p := range items(x.object(a, args...), list) {
		if printed[seqOf(p)] = true; was[name(p)] != fmt.Sprint(p) {
			x.fail(a, args, "the original value is %s", was[name(p)])
		}
	}
	for e := range x.original.log.Ancestors(x.original.head) {
		if printed[e.Parent] && !printed[e.ID.Seq] && x.readable(e.ID.Seq) {
			x.fail(a, args, "record %d is missing", e.ID.Seq)
		}
	}
}

// changeWithin reports whether the original change is between the two states that bisect found in
// the damaged store. The parameter was is the original document, and got is that for the damaged
// store.
func changeWithin(was, got object) bool {
	before, _ := got["before"].(object)
	return seqOf(before) < seqOf(was) && seqOf(was) <= seqOf(got) && was["holds"] == got["holds"]
}

func diffOracle(x *trial) {
	parent := func(seq uint64) uint64 {
		e, _ := x.original.log.Find(seq)
		return e.Parent
	}
	for _, seq := range x.points {
		if seq > 0 && x.readable(parent(seq)) {
			x.state(seq, []string{"diff", url, at(parent(seq)), at(seq)})
		}
	}
	if newest, ok := x.newest(); ok && x.intact(newest) && x.readable(parent(newest)) {
		x.latest([]string{"diff", url}, func(seq uint64) []string { return []string{"diff", url, at(parent(seq)), at(seq)} })
	} else {
		x.try("diff", url)
	}
}

// exportOracle checks exports of states and of ranges.
func exportOracle(x *trial) {
	x.states("export", url)
	for _, seq := range x.points {
		e, ok := x.original.log.Find(seq)
		if !ok {
			continue
		}
		x.changes(at(seq), seq)
		if before, ok := x.original.log.Find(e.Parent); ok && x.intact(before.ID.Seq) && x.readable(before.Parent) {
			x.changes(at(e.Parent)+".."+at(seq), e.Parent, seq)
		}
	}
}

// changes exports the changes of a range, and compares them with the differences that diff prints
// for each record of the range.
func (x *trial) changes(between string, seqs ...uint64) {
	args := []string{"export", url, between}
	got, readable := items(x.object(x.try(args...), args...), "changes"), true
	var want []object
	for _, seq := range seqs {
		e, _ := x.original.log.Find(seq)
		readable = readable && x.intact(seq) && x.readable(e.Parent)
		for _, d := range items(x.object(x.original.run("diff", url, at(e.Parent), at(seq), "--json")), "differences") {
			d["tick"], d["record"] = float64(e.Tick), float64(seq)
			want = append(want, d)
		}
	}
	if readable && !reflect.DeepEqual(got, want) {
		x.fail(x.try(args...), args, "the changes of the range are %v", want)
	}
}

// statsOracle checks the byte counts that stats prints.
func statsOracle(x *trial) {
	ask := func(seq uint64, args ...string) {
		a := x.try(args...)
		doc := x.object(a, args...)
		if doc == nil {
			if x.readable(seq) {
				x.fail(a, args, "the state can be reached")
			}
			return
		}
		was := x.object(x.original.run("stats", url, "--at", at(seqOf(doc)), "--json"))
		ticks := 0
		for _, e := range x.original.log.Entries {
			if e.ID.Seq <= seqOf(doc) && x.intact(e.ID.Seq) {
				ticks++
			}
		}
		if n := int(doc["records"].(float64)); n < ticks || n > int(was["records"].(float64)) {
			x.fail(a, args, "%d ticks can be read", ticks)
		}
		for i, c := range items(doc, "components") {
			if w := items(was, "components")[i]; c["name"] != w["name"] || !reflect.DeepEqual(c["rows"], w["rows"]) || !reflect.DeepEqual(c["row_bytes"], w["row_bytes"]) {
				x.fail(a, args, "the original component is %v", w)
			}
		}
		// Ignore the member "shared": it depends on other files, which may be damaged.
		for _, s := range items(doc, "snapshots") {
			same := func(w object) bool {
				return reflect.DeepEqual(withoutMembers(s, "shared"), withoutMembers(w, "shared"))
			}
			if s["error"] == nil && !slices.ContainsFunc(items(was, "snapshots"), same) {
				x.fail(a, args, "the original snapshot is different: %v", s)
			}
		}
	}
	for _, seq := range x.points {
		ask(seq, "stats", url, "--at", at(seq))
	}
	if newest, ok := x.newest(); ok {
		ask(newest, "stats", url)
	}
}

// infoOracle checks the output of info.
func infoOracle(x *trial) {
	for _, seq := range x.points {
		x.info("info", url, "--at", at(seq))
	}
	x.info("info", url)
}

func (x *trial) info(args ...string) {
	x.t.Helper()
	a := x.try(args...)
	doc := x.object(a, args...)
	if doc == nil {
		x.fail(a, args, "the output is empty")
		return
	}
	state := slices.DeleteFunc(slices.Collect(maps.Keys(doc)), func(name string) bool {
		return !slices.Contains([]string{"tick", "record", "time", "alive", "free", "retired", "digest", "components"}, name)
	})
	if len(state) > 0 {
		was := x.object(x.original.run("info", url, "--at", at(seqOf(doc)), "--json"))
		for _, name := range state {
			if !reflect.DeepEqual(doc[name], was[name]) {
				x.fail(a, args, "the original %s is %v", name, was[name])
			}
		}
	}
	was := x.object(x.original.run("info", url, "--json"))
	switch newest, ok := x.newest(); {
	case len(args) == 2 && ok && (len(state) == 0 || seqOf(doc) < newest):
		x.fail(a, args, "the state of record %d can be reached", newest)
	case len(args) == 2 && len(state) > 0 && seqOf(doc) != x.original.head && !saysNewestMissing(a):
		x.fail(a, args, "an old state is printed as the newest")
	case len(args) > 2 && len(state) == 0 && x.readable(x.recordArg(args)):
		x.fail(a, args, "the state can be reached")
	}
	for _, s := range items(doc, "snapshots") {
		if s["error"] == nil && !slices.ContainsFunc(items(was, "snapshots"), func(w object) bool { return reflect.DeepEqual(s, w) }) {
			x.fail(a, args, "the store has no such snapshot: %v", s)
		}
	}
	x.opens(a, args, doc)
}

// recordArg returns the record in the argument "--at record:N".
func (x *trial) recordArg(args []string) (seq uint64) {
	_, _ = fmt.Sscanf(args[len(args)-1], "record:%d", &seq)
	return seq
}

// marks compares the printed marks with the original ones.
func (x *trial) marks(a answer, args []string, got, was []object) {
	x.t.Helper()
	// Ignore the branches: their names depend on the lost records.
	for _, m := range slices.Concat(got, was) {
		delete(m, "branch")
	}
	for _, m := range was {
		seq := seqOf(m)
		i := slices.IndexFunc(got, func(g object) bool { return seqOf(g) == seq })
		switch {
		case i < 0 && x.intact(seq):
			x.fail(a, args, "the mark of record %d is not listed", seq)
		case i < 0:
		case !reflect.DeepEqual(withoutMembers(got[i], "rewound"), withoutMembers(m, "rewound")), x.damage.knows && got[i]["rewound"] != m["rewound"]:
			x.fail(a, args, "the original mark is %v", m)
		}
	}
}

// opens checks whether info correctly predicts that a program can open the store.
func (x *trial) opens(a answer, args []string, doc object) {
	x.t.Helper()
	s := newSample()
	store, err := persist.Open(context.Background(), ".", s.world, persist.Options{Files: x.damage.files.Clone()})
	if err == nil {
		defer store.Close(context.Background())
		if d := s.world.Digest(); d != x.original.digests[s.world.Raw().Seq()] {
			x.t.Errorf("Open returned another world")
		}
	}
	if opens, _ := doc["opens"].(bool); opens != (err == nil) {
		x.fail(a, args, "Open returned: %v", err)
	}
	if refused, _ := doc["refused"].(string); (refused == "") != (err == nil) {
		x.fail(a, args, "info predicts %q, but Open returned: %v", refused, err)
	}
}

// verifyOracle checks the damage that verify prints. A suggested command must save something.
// Without a suggestion, recover must save nothing.
func verifyOracle(x *trial) {
	a := x.try("verify", url)
	if x.damage.harmless {
		return
	}
	if a.code != exitCorrupt || !strings.Contains(a.out, x.damage.file) {
		x.fail(a, []string{"verify", url}, "%s is damaged", x.damage.file)
	}
	args := []string{"recover", url, "-o", filepath.Join(x.t.TempDir(), "out")}
	if strings.Contains(a.err, "--partial") {
		args = append(args, "--partial")
	}
	b := runOn(x.t, x.damage.files, args...)
	saved := b.code == exitOK || b.code == exitProblem
	if recommended := strings.Contains(a.err, `"try":"ecsdump recover `); recommended != saved || recommended == strings.Contains(a.err, "recover cannot save anything") {
		x.fail(a, []string{"verify", url}, "recover printed: %s", b.err)
	}
	if b.code == exitCorrupt && !strings.Contains(b.err, "nothing could be saved: corrupt: ") {
		x.fail(b, args, "the error does not say why nothing could be saved")
	}
}

// digestOf returns the digest of the newest state of the store in dir.
func (x *trial) digestOf(dir string) ecs.Digest {
	v, err := inspect.OpenReadOnly(context.Background(), dir)
	if err != nil {
		x.t.Errorf("the written store cannot be read: %v", err)
		return 0
	}
	defer v.Close()
	im, err := v.At(context.Background(), v.Head())
	if err != nil || len(v.Damage()) > 0 {
		x.t.Errorf("the written store cannot be read: %v, %v", err, v.Damage())
		return 0
	}
	return im.Digest()
}

// compactOracle writes a new store with compact, and checks that it has the newest reachable state.
func compactOracle(x *trial) {
	out := filepath.Join(x.t.TempDir(), "out")
	args := []string{"compact", url, "-o", out, "--json"}
	if !x.snapshotIntact(x.original.shots[2]) {
		args = append(args, "--no-names")
	}
	a := runOn(x.t, x.damage.files, args...)
	newest, some := x.newest()
	switch {
	case a.out == "" && some:
		x.fail(a, args, "the state of record %d can be reached", newest)
	case a.out == "":
	case a.code != exitOK && a.code != exitCorrupt:
		x.fail(a, args, "the exit status is wrong")
	default:
		d := x.digestOf(out)
		if d != x.original.digests[x.original.head] && (a.code == exitOK || !saysNewestMissing(a)) {
			x.fail(a, args, "the copied state is not the newest")
		}
		for seq := x.original.head; d != x.original.digests[seq]; seq-- {
			if seq == newest || seq == 0 {
				x.fail(a, args, "the state of record %d can be reached", newest)
				return
			}
		}
	}
}

// recoverOracle recovers the store and checks the result. If the error suggests --partial, a
// partial recovery must save more.
func recoverOracle(x *trial) {
	out := filepath.Join(x.t.TempDir(), "out")
	args := []string{"recover", url, "-o", out, "--json"}
	a := runOn(x.t, x.damage.files, args...)
	doc := x.object(a, args...)
	newest, some := x.newest()
	switch seq := seqOf(doc); {
	case a.code == exitCorrupt:
		if some {
			x.fail(a, args, "the state of record %d can be reached", newest)
		}
	case a.code != exitOK && a.code != exitProblem:
		x.fail(a, args, "the exit status is wrong")
	case some && seq < newest:
		x.fail(a, args, "the state of record %d can be reached", newest)
	case x.digestOf(out) != x.original.digests[seq]:
		x.fail(a, args, "the saved state differs from the original")
	case a.code == exitOK && seq != x.original.head:
		x.fail(a, args, "the saved state is not the newest one")
	}
	if strings.Contains(a.err, "--partial") {
		args := []string{"recover", url, "-o", out + ".pieces", "--partial", "--json"}
		b := runOn(x.t, x.damage.files, args...)
		if got := x.object(b, args...); got["partial"] != true {
			x.fail(a, args, "recover --partial fails: %s", b.err)
		}
	}
}

// importOracle damages exported files and checks the errors of import.
func importOracle(x *trial) {
	text := x.original.run("export", url).out
	digest := regexp.MustCompile(`"digest":"[0-9a-f]*"`).FindString(text)
	if digest == "" {
		x.t.Fatal("the export has no digest")
	}
	dir := x.t.TempDir()
	for name, damaged := range map[string]string{
		"emptied": "", "half": text[:len(text)/2], "foreign": strings.Repeat("root:x:0:0\n", 99),
		"flipped": strings.Replace(text, `"X":2`, `"X":3`, 1), "whole": text,
	} {
		file, out := filepath.Join(dir, name), filepath.Join(dir, name+".save")
		if err := newFile(file, func(w io.Writer) error { _, err := w.Write([]byte(damaged)); return err }); err != nil {
			x.t.Fatal(err)
		}
		args := []string{"import", file, "-o", out, "--json"}
		a := runOn(x.t, x.damage.files, args...)
		if want := map[bool]int{true: exitOK, false: exitCorrupt}[name == "whole"]; a.code != want {
			x.fail(a, args, "the file is %s", name)
		}
	}
}
