//go:build !wasm

package guide_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/internal/deep"
)

// inPage runs a program for browsers in node. The program calls the function stetReady of the page,
// whose body is the script. The function say(...) of the script prints its arguments as JSON.
// inPage returns the printed lines.
func inPage(t *testing.T, name, script string) []string {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not installed")
	}
	if deep.Or(0, 1) == 0 {
		t.Skip("compiling for browsers takes a minute: make deep does, and make site-test runs programs in a browser")
	}
	dir := t.TempDir()
	program, page := filepath.Join(dir, "program.wasm"), filepath.Join(dir, "page.js")
	build := exec.Command("go", "build", "-o", program, "./"+name)
	build.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm")
	text, err := build.CombinedOutput()
	require.NoError(t, err, string(text))
	require.NoError(t, os.WriteFile(page, []byte(`
		const say = (...all) => console.log(all.map(one => JSON.stringify(one)).join(" "));
		globalThis.stetReady = api => {
			const steps = (n, keys) => { for (let i = 0; i < n; i++) { const err = api.step(keys); if (err) say(err); } };
			try { `+script+` } catch (err) { console.log(err); }
			process.reallyExit(0);
		};`), 0o600))
	root, err := exec.Command("go", "env", "GOROOT").Output()
	require.NoError(t, err)
	loader := filepath.Join(strings.TrimSpace(string(root)), "lib", "wasm", "wasm_exec_node.js")
	run := exec.Command(node, "--require", page, loader, program)
	out, err := run.CombinedOutput()
	require.NoError(t, err, string(out))
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}

func TestPage_ParametersSlotsAndSeek(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{
		`"Step 8" [{"max":40,"min":1,"name":"coins","step":1,"value":6},{"max":80,"min":1,"name":"chasers","step":1,"value":20}] ["Save","Load"]`,
		`0 0 0`,
		`"" 10 "left"`,
		`"" 10 10 10`,
		`"ecs: tick not held: seek tick 9; the oldest retained tick is 10, the newest 10"`,
		`"" "coins is from 1 to 40" "there is no parameter \"speed\"" "there is no action \"Jump\""`,
		`10 12`,
		`12 10 730 130`,
		`"" 200 730`,
		`201 201`,
		`"" 0 [{"name":"coins","value":1}]`,
		`8 true`,
	}, inPage(t, "game8", `
		const sorted = text => JSON.parse(text).map(one => Object.fromEntries(Object.entries(one).sort()));
		say(api.title, sorted(api.params()), JSON.parse(api.actions()));
		say(api.tick(), api.oldest(), api.newest());
		steps(10, "left");
		say(api.act("Save"), api.tick(), "left");
		steps(5, "up");
		say(api.act("Load"), api.tick(), api.oldest(), api.newest());
		say(api.seek(9));
		say(api.set("coins", 1), api.set("coins", 0), api.set("speed", 1), api.act("Jump"));
		steps(2, "");
		const waits = api.tick();
		steps(2, "up");
		say(waits, api.tick());
		const before = [api.tick(), api.oldest()];
		steps(718, "left");
		say(...before, api.newest(), api.oldest());
		say(api.seek(200), api.tick(), api.newest());
		steps(1, "up");
		say(api.tick(), api.newest());
		say(api.restart(), api.tick(), sorted(api.params()).slice(0, 1).map(({name, value}) => ({name, value})));
		steps(8, "");
		say(api.tick(), api.view().split("$").length > 5);
	`))
}

// After a seek, the two games of a match begin again at a tick that is equal in both.
func TestPage_SeekInMatch(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{
		`50 [true,true]`,
		`"" 30 50`,
		`60 [true,true]`,
	}, inPage(t, "game9", `
		const halves = () => api.view().split("\n").filter(line => line.startsWith(".") && line.length > 39);
		const equal = () => [halves().length > 5, /equal at tick [1-9]/.test(api.view())];
		steps(50, "left d");
		say(api.tick(), equal());
		say(api.seek(30), api.tick(), api.newest());
		steps(30, "up");
		say(api.tick(), equal());
	`))
}
