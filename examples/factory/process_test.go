//go:build unix

package main

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// asProgram is an environment variable. If it is set, the test binary runs as the program.
const asProgram = "STET_FACTORY_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// program returns the command that runs the program.
func program(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	executable, err := os.Executable()
	require.NoError(t, err)
	c := exec.Command(executable, args...)
	c.Env = append(os.Environ(), asProgram+"=1")
	return c
}

// A program that is killed twice ends with the same result as one that was not killed.
func TestProcess_KilledTwice(t *testing.T) {
	o := testOptions()
	// Many reports fill the pipe, so the program waits for the test.
	o.plants, o.ticks, o.report = 50, 2000, 1
	dir := filepath.Join(t.TempDir(), "store")
	args := []string{"-plants", "50", "-ticks", "2000", "-report", "1", "-d", dir}
	for _, at := range []string{"tick 500:", "tick 1200:"} {
		c := program(t, args...)
		var stderr bytes.Buffer
		c.Stderr = &stderr
		out, err := c.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, c.Start())
		lines := bufio.NewScanner(out)
		for lines.Scan() && !strings.HasPrefix(lines.Text(), at) {
		}
		require.NoError(t, c.Process.Kill())
		for lines.Scan() {
			require.NotContains(t, lines.Text(), "digest", "the program was killed too late")
		}
		require.Error(t, c.Wait())
		require.Empty(t, stderr.String())
	}
	out, err := program(t, args...).CombinedOutput()
	require.NoError(t, err, string(out))
	require.Regexp(t, "^recovered tick [0-9]+: .* it had not been closed\n", string(out))
	require.Equal(t, lastDigest(t, output(t, o)), lastDigest(t, string(out)))
}

func TestProcess_ExitCodes(t *testing.T) {
	for code, args := range map[int][]string{
		0: {"-ticks", "3", "-plants", "1"},
		1: {"-load", "missing.save"},
		2: {"-jump"},
	} {
		c := program(t, args...)
		_ = c.Run()
		require.Equal(t, code, c.ProcessState.ExitCode(), args)
	}
	c := program(t, "order")
	out, err := c.CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), "factory: wants no arguments")
}
