package browsertest

import (
	"context"
	"net"
	"net/http"
	"testing"

	"github.com/stet-ecs/stet/persist/inspect"
	"github.com/stet-ecs/stet/persist/inspect/web"
)

// A server serves a store. A test can start and stop it.
type server struct {
	*http.Server
	handler *web.Handler
	address string
}

// start serves path at an address. Address ":0" means any free port. All servers use the same
// token.
func start(t testing.TB, path, address string) *server {
	t.Helper()
	h, err := web.New(context.Background(), func(ctx context.Context) (*inspect.View, error) {
		return inspect.OpenReadOnly(ctx, path)
	}, web.Options{Token: "of each server"})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	s := &server{&http.Server{Handler: h}, h, l.Addr().String()}
	// Serve returns when the server is closed.
	go func() { _ = s.Serve(l) }()
	t.Cleanup(s.kill)
	return s
}

// kill stops the server without notifying its clients.
func (s *server) kill() {
	_ = s.Close()
	_ = s.handler.Close()
}

// Without any input, the page must show that its server has stopped. It must remove the message
// when a server answers again.
func TestPage_ShowsStoppedServer(t *testing.T) {
	if testing.Short() {
		t.Skip("the long lane runs this test: it takes long")
	}
	b := browser(t)
	for _, path := range []string{store(t, 200), save(t, settle(20), 3)} {
		s := start(t, path, "127.0.0.1:0")
		p := open(t, b, "http://"+s.address+s.handler.Path(), 1280, 800, false)
		p.shows("#entities", "Position{")
		s.kill()
		p.shows("#trouble", "the server does not answer")
		p.shows("#trouble", "Start ecsdump serve again")
		p.shows("#entities", "Position{")
		p.shot("server-gone")
		start(t, path, s.address)
		p.until(`document.querySelector("#trouble").hidden`)
		p.key("2")
		p.shows("#screen .status", "points")
		p.excuse("ERR_")
	}
}
