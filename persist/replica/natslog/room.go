package natslog

import (
	"context"
)

// Room is a part of [replica.BoundedLog]: what the limit of the stream leaves (--max-bytes). Limits
// of the account and of the servers' disks are not seen. It costs a request for the stream's state.
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
