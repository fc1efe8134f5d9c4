package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/stet-ecs/stet/examples/asteroids/game"
)

// asProgram is an environment variable. If it is set, the test binary runs as the program.
const asProgram = "STET_ASTEROIDS_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// A process is a program on a pseudo terminal.
type process struct {
	*exec.Cmd
	t     *testing.T
	keys  *os.File
	ended chan struct{}

	mu     sync.Mutex
	output []byte
}

func startProcess(t *testing.T, args ...string) *process {
	t.Helper()
	keys, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip("no pseudo terminals: ", err)
	}
	// Fd makes the file blocking, so deadlines do not work.
	n, err := unix.IoctlGetInt(int(keys.Fd()), unix.TIOCGPTN)
	require.NoError(t, err)
	require.NoError(t, unix.IoctlSetPointerInt(int(keys.Fd()), unix.TIOCSPTLCK, 0))
	require.NoError(t, unix.IoctlSetWinsize(int(keys.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 80}))
	tty, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	defer tty.Close()
	executable, err := os.Executable()
	require.NoError(t, err)
	p := &process{Cmd: exec.Command(executable, args...), t: t, keys: keys, ended: make(chan struct{})}
	p.Env = append(os.Environ(), asProgram+"=1")
	p.Stdin, p.Stdout, p.Stderr = tty, tty, tty
	p.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	require.NoError(t, p.Start())
	t.Cleanup(func() { p.Process.Kill() })
	go func() {
		defer close(p.ended)
		for b := make([]byte, 4096); ; {
			n, err := keys.Read(b)
			if err != nil {
				// Read returns an error when all processes have closed the terminal.
				return
			}
			p.mu.Lock()
			p.output = append(p.output, b[:n]...)
			p.mu.Unlock()
		}
	}()
	return p
}

// await waits until the output since the last call matches a pattern.
func (p *process) await(pattern string) {
	p.t.Helper()
	found := regexp.MustCompile(pattern)
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		p.mu.Lock()
		output := p.output
		if at := found.FindIndex(output); at != nil {
			p.output = output[at[1]:]
			p.mu.Unlock()
			return
		}
		p.mu.Unlock()
		if time.Now().After(deadline) {
			p.t.Fatalf("no output like %q; the last output is %q", pattern, output[max(0, len(output)-4000):])
		}
	}
}

func (p *process) press(keys string) {
	p.t.Helper()
	_, err := io.WriteString(p.keys, keys)
	require.NoError(p.t, err)
}

// exit waits for the end of the process, and returns its exit code and its last output. It kills a
// process that does not end. After success, it checks the mode of the terminal.
func (p *process) exit() (code int, output string) {
	p.t.Helper()
	defer time.AfterFunc(30*time.Second, func() { p.Process.Kill() }).Stop()
	_ = p.Wait()
	<-p.ended
	if p.ProcessState.Success() {
		mode, err := unix.IoctlGetTermios(int(p.keys.Fd()), unix.TCGETS)
		require.NoError(p.t, err)
		require.NotZero(p.t, mode.Lflag&unix.ECHO, "the terminal is in raw mode")
	}
	p.keys.Close()
	return p.ProcessState.ExitCode(), string(p.output)
}

// On a real terminal, a game continues after kill -9, and quits with exit code 0 by a key or
// SIGTERM.
func TestProgram_OnTerminal(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	p := startProcess(t, "-dir", dir)
	p.await(`\x1b\[\?1049h`)
	p.await(`SCORE 0 +HIGH 0 +WAVE 1`)
	p.press("\x1b[D \x1b[A")
	p.press("3")
	p.await("saved slot 3")
	p.press("rrr")
	p.await("<< 0")
	second := startProcess(t, "-dir", dir)
	code, output := second.exit()
	require.Equal(t, 1, code)
	require.Contains(t, output, "asteroids: ")
	require.Contains(t, output, fmt.Sprint(p.Process.Pid), "the process that has the store open")
	require.NoError(t, p.Process.Kill())
	code, _ = p.exit()
	require.Equal(t, -1, code)

	for _, quit := range []string{"q", "\x03", "SIGTERM"} {
		p = startProcess(t, "-dir", dir)
		p.await("SCORE")
		p.press("6")
		p.await("loaded slot 3")
		if p.press("w"); quit == "SIGTERM" {
			require.NoError(t, p.Process.Signal(syscall.SIGTERM))
		} else {
			p.press(quit)
		}
		code, output = p.exit()
		require.Equal(t, 0, code, output)
		require.True(t, strings.HasSuffix(output, "\x1b[m\x1b[?25h\x1b[?1049l"), "%q", output)
		g, err := game.Open(t.Context(), dir, nil)
		require.NoError(t, err)
		require.True(t, g.Store.Report().Clean)
		require.NoError(t, g.Close(t.Context()))
	}
}

func TestProgram_NoTerminal(t *testing.T) {
	executable, err := os.Executable()
	require.NoError(t, err)
	dir := filepath.Join(t.TempDir(), "store")
	p := exec.Command(executable, "-dir", dir)
	p.Env = append(os.Environ(), asProgram+"=1")
	p.Stdin = new(bytes.Buffer)
	output, err := p.CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(output), "asteroids: the input is not a terminal: ")
	require.NoDirExists(t, dir)
}
