package persist

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestMetrics_LongestStallOfSnapshot(t *testing.T) {
	var m counters
	m.begun()
	m.observeStall(5)
	m.observeStall(7)
	m.observeStall(6)
	require.Equal(t, time.Duration(7), m.stall)
	m.begun()
	m.observeStall(2)
	require.Equal(t, time.Duration(2), m.stall)
}

func TestOnDurable_TicksUpToRecord(t *testing.T) {
	var told []uint64
	s := &Store{options: Options{OnDurable: func(tick uint64) { told = append(told, tick) }}}
	for seq := range uint64(4) {
		s.await(seq+1, seq+11)
	}
	s.durable(2)
	require.Equal(t, []uint64{11, 12}, told)
	s.durable(2)
	s.durable(4)
	require.Equal(t, []uint64{11, 12, 13, 14}, told)
}
