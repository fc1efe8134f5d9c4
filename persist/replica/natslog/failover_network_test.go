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

// A network joins processes, each with a network namespace of its own. The process that makes the
// network is in one, too, so that nothing is left when it ends. It needs root, and the commands ip
// and nsenter. Without them the processes are on the loopback, and there are no partitions.
type network struct {
	t     testing.TB
	none  bool
	links map[string]string // The near ends of the links to processes, by the addresses of these.
	made  int
}

// The bridges. Processes reach each other if they are on the same one.
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

// part cuts some processes off from the others; they still reach each other. heal ends that.
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

// process returns attributes of a process that ends with this one, and that has a network namespace
// of its own.
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
