package replica

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"
	"time"
)

// Named returns the names of the files that an entry completes.
func Named(data []byte) (names []string) {
	_, ops, err := decodeEntry(data)
	if err != nil {
		panic(err)
	}
	for _, o := range ops {
		if o.kind == opWhole {
			names = append(names, o.name)
		}
	}
	return names
}

// Chain returns the positions of the valid entries of a log: each continues the previous valid one.
// It reads the log itself, and not through a link with faults.
func Chain(log *Memory) (chain []Position) {
	var at link
	for e, _ := log.Next(context.Background(), 0); e.Position > 0; e, _ = log.Next(context.Background(), e.Position) {
		h, err := decodeHeader(e.Data)
		if err != nil {
			panic(err)
		}
		if len(chain) == 0 || h.before == at {
			at, chain = link{e.Position, h.id}, append(chain, e.Position)
		}
	}
	return chain
}

// Describe returns a line of text for each entry of a log.
func Describe(log *Memory) (lines []string) {
	for e, _ := log.Next(context.Background(), 0); e.Position > 0; e, _ = log.Next(context.Background(), e.Position) {
		h, ops, _ := decodeEntry(e.Data)
		line := fmt.Sprintf("%d: %x/%d behind %d: %x/%d:", e.Position, h.id.Writer>>48, h.id.Number, h.before.Position, h.before.ID.Writer>>48, h.before.ID.Number)
		for _, o := range ops {
			line += fmt.Sprintf(" %d", o.kind)
		}
		lines = append(lines, line)
	}
	return lines
}

// Counts returns the position of an owner's last entry. It also reports whether the log has this
// entry, and whether the entry is valid.
func (o *Owner) Counts(log *Memory) (Position, bool) {
	o.sender.order.Lock()
	defer o.sender.order.Unlock()
	at := o.sender.at[0]
	e, _ := log.Next(context.Background(), at.Position-1)
	h, _ := decodeHeader(e.Data)
	return at.Position, e.Position == at.Position && h.id == at.ID && slices.Contains(Chain(log), at.Position)
}

// Patient returns options for a follower that waits for the duration d before it accepts that
// entries are lost. Unless Heartbeat is set, it turns heartbeats off.
func (o Options) Patient(d time.Duration) Options {
	o.patience = d
	if o.Heartbeat == 0 {
		o.Heartbeat = -1
	}
	return o
}

func resum(entry []byte) []byte {
	binary.LittleEndian.PutUint32(entry[4:], crc32.Checksum(entry[8:], castagnoli))
	return entry
}

// ReadBack returns options with which an owner reads its log back at this interval.
func (o Options) ReadBack(every time.Duration) Options {
	o.reads = every
	return o
}
