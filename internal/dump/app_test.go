package dump

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/disk"
)

func TestOpen_NATSURLWithoutOpener(t *testing.T) {
	var out bytes.Buffer
	code := run(context.Background(), func() {}, nil, []string{"ls", "nats://localhost/WORLDS/one"}, &out, &out)
	assert.Equal(t, exitUsage, code)
	assert.Contains(t, out.String(), "go -C persist/replica/natslog install ./ecsdump-nats")
}

func TestOpen_CallsOpenerOfURLScheme(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, buildStore(dir))
	openers := map[string]Opener{"mem": func(_ context.Context, url string) (disk.FS, string, error) {
		assert.Equal(t, "mem://world", url)
		files, err := disk.Open(dir)
		return files, ".", err
	}}
	runMem := func(args ...string) (code int, stdout string) {
		var out bytes.Buffer
		code = run(context.Background(), func() {}, openers, args, &out, &out)
		return code, out.String()
	}
	for _, command := range []string{"ls", "log", "verify", "diff"} {
		_, want := runMem(command, dir)
		code, got := runMem(command, "mem://world")
		if command != "diff" { // Diff prints the name of its store, and exits with 1.
			assert.Equal(t, want, got)
			assert.Equal(t, exitOK, code)
		}
		assert.NotContains(t, got, "no such")
	}
	out := filepath.Join(t.TempDir(), "out")
	code, got := runMem("recover", "mem://world", "-o", out)
	assert.Equal(t, exitOK, code, got)
	_, want := runMem("ls", dir)
	_, got = runMem("ls", out)
	assert.Equal(t, want, got)
	_, got = runMem("__complete", "ls", "mem://world", "--with", "Pos")
	assert.Contains(t, got, "Position")
	code, got = runMem("ls", "other://world")
	assert.Equal(t, exitNotFound, code)
	assert.Equal(t, "ecsdump: other://world: no such directory or file\n", got)
}

func TestCommand_ArgumentCounts(t *testing.T) {
	for use, want := range map[string][2]int{
		"ls STORE": {1, 1}, "show STORE [ENTITY]": {1, 2}, "arrays STORE COMPONENT": {2, 2}, "man -o DIR": {0, 0},
		"diff STORE [A [B] | A..B | STORE2]": {1, 3}, "recover STORE -o OUT": {1, 1}, "history STORE E[.C[.f]] [A..B]": {2, 3},
	} {
		least, most := (&command{use: use}).arguments()
		assert.Equal(t, want, [2]int{least, most}, use)
	}
}

func TestOpen_EPIPEOfOpenerIsFailure(t *testing.T) {
	openers := map[string]Opener{"mem": func(context.Context, string) (disk.FS, string, error) { return nil, "", syscall.EPIPE }}
	var out bytes.Buffer
	assert.NotEqual(t, exitOK, run(context.Background(), func() {}, openers, []string{"info", "mem://world"}, &out, &out))
	assert.Contains(t, out.String(), "mem://world: "+syscall.EPIPE.Error())
}

func TestOpen_SecretNotPrinted(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, buildStore(dir))
	const secret = "me:se@cr:et"
	given := ""
	openers := map[string]Opener{"mem": func(_ context.Context, url string) (disk.FS, string, error) {
		if given = url; url != "mem://"+secret+"@host/world" {
			return nil, "", errors.New("no such world")
		}
		files, err := disk.Open(dir)
		return files, ".", err
	}}
	var all bytes.Buffer
	for _, args := range [][]string{
		{"info"}, {"info", "--json"}, {"verify"}, {"log"}, {"show", "-5"}, {"show", "9999v1"}, {"ls", "--with", "Nothing"}, {"diff", "@oldest"}, {"nothing"}, {"ls", "--nothing"},
	} {
		for _, path := range []string{"mem://" + secret + "@host/world", "mem://" + secret + "@host/none", "nats://" + secret + "@host/W/one"} {
			run(context.Background(), func() {}, openers, append([]string{args[0], path}, args[1:]...), &all, &all)
		}
	}
	assert.Equal(t, "mem://"+secret+"@host/none", given, "the opener gets the secret")
	assert.Contains(t, all.String(), "mem://host/world")
	for _, part := range []string{"se@cr", "cr:et", "me:se"} {
		assert.NotContains(t, all.String(), part)
	}
}

// A command that bisect runs receives the password of the URL, because it must open the URL. Bisect
// never prints the password.
func TestBisect_SecretsReachCommand(t *testing.T) {
	dir, got := t.TempDir(), filepath.Join(t.TempDir(), "got")
	require.NoError(t, buildStore(dir))
	openers := map[string]Opener{"mem": func(context.Context, string) (disk.FS, string, error) {
		files, err := disk.Open(dir)
		return files, ".", err
	}}
	var all bytes.Buffer
	const url = "mem://me:secret@host/world"
	args := []string{"bisect", url, "--run", "--", "sh", "-c", `echo "$1 $2" > "$0"; exit 0`, got, url, "mem://other:secret@host/two"}
	assert.Equal(t, exitNotFound, run(context.Background(), func() {}, openers, args, &all, &all))
	b, err := os.ReadFile(got)
	require.NoError(t, err)
	assert.Equal(t, url+" mem://other:secret@host/two\n", string(b))
	assert.Contains(t, all.String(), "mem://host/world mem://host/two")
	assert.NotContains(t, all.String(), "secret")
}

// Two URLs that differ only in the password are a usage error.
func TestOpen_URLsDifferInSecret(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, buildStore(dir))
	openers := map[string]Opener{"mem": func(context.Context, string) (disk.FS, string, error) {
		files, err := disk.Open(dir)
		return files, ".", err
	}}
	for _, test := range []struct {
		a, b string
		code int
	}{
		{"mem://me:one@host/world", "mem://me:two@host/world", exitUsage},
		{"mem://me:one@host/world", "mem://host/world", exitUsage},
		{"mem://host/world", "mem://me:two@host/world", exitUsage},
		{"mem://me:one@host/world", "mem://me:one@host/world", exitOK},
		{"mem://me:one@host/world", "mem://me:two@host/other", exitOK},
	} {
		var all bytes.Buffer
		assert.Equal(t, test.code, run(context.Background(), func() {}, openers, []string{"diff", test.a, test.b}, &all, &all), "%s %s: %s", test.a, test.b, &all)
		assert.NotContains(t, all.String(), "me:")
		if test.code == exitUsage {
			assert.Contains(t, all.String(), "mem://host/world is given twice, with different names or passwords")
		}
	}
}
