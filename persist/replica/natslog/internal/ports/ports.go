// Package ports finds TCP ports for servers that need each other's ports before they start.
package ports

import (
	"fmt"
	"net"
	"os"
	"sync/atomic"
)

// Linux, macOS and Windows choose higher ports for outgoing connections. So no outgoing connection
// takes one of these ports before its server starts.
const (
	first = 20_000
	count = 12_000
)

// next counts the ports that this process has tried. A port is returned again only after all other
// ports.
var next atomic.Int64

// Free returns n ports of the loopback address on which no program listens. Each process starts at
// a different port, so two processes seldom find the same port.
func Free(n int) ([]int, error) {
	free := make([]int, 0, n)
	for range count {
		if len(free) == n {
			return free, nil
		}
		port := first + int(next.Add(1)+int64(os.Getpid())*97)%count
		listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		listener.Close()
		free = append(free, port)
	}
	return nil, fmt.Errorf("ports: only %d of %d ports between %d and %d are free", len(free), n, first, first+count)
}
