package term

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestProgressBar_AppearsAfterDelay(t *testing.T) {
	var out bytes.Buffer
	now := time.Now()
	b := newBar(&out, 40, func() time.Time { return now })
	b.Show("replaying ticks", 1, 4)
	now = now.Add(barDelay - 1)
	b.Show("replaying ticks", 1, 4)
	assert.Empty(t, out.String(), "too early")
	now = now.Add(1)
	b.Show("replaying ticks", 1, 4)
	assert.Equal(t, "\rreplaying ticks      [=======>        …\x1b[K", out.String(), "no wider than the terminal")
	out.Reset()
	now = now.Add(barEvery - 1)
	b.Show("replaying ticks", 1, 4)
	assert.Empty(t, out.String(), "too soon after the last")
	now = now.Add(1)
	b.Show("replaying ticks", 1, 4)
	assert.NotEmpty(t, out.String())
	out.Reset()
	b.End()
	assert.Equal(t, "\r\x1b[K", out.String())
	b.End()
	now = now.Add(time.Hour)
	b.Show("replaying ticks", 1, 4)
	assert.Equal(t, "\r\x1b[K", out.String(), "the bar must not appear again")
	(*Bar)(nil).End()
}

func TestProgressBar_EndWithoutShow(t *testing.T) {
	var out bytes.Buffer
	newBar(&out, 0, time.Now).End()
	assert.Empty(t, out.String())
}

func TestProgressBar_TextForEachFraction(t *testing.T) {
	for _, test := range []struct {
		done, total int64
		want        string
	}{
		{0, 3, "verifying            [>                             ]   0%"},
		{1, 3, "verifying            [==========>                   ]  33%"},
		{3, 3, "verifying            [==============================] 100%"},
		{0, 0, "verifying            [==============================] 100%"},
		{9, 3, "verifying            [==============================] 100%"},
		{-9, 3, "verifying            [>                             ]   0%"},
	} {
		assert.Equal(t, test.want, barText("verifying", test.done, test.total))
	}
}
