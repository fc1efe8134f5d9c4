package persist_test

import (
	"cmp"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

var (
	powerCuts    = flag.Int("powercuts", 0, "how many times TestPowerCuts cuts the power, in each way; 0: it is skipped")
	powerCutSeed = flag.Uint64("powercutseed", 0, "the seed of TestPowerCuts; 0: a new one")
)

// insideVariable tells the test process that it has its own mounts.
const insideVariable = "PERSIST_TEST_INSIDE"

const (
	diskSize     = 24 << 20
	cutsPerStore = 20
)

// TestPowerCuts runs processes on an ext4 file system of the test and cuts the power of its disk,
// as docs/POWERCUT.md describes. The whole test runs in a process with its own mounts. The mounts
// and their devices disappear with that process, however it ends.
func TestPowerCuts(t *testing.T) {
	if *powerCuts == 0 {
		t.Skip("say -powercuts N, or make powercut")
	}
	if os.Getenv(insideVariable) == "" {
		needs(t)
		runInside(t)
		return
	}
	seed := *powerCutSeed
	t.Run("disk", func(t *testing.T) {
		// The kernel ends child processes with the thread that started them. So keep this thread.
		runtime.LockOSThread()
		(&powerCut{t: t, rng: rand.New(rand.NewPCG(seed, 1))}).disks()
	})
	t.Run("shutdown", func(t *testing.T) {
		runtime.LockOSThread()
		(&powerCut{t: t, rng: rand.New(rand.NewPCG(seed, 2))}).shutdowns()
	})
}

// needs skips the test if its requirements are missing.
func needs(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root may mount")
	}
	for _, name := range []string{"/dev/fuse", "/dev/loop-control"} {
		if err := unix.Access(name, unix.R_OK|unix.W_OK); err != nil {
			t.Skipf("%s: %v", name, err)
		}
	}
	if _, err := exec.LookPath("mkfs.ext4"); err != nil {
		t.Skip(err)
	}
}

// runInside runs this test in a process with its own mounts.
func runInside(t *testing.T) {
	// The kernel ends the child process with the thread that started it. So keep this thread.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	seed := cmp.Or(*powerCutSeed, rand.Uint64())
	t.Logf("-powercutseed %d", seed)
	inside := exec.Command(os.Args[0], "-test.run", "^TestPowerCuts$", "-test.v", "-test.timeout", "30m",
		"-powercuts", fmt.Sprint(*powerCuts), "-powercutseed", fmt.Sprint(seed))
	inside.Env = append(os.Environ(), insideVariable+"=1")
	inside.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	inside.Stdout, inside.Stderr = os.Stdout, os.Stderr
	require.NoError(t, inside.Run())
}

// A powerCut cuts the power of a disk repeatedly. The next process continues with the disk as the
// last cut left it.
type powerCut struct {
	t     testing.TB
	rng   *rand.Rand
	image string // The file that holds the disk.
	dir   string // Mount point.
	past  promises
	acks  int
	lost  int
}

// mountOptions are the ways in which ext4 orders data and names.
var mountOptions = []string{"data=ordered", "data=writeback", "data=journal", "data=ordered,noauto_da_alloc", "data=ordered,commit=1"}

// disks simulates power cuts of a disk. Each cut loses all or a part of the disk's write cache.
func (p *powerCut) disks() {
	for i := range *powerCuts {
		p.renew(i)
		s := serve(p.t, p.image)
		options := p.mount(s.name)
		c := p.start(i)
		p.wait(c)
		seen := 0
		how := s.cut(1+p.rng.IntN(20), p.rng.Uint64(), func() { seen = len(c.out.lines()) })
		p.end(c, seen)
		require.NoError(p.t, s.close())
		p.last(i)
		p.t.Logf("cut %d: %s, %s", i, options, how)
	}
	p.report()
}

// shutdowns makes the file system discard everything that it has not written, including its own
// journal.
func (p *powerCut) shutdowns() {
	for i := range *powerCuts {
		p.renew(i)
		options := p.mount(p.image)
		c := p.start(i)
		p.wait(c)
		seen := len(c.out.lines())
		require.NoError(p.t, shutdown(p.dir))
		p.end(c, seen)
		p.last(i)
		p.t.Logf("cut %d: %s", i, options)
	}
	p.report()
}

// renew replaces the disk by a new one from time to time.
func (p *powerCut) renew(i int) {
	if i%cutsPerStore == 0 {
		p.image, p.past = filepath.Join(p.t.TempDir(), "image"), noPromises()
		newExt4(p.t, p.image, diskSize)
	}
}

func (p *powerCut) mount(file string) (options string) {
	options = mountOptions[p.rng.IntN(len(mountOptions))]
	p.dir = loop(p.t, file, options)
	return options
}

// end ends the process and releases its disk.
func (p *powerCut) end(c *child, seen int) {
	c.kill(p.t)
	p.hear(c, seen)
	require.NoError(p.t, unix.Unmount(p.dir, 0))
}

// last checks the disk after the last cut. After any other cut, the start of the next process
// checks it.
func (p *powerCut) last(i int) {
	if (i+1)%cutsPerStore == 0 || i+1 == *powerCuts {
		p.mount(p.image)
		p.past.check(p.t, p.store())
		require.NoError(p.t, unix.Unmount(p.dir, 0))
	}
}

// shutdown asks a file system to stop at once and to flush nothing.
func shutdown(dir string) error {
	const (
		request    = 0x8004587d // FS_IOC_SHUTDOWN
		noLogFlush = 2
	)
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return unix.IoctlSetPointerInt(int(d.Fd()), request, noLogFlush)
}

func (p *powerCut) store() string { return filepath.Join(p.dir, "store") }

// start checks the store after the last cut and starts a process with it.
func (p *powerCut) start(i int) *child {
	if i%cutsPerStore > 0 {
		p.past.check(p.t, p.store())
	}
	policy := []string{"always", "every"}[i/cutsPerStore%2]
	c := newChild("tick", p.store(), fmt.Sprint(policy, " ", p.rng.Uint64()))
	c.cmd.Stdout, c.cmd.Stderr = &c.out, os.Stderr
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	require.NoError(p.t, c.cmd.Start())
	return c
}

// wait lets c run for some ticks. Every third time it lets c run only for a short time, which may
// end during creation or recovery.
func (p *powerCut) wait(c *child) {
	if p.rng.IntN(3) > 0 {
		c.await(p.t, "durable", 1+p.rng.IntN(20))
	}
	time.Sleep(time.Duration(p.rng.IntN(60_000)) * time.Microsecond)
}

// hear counts only the output from before the power cut as promises. After the cut a process may
// print that its disk failed.
func (p *powerCut) hear(c *child, seen int) {
	lines := c.out.lines()
	for i, line := range lines {
		if strings.HasPrefix(line, "failed") {
			require.GreaterOrEqual(p.t, i, seen, line)
			lines = lines[:i]
			break
		}
	}
	p.past.hear(p.t, lines, seen)
	p.acks += p.past.durable
	p.lost += max(0, len(p.past.states)-1-p.past.durable)
}

func (p *powerCut) report() {
	p.t.Logf("%d cuts, %d states durable before them, %d more announced", *powerCuts, p.acks, p.lost)
}
