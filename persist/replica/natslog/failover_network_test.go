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

// A network connects processes, each of which has its own network namespace. The process that
// creates the network also has its own namespace, so all links disappear when this process ends. A
// network needs root, and the commands ip and nsenter. Without these, the processes use the
// loopback address, and there are no partitions.
type network struct {
	t     testing.TB
	none  bool
	links map[string]string // Local ends of the links to processes, by address of the process.
	made  int
}

// The bridges. Processes on the same bridge reach each other.
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

// addr returns the address of process i, which begins at 1.
func (n *network) addr(i int) string {
	if n.none {
		return fmt.Sprintf("127.77.0.%d", i)
	}
	return fmt.Sprintf("10.77.0.%d", i)
}

// join connects a process to the network, with the given address.
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

// part cuts some processes off from the other processes. The parted processes still reach each
// other. heal() ends the partition.
func (n *network) part(nodes ...*node) { n.move(apart, nodes) }
func (n *network) heal(nodes ...*node) { n.move(together, nodes) }

func (n *network) move(bridge string, nodes []*node) {
	for _, node := range nodes {
		n.do("ip link set %s master %s", n.links[node.addr], bridge)
	}
}

func (n *network) do(format string, args ...any) {
	n.t.Helper()
	words := strings.Fields(fmt.Sprintf(format, args...))
	out, err := exec.Command(words[0], words[1:]...).CombinedOutput()
	require.NoError(n.t, err, "%s: %s", words, out)
}

// process returns attributes for a new process that has its own network namespace. The new process
// is killed when this process ends.
func (n *network) process() *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if !n.none {
		a.Cloneflags = syscall.CLONE_NEWNET
	}
	return a
}

// namespaces reports whether this process can create a network.
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
