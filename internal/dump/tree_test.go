package dump

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist"
)

// These types are components that hold entities.
type (
	ChildOf struct{ Parent ecs.Entity }
	Spring  struct {
		A, B  ecs.Entity
		Force int32
	}
	Band struct{ Members [2]ecs.Entity } // This field contains two entities, so it defines no tree.
)

// buildForest creates a store of two ticks, with a snapshot after the first tick. After the first
// tick, the tree of 0v1 is:
//
//	0v1 ┬ 1v1 ┬ 3v1 ─ 5v1
//	    └ 2v1 └ 4v1
//
// Also, 11v1 is the parent of 12v1. 7v1 and 8v1 are parents of each other, and 9v1 is below 8v1.
// 10v1 is its own parent. 6v1 has the component, but no parent. 13v1 has no components.
//
// The second tick destroys 11v1 and moves 4v1 below 2v1.
func buildForest(dir, save string) error {
	ctx := context.Background()
	w := ecs.NewWorld(ecs.Options{})
	children, springs := ecs.MustRegister[ChildOf](w), ecs.MustRegister[Spring](w)
	owners := ecs.MustRegister(w, ecs.Component[ecs.Entity]{Name: "Owner"})
	bands := ecs.MustRegister[Band](w)
	ecs.Must(ecs.RegisterResource(w, ecs.NewEntity(11, 1), ecs.Component[ecs.Entity]{Name: "chosen"}))
	store, err := persist.Open(ctx, dir, w, persist.Options{Now: clock(), SnapshotBytes: -1})
	if err != nil {
		return err
	}
	for range 14 {
		w.Create()
	}
	e := func(i int) ecs.Entity { return ecs.NewEntity(uint32(i), 1) }
	for source, target := range map[int]int{1: 0, 2: 0, 3: 1, 4: 1, 5: 3, 7: 8, 8: 7, 9: 8, 10: 10, 12: 11} {
		children.Set(e(source), ChildOf{e(target)})
	}
	children.Set(e(6), ChildOf{})
	springs.Set(e(3), Spring{e(1), e(2), 7})
	owners.Set(e(5), e(0))
	bands.Set(e(0), Band{[2]ecs.Entity{e(1), e(2)}})
	err = store.Commit()
	if err == nil {
		_, err = store.Snapshot(ctx)
	}
	w.Destroy(e(11))
	children.Set(e(4), ChildOf{e(2)})
	return errors.Join(err, store.Commit(), persist.Save(ctx, save, w), store.Close(ctx))
}

// outputOf runs a command and returns its output.
func outputOf(t testing.TB, args ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	code := run(context.Background(), func() {}, nil, args, &out, &errs)
	require.Equal(t, exitOK, code, errs.String())
	return out.String()
}

// saveOf writes a save of n entities. Entity i refers to entity target(i), and entity 0 has no
// target.
func saveOf(t testing.TB, n int, target func(i int) int) (file string) {
	t.Helper()
	w := ecs.NewWorld(ecs.Options{})
	children := ecs.MustRegister[ChildOf](w)
	for range n {
		w.Create()
	}
	for i := range n {
		if at := target(i); at >= 0 {
			children.Set(ecs.NewEntity(uint32(i), 1), ChildOf{ecs.NewEntity(uint32(at), 1)})
		}
	}
	w.Commit()
	file = filepath.Join(t.TempDir(), "save")
	require.NoError(t, persist.Save(context.Background(), file, w))
	return file
}

// parseNodes returns the nodes of a JSON document.
func parseNodes(t testing.TB, text string) []nodeDoc {
	t.Helper()
	var doc treeDoc
	require.NoError(t, json.Unmarshal([]byte(text), &doc))
	return doc.Nodes
}

// parseTreeLine parses a line of a drawn tree. The result last is true if the entity is the last
// child of its parent. The result passing has the levels at which the line has a vertical bar.
func parseTreeLine(t testing.TB, line string) (entity string, depth int, last bool, passing map[int]bool) {
	t.Helper()
	if strings.HasPrefix(line, "[") {
		_, err := fmt.Sscanf(line, "[%d] ", &depth)
		require.NoError(t, err, line)
		_, line, _ = strings.Cut(line, "] ")
	}
	passing = map[int]bool{}
	for {
		at := min(len(line), len(string([]rune(line)[:min(4, len([]rune(line)))])))
		switch line[:at] {
		case "│   ", "    ":
			depth++
			passing[depth] = line[:at] == "│   "
		case "├── ", "└── ":
			return line[at:], depth + 1, line[:at] == "└── ", passing
		default:
			return line, depth, true, passing
		}
		line = line[at:]
	}
}

func TestTree_DrawsAnyShape(t *testing.T) {
	deepest := 0
	for seed := range uint64(6) {
		rng := rand.New(rand.NewPCG(seed, 64))
		near := 1 + rng.IntN(8) // A smaller number makes a deeper tree.
		file := saveOf(t, 300, func(i int) int { return i - 1 - rng.IntN(min(max(i, 1), near)) })
		nodes := parseNodes(t, outputOf(t, "tree", file, "--json"))
		lines := strings.Split(strings.TrimSuffix(outputOf(t, "tree", file, "--limit", "0"), "\n"), "\n")
		require.Len(t, nodes, 300)
		require.Len(t, lines, len(nodes))
		for i, n := range nodes {
			entity, depth, last, passing := parseTreeLine(t, lines[i])
			require.Equal(t, n.Entity, entity, "seed %d: %s", seed, lines[i])
			require.Equal(t, n.Depth, depth, "seed %d: %s", seed, lines[i])
			require.Equal(t, n.Depth == 0 || !siblingFollows(nodes[i+1:], n.Depth), last, "seed %d: %s", seed, lines[i])
			for level, passes := range passing {
				require.Equal(t, siblingFollows(nodes[i+1:], level), passes, "seed %d, level %d: %s", seed, level, lines[i])
			}
			require.Less(t, len([]rune(lines[i])), 5*mostLevels)
			deepest = max(deepest, depth)
		}
	}
	require.Greater(t, deepest, 2*mostLevels)
}

// siblingFollows reports whether nodes contains another child of the same parent: a node at the
// given depth before the first node with a lower depth.
func siblingFollows(nodes []nodeDoc, depth int) bool {
	for _, n := range nodes {
		if n.Depth <= depth {
			return n.Depth == depth
		}
	}
	return false
}

func TestTree_LongChainAndManyChildren(t *testing.T) {
	const n = 100_000
	chain := saveOf(t, n, func(i int) int { return i - 1 })
	text := outputOf(t, "tree", chain, "--limit", "0")
	require.Equal(t, n, strings.Count(text, "\n"))
	require.Less(t, len(text), 200*n)
	require.Contains(t, text, "\n[99968] ")
	text = outputOf(t, "tree", chain, "99999v1")
	require.Equal(t, "below 0v1 > 1v1 > … 99987 more … > 99989v1 > 99990v1 > 99991v1 > 99992v1 > 99993v1 > 99994v1 > 99995v1 > 99996v1 > 99997v1 > 99998v1\n99999v1\n", text)
	require.Equal(t, "0v1\n└── 1v1  (+99998 below)\n", outputOf(t, "tree", chain, "0v1", "--depth", "1"))

	text = outputOf(t, "tree", chain, "13v1", "--limit", "1")
	require.Equal(t, "below 0v1 > 1v1 > 2v1 > 3v1 > 4v1 > 5v1 > 6v1 > 7v1 > 8v1 > 9v1 > 10v1 > 11v1 > 12v1\n13v1\n99986 more of 99987 entities; --limit 0 prints all\n", text)

	crowd := saveOf(t, n, func(i int) int { return min(0, i-1) })
	require.Equal(t, n, strings.Count(outputOf(t, "tree", crowd, "--limit", "0"), "\n"))
	text = outputOf(t, "tree", crowd, "0v1")
	require.Equal(t, 21, strings.Count(text, "\n"))
	require.True(t, strings.HasSuffix(text, "├── 19v1\n99980 more of 100000 entities; --limit 0 prints all\n"), text[len(text)-100:])
	require.Len(t, parseNodes(t, outputOf(t, "tree", crowd, "--limit", "0", "--json")), n)
}

// Without --by, tree uses the component with a single entity field. --by Spring.A means the
// component Spring.A if it exists. Otherwise it means the field A of Spring.
func TestTree_ByComponentWithDot(t *testing.T) {
	w := ecs.NewWorld(ecs.Options{})
	springs, children := ecs.MustRegister[Spring](w), ecs.MustRegister[ChildOf](w)
	a, b, c := w.Create(), w.Create(), w.Create()
	springs.Set(c, Spring{A: a, B: b})
	children.Set(b, ChildOf{a})
	w.Commit()
	file := filepath.Join(t.TempDir(), "save")
	require.NoError(t, persist.Save(context.Background(), file, w))
	require.Equal(t, "0v1\n└── 1v1\n", outputOf(t, "tree", file))
	require.Equal(t, "0v1\n└── 2v1\n", outputOf(t, "tree", file, "--by", "Spring.A"))

	named := ecs.MustRegister(w, ecs.Component[ecs.Entity]{Name: "Spring.A"})
	named.Set(a, c)
	w.Commit()
	file = filepath.Join(t.TempDir(), "save")
	require.NoError(t, persist.Save(context.Background(), file, w))
	require.Equal(t, "2v1\n└── 0v1\n", outputOf(t, "tree", file, "--by", "Spring.A"))
}

func TestShow_DeadReference(t *testing.T) {
	w := ecs.NewWorld(ecs.Options{})
	springs := ecs.MustRegister[Spring](w)
	a, b, c := w.Create(), w.Create(), w.Create()
	springs.Set(c, Spring{A: a, B: b})
	w.Destroy(b)
	w.Commit()
	file := filepath.Join(t.TempDir(), "save")
	require.NoError(t, persist.Save(context.Background(), file, w))
	text := outputOf(t, "show", file, "2v1")
	require.Regexp(t, `(?m) A +0v1$`, text)
	require.Regexp(t, `(?m) B +1v1 \(not alive\)$`, text)
}

// If damage may hide that an entity is alive, the entity must not be printed as dead.
func TestShow_DamagedSave(t *testing.T) {
	w := ecs.NewWorld(ecs.Options{})
	children := ecs.MustRegister[ChildOf](w)
	for range 20_000 {
		w.Create()
	}
	// Set the rows in reverse order. Otherwise a page of rows would equal a page of entities, and
	// equal pages are stored only once.
	for i := 19_999; i > 0; i-- {
		children.Set(ecs.NewEntity(uint32(i), 1), ChildOf{ecs.NewEntity(uint32(i-1), 1)})
	}
	// Only the last page shows that the target is alive.
	children.Set(ecs.NewEntity(4, 1), ChildOf{ecs.NewEntity(19_999, 1)})
	w.Commit()
	file := filepath.Join(t.TempDir(), "save")
	require.NoError(t, persist.Save(context.Background(), file, w))
	want := outputOf(t, "show", file, "4v1")
	require.NotContains(t, want, "not alive")
	whole, err := os.ReadFile(file)
	require.NoError(t, err)
	damaged := 0
	for at := 100; at < len(whole); at += 1900 {
		whole[at] ^= 4
		require.NoError(t, os.WriteFile(file, whole, 0o600))
		whole[at] ^= 4
		var out, errs bytes.Buffer
		switch code := run(context.Background(), func() {}, nil, []string{"show", file, "4v1"}, &out, &errs); code {
		case exitOK:
			require.Equal(t, want, out.String(), "byte %d", at)
		default:
			require.Equal(t, exitCorrupt, code, "byte %d: %s", at, errs.String())
			require.Empty(t, out.String(), "byte %d", at)
			damaged++
		}
	}
	require.Greater(t, damaged, 5)
}

func TestTree_OnlyCycles(t *testing.T) {
	cycle := saveOf(t, 3, func(i int) int { return (i + 1) % 3 })
	require.Equal(t, "3 entities are in a cycle or below one, and not drawn; the first is 0v1\n", outputOf(t, "tree", cycle))
	require.Equal(t, "below 2v1 > 1v1: a cycle without a root\n0v1\n└── 2v1  (+1 below)\n", outputOf(t, "tree", cycle, "0v1", "--depth", "1"))
	require.Empty(t, parseNodes(t, outputOf(t, "tree", cycle, "--json")))
}
