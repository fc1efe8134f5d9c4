package web

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/stet-ecs/stet/disk"
)

// newsOf returns a function that waits for the next event of a stream and decodes it.
func newsOf(t *testing.T, body io.Reader) func() newsDoc {
	lines := bufio.NewScanner(body)
	return func() (news newsDoc) {
		for lines.Scan() {
			if text, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				require.NoError(t, json.Unmarshal([]byte(text), &news))
				return news
			}
		}
		t.Fatal("the stream of events ended")
		return news
	}
}

// A killed program leaves the lock free, but its text stays in the lock file. The server must
// report this, and also report the next program that opens the store.
func TestServer_WriterKilledThenReplaced(t *testing.T) {
	dir := build(t)
	files, err := disk.Open(dir)
	require.NoError(t, err)
	defer files.Close()
	take := func(pid int) disk.Lock {
		l, err := files.Lock("LOCK")
		require.NoError(t, err)
		require.NoError(t, l.Sign(fmt.Sprintf("process %d on here\n", pid)))
		return l
	}
	lock := take(1)
	c := serve(t, dir)
	answer, err := c.http.Do(c.request(apiPath + "events"))
	require.NoError(t, err)
	defer answer.Body.Close()
	next := newsOf(t, answer.Body)
	assert.Zero(t, next().writerDoc, "nothing happened yet")
	for _, in := range []string{"info", "health"} {
		assert.Equal(t, true, c.ask(in)["in_use"], in)
	}

	require.NoError(t, lock.Close())
	news := next()
	assert.Equal(t, writerDoc{"process 1 on here", "ended", news.Since}, news.writerDoc)
	at, err := time.Parse(time.RFC3339, news.Since)
	require.NoError(t, err)
	assert.WithinDuration(t, time.Now(), at, 10*time.Second)
	for _, in := range []string{"info", "health"} {
		assert.Equal(t, false, c.ask(in)["in_use"], in)
	}
	lock = take(2)
	news = next()
	assert.Equal(t, writerDoc{"process 2 on here", "running", news.Since}, news.writerDoc)
	require.NoError(t, lock.Sign(""))
	require.NoError(t, lock.Close())
	news = next()
	assert.Equal(t, writerDoc{"", "closed", news.Since}, news.writerDoc)
	assert.EqualValues(t, 20, news.Seq)
}
