//go:build !wasm

package guide_test

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/internal/golden"
)

// built is the directory of the built programs.
var built string

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(buildAndRun(m))
}

// buildAndRun builds the programs, and runs the tests.
func buildAndRun(m *testing.M) int {
	dir, err := os.MkdirTemp("", "guide")
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer os.RemoveAll(dir)
	built = dir
	build := exec.Command("go", "build", "-o", dir+string(filepath.Separator), "./...")
	if text, err := build.CombinedOutput(); err != nil {
		fmt.Printf("%v\n%s", err, text)
		return 1
	}
	return m.Run()
}

// program returns the command that runs a program in a directory.
func program(dir, name string, args ...string) *exec.Cmd {
	c := exec.Command(filepath.Join(built, name), args...)
	c.Dir = dir
	return c
}

// frames maps each program to the flags with which the test runs it. The chapter has the same
// commands.
var frames = map[string]string{
	"game1": "-ticks 7",
	"game2": `-ticks 9 -keys "down*3 wait right"`,
	"game3": "-ticks 60",
	"game4": `-ticks 60 -keys "wait*10 up wait*10 right wait*10 up"`,
	"game5": `-ticks 48 -keys "wait*10 up wait*10 right wait*10 up"`,
	"game6": `-ticks 100 -keys "wait*80 space down"`,
	"game7": `-ticks 50 -keys "wait*40 r*5 wait*3 up"`,
	"game8": `-ticks 40 -keys "down*20 1 wait*15 2"`,
	"game9": `-ticks 90 -keys "wait*5 down*3 s left*8 w up d*30"`,
	"time":  `-ticks 80 -keys "wait*20 1 wait*15 2 wait*10 4 wait*25 5"`,
}

func TestPrograms_LastFrame(t *testing.T) {
	for name, flags := range frames {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			flags, keys, _ := strings.Cut(flags, " -keys ")
			args := append(strings.Fields(flags), "-keys", strings.Trim(keys, `"`))
			out, err := program(t.TempDir(), name, args...).CombinedOutput()
			require.NoError(t, err, string(out))
			starts := regexp.MustCompile(`(?m)^tick \d+$`).FindAllIndex(out, -1)
			require.NotEmpty(t, starts)
			golden.Check(t, "testdata/"+name+".txt", string(out[starts[len(starts)-1][0]:]))
		})
	}
}

// Each command of the chapter that prints frames is tested.
func TestPrograms_CommandsOfChapter(t *testing.T) {
	text, err := os.ReadFile("../../docs/guide/GAME.md")
	require.NoError(t, err)
	commands := regexp.MustCompile(`(?m)^ +go run ./examples/guide/(\w+) (-ticks .*)$`).FindAllStringSubmatch(string(text), -1)
	require.NotEmpty(t, commands)
	for _, c := range commands {
		require.Equal(t, frames[c[1]], c[2], c[0])
	}
}

func TestFirst_RunTwice(t *testing.T) {
	dir := t.TempDir()
	for _, want := range []string{"tick 7 [{14 2}]\n", "tick 14 [{28 2}]\n"} {
		out, err := program(dir, "first").CombinedOutput()
		require.NoError(t, err, string(out))
		require.Equal(t, want, string(out))
	}
}

func TestPrograms_WrongFlags(t *testing.T) {
	for _, args := range [][]string{{"-coins", "0"}, {"-keys", "left*x"}, {"-jump"}} {
		require.Error(t, program(t.TempDir(), "game3", args...).Run(), args)
	}
}

// Loading a slot that does not exist shows a message, and does not end the game.
func TestGame8_LoadWithoutSave(t *testing.T) {
	out, err := program(t.TempDir(), "game8", "-ticks", "6", "-keys", "down*3 2 wait*2").CombinedOutput()
	require.NoError(t, err, string(out))
	require.Contains(t, string(out), "score 0  nothing is saved yet\n")
}

// A game that is killed continues where it was.
func TestGame8_Killed(t *testing.T) {
	dir := t.TempDir()
	c := program(dir, "game8", "-ticks", "1000000")
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	lines := bufio.NewScanner(out)
	for lines.Scan() && lines.Text() != "tick 2000" {
	}
	require.NoError(t, c.Process.Kill())
	require.Error(t, c.Wait())
	text, err := program(dir, "game8", "-ticks", "1", "-keys", "up").CombinedOutput()
	require.NoError(t, err, string(text))
	var tick int
	_, err = fmt.Sscanf(string(text), "tick %d", &tick)
	require.NoError(t, err, string(text))
	require.Greater(t, tick, 100, "a tick is durable after about 100 ms")
}
