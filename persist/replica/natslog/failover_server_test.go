//go:build linux

package natslog_test

import (
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/persist/replica/natslog"
)

// buildServer builds the program nats-server in the version of go.mod, and returns its path.
func buildServer(t testing.TB) string {
	path := filepath.Join(t.TempDir(), "nats-server")
	begun := time.Now()
	out, err := exec.Command("go", "build", "-o", path, "github.com/nats-io/nats-server/v2").CombinedOutput()
	require.NoError(t, err, "%s", out)
	t.Logf("nats-server is built in %v", time.Since(begun).Round(100*time.Millisecond))
	return path
}

// serverConfig is the configuration of one server. The lines before the accounts are also in
// docs/REPLICATION.md.
const serverConfig = `
	server_name: %s
	listen: "%s:%d"
	log_file: %q
	jetstream { store_dir: %q, sync_interval: always }
	cluster { name: test, listen: "%s:%d", routes: [ %s ] }
` + logins

// writeConfig writes the configuration of a server whose store is in the directory of n, and
// returns its path.
func writeConfig(t testing.TB, n *node, client, route int, addrs []string) string {
	var routes []string
	for _, addr := range addrs {
		routes = append(routes, fmt.Sprintf("nats://%s:%d", addr, route))
	}
	path := filepath.Join(n.dir, "server.conf")
	config := fmt.Sprintf(serverConfig, n.name, n.addr, client, filepath.Join(n.dir, "server.log"), filepath.Join(n.dir, "store"), n.addr, route, strings.Join(routes, ", "))
	require.NoError(t, os.WriteFile(path, []byte(config), 0o644))
	return path
}

// serverCommand returns the command of a server. The process waits for a line on standard input and
// then starts the server.
func serverCommand(config string) *exec.Cmd {
	return exec.Command("sh", "-c", `read go && exec "$0" -c "$1"`, os.Getenv(withServer), config)
}

// checkServers requires that all servers sync messages before they acknowledge them.
func checkServers(t testing.TB, servers string) {
	system, err := nats.Connect(servers, nats.UserInfo("system", "x"))
	require.NoError(t, err)
	defer system.Close()
	ctx, done := context.WithTimeout(background, 10*time.Second)
	defer done()
	require.NoError(t, natslog.CheckServers(ctx, system))
}

// messageBlocks returns the files of a server that have the messages of the stream.
func messageBlocks(dir string) ([]string, error) {
	return filepath.Glob(filepath.Join(dir, "store", "jetstream", "*", "streams", "WORLDS", "msgs", "*.blk"))
}

// flipBits flips up to n random bits in files. It returns the number of flipped bits, which is 0 if
// the files are empty.
func flipBits(rng *rand.Rand, paths []string, n int) (int, error) {
	var size int64
	sizes := make([]int64, len(paths))
	for i, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return 0, err
		}
		sizes[i] = info.Size()
		size += sizes[i]
	}
	if size == 0 {
		return 0, nil
	}
	for range n {
		at, i := rng.Int64N(size), 0
		for at >= sizes[i] {
			at -= sizes[i]
			i++
		}
		if err := flipBit(paths[i], at, rng.IntN(8)); err != nil {
			return 0, err
		}
	}
	return n, nil
}

func flipBit(path string, at int64, bit int) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	var b [1]byte
	if _, err := f.ReadAt(b[:], at); err != nil {
		return err
	}
	b[0] ^= 1 << bit
	_, err = f.WriteAt(b[:], at)
	return err
}

// replaceDir replaces the first directory by a copy of the second one. If the second directory does
// not exist, replaceDir only removes the first one.
func replaceDir(dir, from string) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if _, err := os.Stat(from); os.IsNotExist(err) {
		return nil
	}
	return filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		to := filepath.Join(dir, name)
		if e.IsDir() {
			return os.MkdirAll(to, 0o755)
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(to, b, 0o644)
	})
}

func TestFlipBits_FlipsGivenNumber(t *testing.T) {
	dir := t.TempDir()
	var paths []string
	for i, size := range []int{0, 1, 5} {
		paths = append(paths, filepath.Join(dir, fmt.Sprint(i)))
		require.NoError(t, os.WriteFile(paths[i], make([]byte, size), 0o644))
	}
	rng := rand.New(rand.NewPCG(1, 1))
	n, err := flipBits(rng, paths[:1], 3)
	require.NoError(t, err)
	require.Zero(t, n)
	n, err = flipBits(rng, paths, 1)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	ones := 0
	for _, path := range paths {
		b, err := os.ReadFile(path)
		require.NoError(t, err)
		for _, c := range b {
			for ; c > 0; c >>= 1 {
				ones += int(c & 1)
			}
		}
	}
	require.Equal(t, 1, ones)
}

func TestReplaceDir_CopiesFiles(t *testing.T) {
	dir := t.TempDir()
	from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
	require.NoError(t, os.MkdirAll(filepath.Join(from, "sub"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(from, "sub", "file"), []byte("old"), 0o644))
	require.NoError(t, os.MkdirAll(to, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(to, "newer"), nil, 0o644))
	require.NoError(t, replaceDir(to, from))
	b, err := os.ReadFile(filepath.Join(to, "sub", "file"))
	require.NoError(t, err)
	require.Equal(t, "old", string(b))
	require.NoFileExists(t, filepath.Join(to, "newer"))
	require.NoError(t, replaceDir(to, filepath.Join(dir, "none")))
	require.NoDirExists(t, to)
}
