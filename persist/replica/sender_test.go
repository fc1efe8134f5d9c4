package replica

import (
	"bytes"
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/disk"
	"github.com/stet-ecs/stet/persist"
)

// No write may be sent between the last part of a file and its name. A new follower would miss such
// a write.
func TestSender_SendsNameAfterLastPart(t *testing.T) {
	s := newSender(context.Background(), &Memory{}, trail{}, 0, &Options{})
	content := bytes.Repeat([]byte{7}, maxData+1)
	var others atomic.Int32
	asked := 0
	size := func() int64 {
		if asked++; asked == 3 { // Both parts are sent. The name comes next.
			go func() {
				s.order.Lock()
				others.Add(1)
				s.order.Unlock()
			}()
			// In this time, the other goroutine starts to wait for the lock.
			time.Sleep(10 * time.Millisecond)
		}
		return int64(len(content))
	}
	ended := false
	require.NoError(t, s.sendParts(bytes.NewReader(content), "a", s.failure, size, func() error {
		ended = true
		time.Sleep(10 * time.Millisecond)
		assert.Zero(t, others.Load())
		return nil
	}))
	assert.True(t, ended)
	assert.Eventually(t, func() bool { return others.Load() == 1 }, time.Minute, time.Millisecond, "parts must unlock order")
}

// A follower that reads an unknown operation stops and reports it. If a newer program claims the
// log, the owner loses it.
func TestFollower_UnknownOperation(t *testing.T) {
	log := &Memory{}
	f, err := Follow(context.Background(), log, disk.Memory(), Options{})
	require.NoError(t, err)
	claim := encodeEntry(header{id: entryID{1, 1}}, []op{{kind: opOffer + 1}})
	_, err = log.Append(context.Background(), 0, claim)
	require.NoError(t, err)
	assert.Eventually(t, func() bool { return errors.Is(f.Err(), persist.ErrNewer) }, time.Minute, time.Millisecond)
	require.NoError(t, f.Close())
	s := newSender(context.Background(), log, trail{}, 0, &Options{})
	require.ErrorIs(t, s.append([]op{{kind: opComplete}}), persist.ErrLost)
}

// After a tick, each heartbeat is due before Overdue exceeds 100 ms, so followers do not assume
// that the owner is dead.
func TestSender_HeartbeatDueBeforeOverdue(t *testing.T) {
	var s sender
	f := Follower{gap: 16 * time.Millisecond}
	for ; s.beats < 6; s.beats++ {
		due := s.heartbeatDue(time.Second)
		if overdue := due - 2*f.gap; overdue > 100*time.Millisecond {
			t.Errorf("heartbeat %d is due after %v, and is then overdue for %v", s.beats, due, overdue)
		}
		if s.beats >= 3 && due != time.Second {
			t.Errorf("heartbeat %d is due after %v", s.beats, due)
		}
		f.gap = due
	}
}
