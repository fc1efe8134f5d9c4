package chapters_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/stet-ecs/stet/ecs"
	"github.com/stet-ecs/stet/persist"
)

// A motd is the message of the day.
type motd struct{ Text string }

// newMessagePage returns the handler of a page that sets the message of the day.
func newMessagePage(store *persist.Store, message *ecs.Resource[motd]) http.HandlerFunc {
	return func(out http.ResponseWriter, request *http.Request) {
		text := request.FormValue("text")
		err := store.Do(request.Context(), func(*ecs.World) {
			message.Set(motd{text})
			_ = store.Input("message", []byte(text)) // For a replay.
		})
		if err != nil {
			http.Error(out, err.Error(), http.StatusServiceUnavailable)
		}
	}
}

func Example_serversDo() {
	world := ecs.NewWorld(ecs.Options{})
	message := ecs.Must(ecs.RegisterResource(world, motd{"hello"}, ecs.Component[motd]{Name: "Message"}))
	store, err := persist.Open(ctx, tempDir(), world, persist.Options{})
	check(err)
	page, done := newMessagePage(store, message), make(chan bool)
	go func() { // Each connection of a server has a goroutine.
		page(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/?text=bye", http.NoBody))
		close(done)
	}()
	for running := true; running; {
		check(store.Commit())
		select {
		case <-done:
			running = false
		case <-time.After(time.Millisecond):
		}
	}
	fmt.Println(message.Get())
	check(store.Close(ctx))
	// Output: {bye}
}
