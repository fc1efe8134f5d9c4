//go:build linux

package natslog_test

import (
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// A network joins processes of which each has a network namespace of its own. Who makes it is
// in one, too, so that nothing is left when it ends. It needs root, and the commands ip and nsenter. Without it
// the processes are on the loopback, from which nobody can be parted.
type network struct {
	t     testing.TB
	none  bool
	links map[string]string // The ends here, by the addresses of the others.
	made  int
}

// The bridges: whoever is on one reaches the others on it.
const (
	together = "br0"
	apart    = "br1"
)

func newNetwork(t testing.TB, none bool) *network {
	n := &network{t: t, none: none, links: map[string]string{}}
	if none {
		return n
	}
	n.do("ip link set lo up")
	for _, bridge := range []string{together, apart} {
		n.do("ip link add %s type bridge", bridge)
		n.do("ip link set %s up", bridge)
	}
	n.do("ip addr add 10.77.0.254/24 dev %s", together)
	return n
}

// addr returns the address of a process, by its number from 1 on.
func (n *network) addr(i int) string {
	if n.none {
		return fmt.Sprintf("127.77.0.%d", i)
	}
	return fmt.Sprintf("10.77.0.%d", i)
}

// join gives a process an address.
func (n *network) join(pid int, addr string) {
	n.t.Helper()
	if n.none {
		return
	}
	n.made++
	here, there := fmt.Sprintf("h%d", n.made), fmt.Sprintf("t%d", n.made)
	n.do("ip link add %s type veth peer name %s", here, there)
	n.do("ip link set %s master %s up", here, together)
	n.do("ip link set %s netns %d", there, pid)
	inside := fmt.Sprintf("nsenter -t %d -n ", pid)
	n.do("%sip link set lo up", inside)
	n.do("%sip addr add %s/24 dev %s", inside, addr, there)
	n.do("%sip link set %s up", inside, there)
	n.links[addr] = here
}

// part takes some addresses to where they reach only each other; heal takes them back.
func (n *network) part(addrs ...string) {
	for _, addr := range addrs {
		n.do("ip link set %s master %s", n.links[addr], apart)
	}
}

func (n *network) heal(addrs ...string) {
	for _, addr := range addrs {
		n.do("ip link set %s master %s", n.links[addr], together)
	}
}

func (n *network) do(format string, args ...any) {
	n.t.Helper()
	words := strings.Fields(fmt.Sprintf(format, args...))
	out, err := exec.Command(words[0], words[1:]...).CombinedOutput()
	require.NoError(n.t, err, "%s: %s", words, out)
}

// process says that a process ends with this one, and has a network namespace of its own.
func (n *network) process() *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if !n.none {
		a.Cloneflags = syscall.CLONE_NEWNET
	}
	return a
}

// namespaces reports whether networks can be made here.
func namespaces() bool {
	for _, name := range []string{"ip", "nsenter", "true"} {
		if _, err := exec.LookPath(name); err != nil {
			return false
		}
	}
	cmd := exec.Command("true")
	cmd.SysProcAttr = (&network{}).process()
	return cmd.Run() == nil
}
