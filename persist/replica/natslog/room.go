package natslog

import (
	"context"
)

// Room implements [replica.BoundedLog]. It returns the room up to the limit of the stream
// (--max-bytes). It ignores limits of the account and of the servers' disks. The cost is a request
// for the state of the stream.
func (l *Log) Room(ctx context.Context) (bytes int64, err error) {
	err = l.patiently(ctx, func(ctx context.Context) error {
		s, err := l.js.Stream(ctx, l.stream)
		if err != nil {
			return err
		}
		bytes = -1
		if info := s.CachedInfo(); info.Config.MaxBytes > 0 {
			bytes = max(info.Config.MaxBytes-int64(info.State.Bytes), 0)
		}
		return nil
	})
	return bytes, err
}
