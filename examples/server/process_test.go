//go:build unix

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/ecs"
)

// asProgram is an environment variable. If it is set, the test binary runs as the program.
const asProgram = "STET_SERVER_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// A process is a running program.
type process struct {
	*exec.Cmd
	t              *testing.T
	lines          *bufio.Scanner
	stderr         bytes.Buffer
	clients, admin string
}

func startProcess(t *testing.T, args ...string) *process {
	t.Helper()
	executable, err := os.Executable()
	require.NoError(t, err)
	p := &process{Cmd: exec.Command(executable, args...), t: t}
	p.Env = append(os.Environ(), asProgram+"=1")
	p.Stderr = &p.stderr
	out, err := p.StdoutPipe()
	require.NoError(t, err)
	p.lines = bufio.NewScanner(out)
	require.NoError(t, p.Start())
	t.Cleanup(func() { p.Process.Kill() })
	return p
}

// startServer starts a server for the store in dir. It returns the process and the first printed
// line, which reports on the store.
func startServer(t *testing.T, dir string) (p *process, report string) {
	t.Helper()
	p = startProcess(t, "-dir", dir, "-addr", "localhost:0", "-admin", "localhost:0")
	report = p.line()
	_, err := fmt.Sscanf(p.line(), "clients: %s admin: %s", &p.clients, &p.admin)
	require.NoError(t, err)
	p.clients = strings.TrimSuffix(p.clients, ",")
	return p, report
}

// line returns the next line that the process prints.
func (p *process) line() string {
	p.t.Helper()
	require.True(p.t, p.lines.Scan(), "the process ended: %s", &p.stderr)
	return p.lines.Text()
}

// end sends a signal, and returns the exit code.
func (p *process) end(signal os.Signal) int {
	p.t.Helper()
	require.NoError(p.t, p.Process.Signal(signal))
	_ = p.Wait()
	return p.ProcessState.ExitCode()
}

func (p *process) metrics() (m struct {
	Tick    uint64 `json:"tick"`
	Durable uint64 `json:"durable_tick"`
}) {
	p.t.Helper()
	r, err := http.Get(p.admin + "/metrics")
	require.NoError(p.t, err)
	defer r.Body.Close()
	require.NoError(p.t, json.NewDecoder(r.Body).Decode(&m))
	return m
}

// A remote is a client with a connection.
type remote struct {
	net.Conn
	t     *testing.T
	lines *bufio.Scanner
}

func (p *process) dial(first string) *remote {
	p.t.Helper()
	conn, err := net.Dial("tcp", p.clients)
	require.NoError(p.t, err)
	p.t.Cleanup(func() { conn.Close() })
	require.NoError(p.t, conn.SetDeadline(time.Now().Add(20*time.Second)))
	r := &remote{conn, p.t, bufio.NewScanner(conn)}
	r.send(first)
	return r
}

func (r *remote) send(line string) {
	r.t.Helper()
	_, err := io.WriteString(r, line+"\n")
	require.NoError(r.t, err)
}

// await reads lines up to one that begins with prefix, and returns that line.
func (r *remote) await(prefix string) string {
	r.t.Helper()
	for r.lines.Scan() {
		if strings.HasPrefix(r.lines.Text(), prefix) {
			return r.lines.Text()
		}
	}
	r.t.Fatalf("no line %q: %v", prefix, r.lines.Err())
	return ""
}

// A server that was killed continues with the same positions, and ends properly by SIGTERM. Another
// process can follow it meanwhile.
func TestProcess_KillAndSIGTERM(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	p, report := startServer(t, dir)
	require.Contains(t, report, "new store")
	require.Contains(t, p.dial("hello").await("error"), "want join NAME")
	ann := p.dial("join ann")
	ann.await("see ann@")
	ann.send("dance")
	ann.await("error: want move")

	follower := startProcess(t, "-follow", dir)
	require.Contains(t, follower.line(), ": ann@")
	ann.send("move -64 -64")
	follower.line()
	bob := p.dial("join bob")
	bob.await("see ")
	for !strings.Contains(follower.line(), " bob@") {
	}
	bob.send("list")
	place := bob.await("online:")
	require.Regexp(t, `^online: ann@\d+,\d+ bob@\d+,\d+$`, place)
	place = place[strings.Index(place, "bob@"):]
	for at := p.metrics().Tick; p.metrics().Durable < at; {
		time.Sleep(10 * time.Millisecond)
	}
	require.Equal(t, -1, p.end(os.Kill))

	p, report = startServer(t, dir)
	require.Regexp(t, "^recovered tick .* had not been closed", report)
	require.Equal(t, "see "+place, p.dial("join bob").await("see bob@"))
	require.Equal(t, 0, p.end(syscall.SIGTERM), &p.stderr)
	require.Equal(t, 0, follower.end(syscall.SIGTERM), &follower.stderr)

	var out bytes.Buffer
	require.NoError(t, replay(t.Context(), dir, newGame(ecs.Options{}), &out))
	require.Contains(t, out.String(), "agree with the record")
	s := start(t, dir)
	require.True(t, s.store.Report().Clean)
	require.Zero(t, s.game.Online.Len(), "the last tick has the end of each connection")
	s.stop(t)
}

func TestServe_AddressInUse(t *testing.T) {
	l, err := net.Listen("tcp", "localhost:0")
	require.NoError(t, err)
	defer l.Close()
	dir := filepath.Join(t.TempDir(), "store")
	require.ErrorContains(t, serve(context.Background(), dir, l.Addr().String(), "localhost:0", io.Discard), "in use")
	require.NoDirExists(t, dir)
}
