//go:build !wasm

package dump

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/internal/build"
	"github.com/stet-ecs/stet/internal/golden"
	"github.com/stet-ecs/stet/internal/term"
	"github.com/stet-ecs/stet/persist"
)

// An agent is a client of ecsdump mcp.
type agent struct {
	*testing.T
	*mcp.ClientSession
	schemas map[string]*jsonschema.Resolved // Output schemas, by tool name.
}

// startAgent starts mcp with args and returns an agent that is connected to it. When the test ends,
// the command must exit without an error.
func startAgent(t *testing.T, args ...string) *agent {
	t.Helper()
	questions, toServer := io.Pipe()
	fromServer, answers := io.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan *failure, 1)
	go func() {
		a := &app{Out: term.NewOut(answers, cancel), stdin: questions, stderr: os.Stderr}
		ended <- a.execute(ctx, commands, append([]string{"mcp"}, args...))
		_ = answers.Close()
	}()
	a := connectAgent(t, &mcp.IOTransport{Reader: fromServer, Writer: toServer})
	t.Cleanup(func() {
		assert.NoError(t, a.Close())
		assert.Nil(t, <-ended)
		cancel()
	})
	return a
}

// connectAgent returns an agent that uses transport.
func connectAgent(t *testing.T, transport mcp.Transport) *agent {
	t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "test"}, nil)
	session, err := client.Connect(t.Context(), transport, nil)
	require.NoError(t, err)
	a := &agent{t, session, map[string]*jsonschema.Resolved{}}
	for tool, err := range session.Tools(t.Context(), nil) {
		require.NoError(t, err)
		text, err := json.Marshal(tool.OutputSchema)
		require.NoError(t, err)
		var s jsonschema.Schema
		require.NoError(t, json.Unmarshal(text, &s))
		a.schemas[tool.Name], err = s.Resolve(nil)
		require.NoError(t, err)
	}
	return a
}

// members are the arguments of a tool call.
type members = map[string]any

// call calls a tool. It checks that the answer fits the tool's schema. It also checks that the text
// of the answer equals the structured content.
func (a *agent) call(tool string, arguments members) (doc, problem string) {
	a.Helper()
	r, err := a.CallTool(a.Context(), &mcp.CallToolParams{Name: tool, Arguments: arguments})
	require.NoError(a, err)
	var texts []string
	for _, c := range r.Content {
		texts = append(texts, c.(*mcp.TextContent).Text)
	}
	if r.StructuredContent != nil {
		assert.NoError(a, a.schemas[tool].Validate(r.StructuredContent), "%s %v", tool, arguments)
		doc, texts = texts[0], texts[1:]
		text, err := json.Marshal(r.StructuredContent)
		require.NoError(a, err)
		assert.JSONEq(a, doc, string(text))
	}
	assert.Equal(a, r.IsError, len(texts) > 0, "%s %v: %s", tool, arguments, texts)
	return doc, strings.Join(texts, "\n")
}

func TestMCP_SameAnswersAsCommands(t *testing.T) {
	store := filepath.Join(t.TempDir(), "D")
	require.NoError(t, buildStore(store))
	before, err := treeOf(store)
	require.NoError(t, err)
	a := startAgent(t, store)
	for _, q := range []struct {
		tool string
		give members
		args []string
	}{
		{"info", nil, nil},
		{"info", members{"at": "@first"}, []string{"--at", "@first"}},
		{"schema", nil, nil},
		{"query", members{"where": "Health < 1000", "select": []string{"entity", "Health"}}, []string{"Health < 1000", "--select", "entity,Health"}},
		{"query", members{"count": true, "max": []string{"Health"}, "group_by": "has(Position)"}, []string{"--count", "--max", "Health", "--group-by", "has(Position)"}},
		{"query", members{"with": []string{"Position"}, "sort": "index", "desc": true, "offset": 1}, []string{"--with", "Position", "--sort", "index", "--desc", "--offset", "1"}},
		{"show", members{"entity": "0v1"}, []string{"0v1"}},
		{"show", members{"resources": true}, []string{"--resources"}},
		{"history", members{"entity": "0v1"}, []string{"0v1"}},
		{"history", members{"entity": "0v1", "range": "1..3", "all": true}, []string{"0v1", "1..3", "--all"}},
		{"blame", members{"entity": "0v1"}, []string{"0v1"}},
		{"bisect", members{"condition": "alive > 1"}, []string{"alive > 1"}},
		{"bisect", members{"condition": "alive > 1", "flips": true}, []string{"alive > 1", "--flips"}},
		{"plot", members{"expressions": []string{"alive", "sum(Health)"}, "range": "1..", "every": 2}, []string{"alive", "sum(Health)", "1..", "--every", "2"}},
		{"plot", members{"expressions": "Health", "entity": "0v1"}, []string{"Health", "--entity", "0v1"}},
		{"plot", nil, nil},
		{"diff", nil, nil},
		{"diff", members{"from": 1, "to": 3, "component": []string{"Position"}}, []string{"1", "3", "--component", "Position"}},
		{"log", members{"verbose": true}, []string{"--verbose"}},
		{"log", members{"range": "2..3", "op": []string{"set", "add"}}, []string{"2..3", "--op", "set,add"}},

		// The tool reports the same error as the command.
		{"show", members{"entity": "99v1"}, []string{"99v1"}},
		{"show", nil, nil},
		{"query", members{"where": "Heath < 3"}, []string{"Heath < 3"}},
		{"query", members{"where": "Health <"}, []string{"Health <"}},
		{"query", members{"at": "mark:nobody"}, []string{"--at", "mark:nobody"}},
		{"query", members{"offset": "many"}, []string{"--offset", "many"}},
		{"query", members{"offset": -1}, []string{"--offset=-1"}},
		{"query", members{"with": []string{"Nothing, at \"all\""}}, []string{"--with", `"Nothing, at ""all"""`}},
		{"log", members{"range": "3..2"}, []string{"3..2"}},
		{"log", members{"op": "eat"}, []string{"--op", "eat"}},
		{"history", members{"entity": "--help"}, []string{"--", "--help"}},
		{"bisect", members{"condition": "alive > 1", "scan": true, "last": true}, []string{"alive > 1", "--scan", "--last"}},
	} {
		t.Run(fmt.Sprint(q.tool, q.give), func(t *testing.T) {
			line := append([]string{q.tool, store}, q.args...)
			_, wrong := runCommand(t, line...)
			want, _ := runCommand(t, slices.Insert(line, 2, "--json")...)
			doc, problem := (&agent{t, a.ClientSession, a.schemas}).call(q.tool, q.give)
			if want == "" {
				assert.Empty(t, doc)
			} else {
				assert.JSONEq(t, want, doc)
			}
			assert.Equal(t, strings.ReplaceAll(strings.TrimSuffix(wrong, "\n"), "ecsdump: ", ""), problem)
		})
	}
	after, err := treeOf(store)
	require.NoError(t, err)
	assert.Empty(t, before.diff(after))
}

func TestMCP_DiffOfDifferentBuilds(t *testing.T) {
	ours, theirs := filepath.Join(t.TempDir(), "ours"), filepath.Join(t.TempDir(), "theirs")
	require.NoError(t, buildDiverged(ours, false))
	was := build.Here
	t.Cleanup(func() { build.Here = was })
	build.Here = func() string { return "go1.26.0 darwin/arm64 fused math:e83c" }
	require.NoError(t, buildDiverged(theirs, true))
	doc, problem := startAgent(t, ours, theirs).call("diff", members{"store": ours, "store2": theirs, "first": true})
	assert.Empty(t, problem)
	assert.Contains(t, doc, `"builds":{"old":"`+was()+`","new":"`+build.Here()+`","floats":true}`)
}

func TestMCP_InvalidCalls(t *testing.T) {
	dir := t.TempDir()
	store, other := filepath.Join(dir, "D"), filepath.Join(dir, "other")
	require.NoError(t, buildStore(store))
	require.NoError(t, buildStore(other))
	a := startAgent(t, store)
	for _, q := range []struct {
		tool string
		give members
		want string
	}{
		{"query", members{"limit": 0}, "limit must be 1 to 1000; ask again with a higher offset"},
		{"query", members{"limit": 1001}, "limit must be 1 to 1000"},
		{"query", members{"limit": "1e9"}, "--limit takes a whole number"},
		{"query", members{"wher": "x"}, `query takes no wher; did you mean`},
		{"bisect", members{"condition": "x", "run": true}, "bisect takes no run"},
		{"schema", members{"go": true}, "schema takes no go"},
		{"diff", members{"from": other}, "no store"},
		{"diff", members{"store2": other}, "diff takes no store2"},
		{"info", members{"store": other}, "info takes no store"},
		{"info", members{"at": []string{"1", "2"}}, "at takes one value, not a list"},
		{"info", members{"at": members{"tick": 1}}, "at takes a string, a number, true, false or a list of these"},
		{"diff", members{"to": 2}, "to is given without from"},
		{"history", members{"range": "1..2"}, "range is given without entity"},
		{"query", members{"where": strings.Repeat("(", 1<<16)}, "query"},
	} {
		doc, problem := a.call(q.tool, q.give)
		assert.Empty(t, doc)
		assert.Contains(t, problem, q.want, "%s %v", q.tool, q.give)
	}
	_, err := a.CallTool(t.Context(), &mcp.CallToolParams{Name: "recover"})
	assert.ErrorContains(t, err, "recover")
}

func TestMCP_ToolDescriptions(t *testing.T) {
	store := filepath.Join(t.TempDir(), "D")
	require.NoError(t, buildStore(store))
	var names []string
	for tool, err := range startAgent(t, store).Tools(t.Context(), nil) {
		require.NoError(t, err)
		names = append(names, tool.Name)
		assert.True(t, tool.Annotations.ReadOnlyHint, tool.Name)
		assert.False(t, *tool.Annotations.OpenWorldHint, tool.Name)
		assert.NotContains(t, tool.Description, "--run", tool.Name)
		for name, s := range tool.InputSchema.(map[string]any)["properties"].(map[string]any) {
			assert.NotEmpty(t, s.(map[string]any)["description"], "%s %s", tool.Name, name)
		}
	}
	assert.ElementsMatch(t, []string{"bisect", "blame", "branches", "diff", "history", "info", "log", "marks", "panel", "plot", "query", "schema", "show"}, names)
}

func TestMCP_TwoStores(t *testing.T) {
	dir := t.TempDir()
	one, two := filepath.Join(dir, "one"), filepath.Join(dir, "two")
	require.NoError(t, buildDiverged(one, false))
	require.NoError(t, buildDiverged(two, true))
	a := startAgent(t, one, two)
	want, _ := runCommand(t, "diff", one, two, "--json", "--first")
	doc, _ := a.call("diff", members{"store2": two, "first": true})
	assert.JSONEq(t, want, doc)
	want, _ = runCommand(t, "info", two, "--json")
	doc, _ = a.call("info", members{"store": two})
	assert.JSONEq(t, want, doc)
	_, problem := a.call("info", members{"store": dir})
	assert.Contains(t, problem, "no store")
	_, problem = a.call("diff", members{"store2": two, "from": 1})
	assert.Contains(t, problem, "from is for one store")
}

func TestMCP_GrowingStore(t *testing.T) {
	dir := t.TempDir()
	store := filepath.Join(dir, "D")
	require.NoError(t, buildStore(store))
	a := startAgent(t, store)
	closed, _ := a.call("info", nil)
	assert.NotContains(t, closed, `"running":"yes"`)
	grow := growingStore(t, store)
	open, _ := a.call("info", nil)
	assert.Contains(t, open, `"running":"yes"`)
	for range 3 {
		tick := grow()
		for tool, give := range map[string]members{"query": nil, "log": {"limit": 1}, "info": nil} {
			doc, problem := a.call(tool, give)
			assert.Empty(t, problem)
			assert.Contains(t, doc, fmt.Sprintf(`"tick":%d`, tick), tool)
		}
	}
	save := filepath.Join(dir, "S")
	require.NoError(t, buildSave(save))
	b := startAgent(t, save)
	first, _ := b.call("info", nil)
	require.NoError(t, os.Remove(save))
	_, problem := b.call("query", nil)
	assert.Contains(t, problem, "no such directory or file")
	require.NoError(t, buildSave(save))
	again, _ := b.call("info", nil)
	assert.JSONEq(t, first, again)
}

func TestMCP_ParallelAndCancelledCalls(t *testing.T) {
	store := filepath.Join(t.TempDir(), "D")
	require.NoError(t, buildStore(store))
	a := startAgent(t, store)
	want, _ := a.call("query", members{"select": "entity"})
	var all sync.WaitGroup
	for i := range 40 {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i%4)*time.Millisecond+time.Microsecond)
			defer cancel()
			if i%2 == 0 {
				ctx = t.Context()
			}
			r, err := a.CallTool(ctx, &mcp.CallToolParams{Name: "query", Arguments: members{"select": "entity"}})
			if err == nil && !r.IsError {
				assert.JSONEq(t, want, r.Content[0].(*mcp.TextContent).Text)
			} else if i%2 == 0 {
				t.Errorf("query: %v %v", err, r)
			}
		})
	}
	all.Wait()
	again, _ := a.call("query", members{"select": "entity"})
	assert.JSONEq(t, want, again)
}

func TestMCP_DamagedStore(t *testing.T) {
	store := filepath.Join(t.TempDir(), "D")
	require.NoError(t, buildStore(store))
	segments, err := filepath.Glob(filepath.Join(store, "journal", "*"))
	require.NoError(t, err)
	largest := slices.MaxFunc(segments, func(a, b string) int {
		x, _ := os.Stat(a)
		y, _ := os.Stat(b)
		return cmp.Compare(x.Size(), y.Size())
	})
	content, err := os.ReadFile(largest)
	require.NoError(t, err)
	content[len(content)/2] ^= 4
	require.NoError(t, os.WriteFile(largest, content, 0o600))
	a := startAgent(t, store)
	doc, problem := a.call("log", nil)
	want, wrong := runCommand(t, "log", store, "--json")
	require.NotEmpty(t, wrong)
	assert.JSONEq(t, want, doc)
	assert.Contains(t, problem, "try: ecsdump verify")
}

func TestMCP_CutsLongAnswers(t *testing.T) {
	q := &tool{advice: "ask for less"}
	cut := func(v any, args ...string) (string, map[string]any) {
		text, err := json.Marshal(v)
		require.NoError(t, err)
		doc, err := q.cut(text, args)
		require.NoError(t, err)
		var m map[string]any
		require.NoError(t, json.Unmarshal(doc, &m), string(doc))
		return string(doc), m
	}
	for _, whole := range []string{`{"b":[1,{"a":"x<>"}],"a":18446744073709551615,"c":1e400,"d":null,"e":[],"f":{}}`, `{}`} {
		doc, err := q.cut([]byte(whole), nil)
		require.NoError(t, err)
		assert.Equal(t, whole, string(doc))
	}
	numbers := make([]int, 100_000)
	_, m := cut(members{"rows": []any{members{"Items": numbers}, members{"Items": numbers}}, "behind": 7})
	assert.Equal(t, []any{"199800 more of rows[].Items", "ask for less"}, m["left_out"])
	assert.EqualValues(t, 7, m["behind"])
	text, m := cut(members{"rows": numbers})
	assert.Equal(t, []any{fmt.Sprintf("%d more of rows", 100_000-len(m["rows"].([]any))), "ask for less"}, m["left_out"])
	assert.Less(t, len(text), cutBytes+1000)
	_, m = cut(members{"name": strings.Repeat("ä", 3000)})
	assert.Equal(t, []any{"952 more of the characters of name", "ask for less"}, m["left_out"])
	_, m = cut(members{"total": 50, "rows": numbers[:20]}, "--offset=10")
	assert.Equal(t, []any{"20 more of rows", "ask for less"}, m["left_out"])
	_, m = cut(members{"total": 30, "rows": numbers[:20]}, "--offset=10")
	assert.NotContains(t, m, "left_out")
	_, m = cut(members{"earlier": 3, "events": numbers[:2]})
	assert.Equal(t, []any{"3 before these", "ask for less"}, m["left_out"])
	_, m = cut(members{"rows": numbers[:2], "more": true})
	assert.Equal(t, []any{"more rows", "ask for less"}, m["left_out"])
	wide := members{}
	for i := range 300 {
		wide[fmt.Sprint(i)] = numbers[:300]
	}
	_, m = cut(members{"rows": []any{wide}})
	assert.Equal(t, []any{"17000 more of others", "ask for less"}, m["left_out"].([]any)[16:])
	for i := range 300 {
		wide[fmt.Sprint(i)] = strings.Repeat("x", 5000)
	}
	deep := members{"a": wide, "b": wide, "c": wide}
	big, err := json.Marshal(members{"rows": deep})
	require.NoError(t, err)
	_, err = q.cut(big, nil)
	assert.ErrorIs(t, err, errTooLarge)
}

// FuzzCutAnswers checks that a shortened document is small and valid JSON.
func FuzzCutAnswers(f *testing.F) {
	f.Add([]byte(`{"total":9,"rows":[{"a":[1,2,{"b":"c"}]},null,true,-1e9]}`), "--offset=3")
	f.Add([]byte(`{"earlier":-1,"rows":{}}`), "--offset=-5")
	f.Add([]byte(`[[[[[[]]]]]]`), "")
	f.Fuzz(func(t *testing.T, doc []byte, arg string) {
		cut, err := (&tool{advice: "x"}).cut(doc, []string{arg})
		if err != nil {
			return
		}
		if !json.Valid(cut) || len(cut) > cutAnswer+cutBytes {
			t.Errorf("cut(%q, %q) = %q", doc, arg, cut)
		}
	})
}

// FuzzToolArguments calls tools with random arguments. The result must be an error, or a command
// line with flags of the tool only.
func FuzzToolArguments(f *testing.F) {
	f.Add([]byte(`{"where":"--help","select":["a","b"],"limit":3}`))
	f.Add([]byte(`{"from":"/etc/passwd","to":["-"],"store2":"b"}`))
	f.Add([]byte(`{"entity":null,"at":1e999}`))
	stores := []string{"a", "b"}
	f.Fuzz(func(t *testing.T, given []byte) {
		for i := range tools {
			q := &tools[i]
			args, err := q.arguments(given, stores)
			if err != nil {
				continue
			}
			dash := slices.Index(args, "--")
			if args[0] != q.command.name() || args[1] != "--json" || dash < 2 {
				t.Fatalf("arguments(%q) = %q", given, args)
			}
			for _, arg := range args[2:dash] {
				name, _, _ := strings.Cut(arg, "=")
				if q.flags()[strings.ReplaceAll(strings.TrimPrefix(name, "--"), "-", "_")] == nil {
					t.Fatalf("arguments(%q) = %q", given, args)
				}
			}
		}
	})
}

// growingStore creates a store and leaves it open. It returns a function that commits a tick and
// returns the tick's number.
func growingStore(t *testing.T, dir string) (grow func() (tick uint64)) {
	t.Helper()
	s := newSample()
	store, err := persist.Open(t.Context(), dir, s.world, persist.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, store.Close(context.Background())) })
	grow = func() uint64 {
		s.health.Set(s.world.Create(), 1)
		require.NoError(t, store.Commit())
		require.NoError(t, store.Sync(t.Context()))
		return s.world.Tick()
	}
	grow()
	return grow
}

// TestMCP_RunsAsProcess runs the program as a process, with pipes for standard input and output.
func TestMCP_RunsAsProcess(t *testing.T) {
	store := filepath.Join(t.TempDir(), "D")
	require.NoError(t, buildStore(store))
	c := exec.Command("ecsdump", "mcp", store)
	c.Stderr = os.Stderr
	a := connectAgent(t, &mcp.CommandTransport{Command: c})
	want, _ := runCommand(t, "info", store, "--json")
	doc, _ := a.call("info", nil)
	assert.JSONEq(t, want, doc)
	require.NoError(t, a.Close())
	assert.True(t, c.ProcessState.Success())

	c = exec.Command("ecsdump", "mcp", store)
	in, err := c.StdinPipe()
	require.NoError(t, err)
	defer in.Close()
	require.NoError(t, c.Start())
	time.Sleep(100 * time.Millisecond)
	require.NoError(t, c.Process.Signal(os.Interrupt))
	_ = c.Wait()
	assert.True(t, c.ProcessState.Exited())
}

// buildProgram builds a program of this module and returns its path.
func buildProgram(t *testing.T, path string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), filepath.Base(path)+".exe")
	out, err := exec.Command("go", "build", "-o", file, path).CombinedOutput()
	require.NoError(t, err, string(out))
	return file
}

// TestMCP_TranscriptInDocs checks that the answers in docs/AGENTS.md are those of the tools. In
// this transcript, an agent finds the bug of examples/rollback with -bug.
func TestMCP_TranscriptInDocs(t *testing.T) {
	const page, begin, end = "../../docs/AGENTS.md", "<!-- The transcript: go test ./internal/dump -run Transcript -update. -->\n", "<!-- Its end. -->\n"
	sources, err := os.Getwd()
	require.NoError(t, err)
	dir := t.TempDir()
	// This program exits with an error, as intended.
	_ = exec.Command(buildProgram(t, "../../examples/rollback"), "-bug", "-dir", dir).Run()
	t.Chdir(dir)
	a := startAgent(t, "peer1", "peer2")
	clocks := regexp.MustCompile(`"time":"[^"]*",?`) // The times differ between runs.
	var b strings.Builder
	transcribe := func(why, tool string, give members, holds string) {
		doc, problem := a.call(tool, give)
		require.Empty(t, problem)
		require.Contains(t, doc, holds)
		text, err := json.Marshal(give)
		require.NoError(t, err)
		fmt.Fprintf(&b, "%s\n\n    → %s %s\n    ← %s\n\n", why, tool, text, clocks.ReplaceAllString(doc, ""))
	}
	transcribe("From which tick on do the two machines differ, and in which value?", "diff", members{"store2": "peer2", "first": true}, `"path":"Power","old":1,"new":3`)
	transcribe("They differ in the power of a bullet of ship 0v1. How many shots has this ship fired on peer2, where the bullet is strong?", "history", members{"store": "peer2", "entity": "0v1.Ship.Shots"}, `"new":2`)
	transcribe("Two, so the bullet should not be strong. Which bullets did peer2 create, including those in ticks that were rolled back?", "log",
		members{"store": "peer2", "component": []string{"Bullet"}, "op": []string{"add"}, "range": "..27"}, `"tick":7,"record":11,"parent":10,`)
	old, err := os.ReadFile(filepath.Join(sources, page))
	require.NoError(t, err)
	before, rest, ok := strings.Cut(string(old), begin)
	_, after, ended := strings.Cut(rest, end)
	require.True(t, ok && ended, "the page has no marks around the transcript")
	golden.Check(t, filepath.Join(sources, page), before+begin+"\n"+b.String()+end+after)
}
