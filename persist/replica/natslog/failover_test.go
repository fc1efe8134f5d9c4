//go:build linux

package natslog_test

import (
	"flag"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var (
	faults     = flag.Int("faults", 0, "number of faults in TestFailover; 0: the test is skipped")
	faultKinds = flag.String("kinds", "", "the kinds of faults that TestFailover makes, separated by commas; empty: all")
	faultTime  = flag.Duration("faulttime", 0, "time after which TestFailover makes no further fault; 0: no limit")
	faultSeed  = flag.Uint64("faultseed", 0, "the seed of TestFailover; 0: a new one")
)

const (
	inNetwork  = "NATSLOG_NETWORK" // Set for the process that has its own network.
	withServer = "NATSLOG_SERVER"  // Path of the program nats-server.
)

// TestFailover runs three servers and three machines as processes, and makes faults. After each
// fault, a judge checks the lines of the machines. See kinds for the faults, and judge for the
// demands.
func TestFailover(t *testing.T) {
	if *faults == 0 {
		t.Skip("no faults: see make failover")
	}
	chosen, err := chosenKinds(*faultKinds)
	require.NoError(t, err)
	// The processes are killed when the thread that started them ends, so keep the thread.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if os.Getenv(withServer) == "" {
		t.Setenv(withServer, buildServer(t))
	}
	isolated := namespaces()
	if isolated && os.Getenv(inNetwork) == "" {
		cmd := exec.Command(os.Args[0], append(os.Args[1:], "-test.v", "-test.run=^TestFailover$")...)
		cmd.Env, cmd.SysProcAttr = append(os.Environ(), inNetwork+"=1"), (&network{}).process()
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		require.NoError(t, cmd.Run())
		return
	}
	seed := *faultSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("-faultseed %d", seed)
	s := newScene(t, newNetwork(t, !isolated), rand.New(rand.NewPCG(seed, 1)))
	begun := time.Now()
	for i, k := range s.schedule(chosen, *faults) {
		if *faultTime > 0 && time.Since(begun) > *faultTime {
			break
		}
		s.round(i, k)
	}
	s.end()
}
