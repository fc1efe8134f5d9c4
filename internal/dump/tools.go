package dump

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stet-ecs/stet/internal/describe"
	"github.com/stet-ecs/stet/internal/near"
)

// The tools for agents are derived from the table of commands, their flags, and the types of their
// documents:
//
//   - command.doc becomes the description of a tool. Paragraphs on hidden flags are left out.
//   - The flags and arguments become a JSON Schema of the input. The members of a call become a
//     command line.
//   - The types of the documents become a JSON Schema of the output, see docschema.go.
//
// Commands and flags that write files or run programs are hidden from agents.

// A tool is a command that an agent can call.
//
//	takes   its arguments, in the order of the command line
//	docs    all types of documents that it may print
type tool struct {
	command *command
	takes   []argument
	hides   []string // Flags that agents cannot use.
	fresh   bool     // True if each call needs a newly opened store.
	advice  string   // How to request what an answer leaves out.
	docs    []any
}

// An argument is a word on the command line after STORE.
type argument struct{ name, usage string }

// isList reports whether the argument can be repeated. Its name then ends in s.
func (a argument) isList() bool { return strings.HasSuffix(a.name, "s") }

// These members of a tool call select one of several stores.
const (
	storeMember  = "store"
	secondMember = "store2" // The second store of diff.
)

// agentLimit is the value of --limit if the agent sets no limit. maxLimit is the largest value that
// an agent can set.
const (
	agentLimit = 50
	maxLimit   = 1000
)

var rangeArgument = argument{"range", "A..B, as in 100..200, A.. or ..B; each is a point in time"}

// tools lists all tools.
var tools = []tool{
	{command: &infoCommand, fresh: true, advice: "ask schema for components, log for ticks", docs: []any{infoDoc{}}},
	{command: &schemaCommand, hides: []string{"go"}, advice: "ask show for an entity", docs: []any{schemaDoc{}}},
	{
		command: &queryCommand, docs: []any{queryDoc{}},
		takes:  []argument{{"where", "the condition, as in Health < 10 && has(Frozen); the default selects all entities"}},
		advice: "ask again with a higher offset, for fewer columns, or with a condition that leaves fewer",
	},
	{
		command: &showCommand, docs: []any{showDoc{}, resourcesDoc{}},
		takes:  []argument{{"entity", "the entity, as in 12v3; or the index of one that is alive; or the name of a resource"}},
		advice: "ask query for a field of this entity, with where set to entity == \"12v3\"",
	},
	{
		command: &historyCommand, docs: []any{historyDoc{}},
		takes:  []argument{{"entity", "an entity, a component of it or a field: 12v3, 12v3.Position, 12v3.Position.X; or a resource or a field of it: Weather.Wind"}, rangeArgument},
		advice: "ask again with a range that ends before the first of these events, or for one component or field",
	},
	{
		command: &blameCommand, docs: []any{blameDoc{}},
		takes:  []argument{{"entity", "an entity, a component of it or a field: 12v3, 12v3.Position, 12v3.Position.X; or a resource or a field of it: Weather.Wind"}},
		advice: "ask for one component or field",
	},
	{
		command: &bisectCommand, hides: []string{"run"}, docs: []any{bisectDoc{}, flipsDoc{}},
		takes:  []argument{{"condition", "a condition on the whole world, as in count(Health <= 0) > 3; with entity, on that entity, as in Health < 10"}, rangeArgument},
		advice: "ask again with a shorter range",
	},
	{
		command: &plotCommand, hides: []string{"format"}, docs: []any{plotDoc{}},
		takes:  []argument{{"expressions", "expressions on the whole world, as in count(Health < 10) or alive; with entity, on that entity, as in Position.X"}, rangeArgument},
		advice: "ask again with a shorter range, or with every",
	},
	{
		command: &diffCommand, docs: []any{diffDoc{}, firstDoc{}},
		takes: []argument{
			{"from", "point in time A in one store; the default shows what the newest tick changed"},
			{"to", "point in time B in one store; the default is the newest state"},
		},
		advice: "ask again for one component or entity, or with stat to count only",
	},
	{command: &branchesCommand, advice: "ask again with a higher limit", docs: []any{branchesDoc{}}},
	{command: &marksCommand, advice: "ask again with a higher limit", docs: []any{marksDoc{}}},
	{
		command: &panelCommand, hides: []string{"format"}, docs: []any{panelDoc{}},
		takes:  []argument{{"expressions", "expressions on an entity, as in Health < 10 or Position.X as x"}, rangeArgument},
		advice: "ask again with a shorter range, with every, or with a condition that leaves fewer",
	},
	{
		command: &logCommand, hides: []string{"graph"}, docs: []any{logDoc{}},
		takes:  []argument{rangeArgument},
		advice: "ask again with a range that ends before the first of these records, or with a filter",
	},
}

// title returns the first line of the help text of c.
func (c *command) title() string {
	title, _, _ := strings.Cut(c.doc, "\n")
	return title
}

// description returns the help text of the command, without the paragraphs that mention a hidden
// flag.
func (t *tool) description() string {
	paragraphs := slices.DeleteFunc(strings.Split(t.command.doc, "\n\n"), func(p string) bool {
		return slices.ContainsFunc(t.hides, func(flag string) bool { return strings.Contains(p, "--"+flag) })
	})
	return strings.Join(append(paragraphs, "If left_out says that something was left out: "+t.advice+"."), "\n\n")
}

// flags returns the flags of t by member name. A member name has _ instead of -.
func (t *tool) flags() map[string]*pflag.Flag {
	cmd := &cobra.Command{}
	t.command.run(flags{cmd.Flags(), cmd})
	byName := map[string]*pflag.Flag{}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !slices.Contains(t.hides, f.Name) {
			byName[strings.ReplaceAll(f.Name, "-", "_")] = f
		}
	})
	return byName
}

// isList reports whether a flag can be repeated. The flags --sum, --min, --max and --avg have the
// type "func".
func isList(f *pflag.Flag) bool {
	return slices.Contains([]string{"stringSlice", "exprs", "expr", "entities", "words", "func"}, f.Value.Type())
}

// input returns the JSON Schema of the input of t. With several stores, a member selects the store.
func (t *tool) input(stores []string) map[string]any {
	properties := map[string]any{}
	for _, a := range t.takes {
		properties[a.name] = map[string]any{"type": "string", "description": a.usage}
		if a.isList() {
			properties[a.name] = map[string]any{"type": "array", "items": map[string]any{"type": "string"}, "minItems": 1, "description": a.usage}
		}
	}
	for name, f := range t.flags() {
		properties[name] = t.flagSchema(f)
	}
	if len(stores) > 1 {
		properties[storeMember] = map[string]any{"type": "string", "enum": stores, "default": stores[0], "description": "the store to read"}
		if t.command == &diffCommand {
			properties[secondMember] = map[string]any{"type": "string", "enum": stores, "description": "the second store to compare; give the points in time as at and at2, not as from and to"}
		}
	}
	return map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
}

// flagSchema returns the JSON Schema of a flag. For agents, --limit has a maximum.
func (t *tool) flagSchema(f *pflag.Flag) map[string]any {
	one := map[string]any{"type": "string"}
	if v, ok := f.Value.(*value); ok && len(v.words) > 0 {
		one["enum"] = v.words
	}
	switch f.Value.Type() {
	case "bool", "boolfunc":
		one["type"] = "boolean"
	case "uint":
		one["type"], one["minimum"] = "integer", 0
	}
	if f.DefValue != "" && one["type"] == "string" {
		one["default"] = f.DefValue
	}
	if f.Name == limitFlag {
		one["minimum"], one["maximum"], one["default"] = 1, maxLimit, agentLimit
	}
	if isList(f) {
		one = map[string]any{"type": "array", "items": one}
	}
	one["description"] = strings.TrimSuffix(f.Usage, "; 0: all, also the default for --json, --ndjson and CSV")
	return one
}

// output returns the JSON Schema of the answers of t.
func (t *tool) output() map[string]any {
	if len(t.docs) == 1 {
		return documentSchema(t.docs[0])
	}
	return map[string]any{"type": "object", "anyOf": describe.Listed(t.docs, documentSchema)}
}

// arguments returns the command line for the members of a tool call. Flags are written with =, and
// arguments follow --, so no argument is read as a flag. For example:
//
//	{"where": "Health < 10", "limit": 5}  ──▶  query --json --limit=5 -- D 'Health < 10'
//
// Equal calls give equal command lines. For an unknown member, arguments returns an error that
// suggests a known one.
func (t *tool) arguments(given []byte, stores []string) (args []string, err error) {
	var members map[string]json.RawMessage
	if len(bytes.TrimSpace(given)) > 0 {
		if err := json.Unmarshal(given, &members); err != nil {
			return nil, errors.New("the arguments are not an object")
		}
	}
	texts := map[string][]string{}
	for name, value := range members {
		if texts[name], err = textsOf(name, value); err != nil {
			return nil, err
		}
	}
	known, flags := t.input(stores)["properties"].(map[string]any), t.flags()
	lists := func(name string) bool {
		if f := flags[name]; f != nil {
			return isList(f)
		}
		return slices.ContainsFunc(t.takes, func(a argument) bool { return a.name == name && a.isList() })
	}
	args = []string{t.command.name(), "--json"}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		f := flags[name]
		switch {
		case known[name] == nil:
			return nil, fmt.Errorf("%s takes no %s%s", t.command.name(), name, near.Hint(name, slices.Collect(maps.Keys(known))))
		case len(texts[name]) > 1 && !lists(name):
			return nil, fmt.Errorf("%s takes one value, not a list", name)
		// The member is an argument, not a flag. positional() adds it.
		case f == nil:
			continue
		}
		for _, text := range texts[name] {
			if f.Name == limitFlag {
				if n, err := strconv.ParseUint(text, 10, 64); err == nil && (n == 0 || n > maxLimit) {
					return nil, fmt.Errorf("limit must be 1 to %d; %s", maxLimit, t.advice)
				}
			}
			// The flag parses CSV, so quote each name: it may contain a comma.
			if f.Value.Type() == "stringSlice" {
				text = `"` + strings.ReplaceAll(text, `"`, `""`) + `"`
			}
			args = append(args, "--"+f.Name+"="+text)
		}
	}
	if flags[limitFlag] != nil && texts[limitFlag] == nil {
		args = append(args, fmt.Sprintf("--%s=%d", limitFlag, agentLimit))
	}
	behind, err := t.positional(texts, stores)
	return append(append(args, "--"), behind...), err
}

// positional returns the arguments after the flags: one or two stores, then the other arguments of
// t.
func (t *tool) positional(texts map[string][]string, stores []string) (args []string, err error) {
	args = []string{stores[0]}
	if store := texts[storeMember]; len(store) > 0 {
		args = store
	}
	if second := texts[secondMember]; len(second) > 0 {
		args = append(args, second...)
	}
	missing := ""
	for _, a := range t.takes {
		switch text := texts[a.name]; {
		case len(text) == 0:
			// Arguments have fixed positions. So a missing one is an error if a later one is given.
			missing = a.name
		case missing != "":
			return nil, fmt.Errorf("%s is given without %s", a.name, missing)
		case len(texts[secondMember]) > 0:
			return nil, fmt.Errorf("%s is for one store; with %s give at and at2", a.name, secondMember)
		default:
			args = append(args, text...)
		}
	}
	return args, nil
}

// textsOf converts a JSON value to command-line texts: none for null, several for a list. Numbers
// are copied exactly.
func textsOf(name string, member json.RawMessage) (texts []string, err error) {
	d := json.NewDecoder(bytes.NewReader(member))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	list, isList := v.([]any)
	if !isList {
		list = []any{v}
	}
	for _, v := range list {
		switch v := v.(type) {
		case string:
			texts = append(texts, v)
		case json.Number, bool:
			texts = append(texts, fmt.Sprint(v))
		case nil:
		default:
			return nil, fmt.Errorf("%s takes a string, a number, true, false or a list of these", name)
		}
	}
	return texts, nil
}

// A rawDocument is a document as printed JSON.
type rawDocument = json.RawMessage

// errTooLarge reports an answer that is too large, even after it was shortened.
var errTooLarge = errors.New("the answer is too large")

// maxPrinted is the largest output of a command, in bytes, before cut shortens it.
const maxPrinted = 64 << 20

// bounded is a buffer of at most maxPrinted bytes. A write beyond this size returns an error.
type bounded struct{ bytes.Buffer }

func (b *bounded) Write(p []byte) (int, error) {
	if b.Len()+len(p) > maxPrinted {
		return 0, errTooLarge
	}
	return b.Buffer.Write(p)
}

var _ io.Writer = (*bounded)(nil)
