package dump

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"

	"github.com/stet-ecs/stet/persist/inspect"
	"github.com/stet-ecs/stet/persist/inspect/web"
)

// The command serve shows a store in a browser until it is interrupted. Package web has the page.

// serveDoc is what serve --json prints.
type serveDoc struct {
	URL string `json:"url"` // Includes the token.
}

var serveCommand = command{
	use: "serve STORE",
	doc: `Show a store or a save in a browser

Serve a web page that shows a store or a save: a time bar, a list of entities, a map,
one entity with its history, the changes of a tick, the difference of two states, charts
of expressions, arrays, and damage. A store that a program has open is followed.

Open the printed URL in a browser. It contains a token, without which the server answers
nothing. The page shows the newest state first, or another one if you append &at=POINT
to the URL. Only this machine can open the page, unless you use --anywhere. The server
never writes to the store. For a long store, counting the rows that each tick wrote takes
a while, so the counts are stored in the user's cache directory; --no-cache disables this.
The server runs until it is interrupted.`,
	example: `  ecsdump serve D
  ecsdump serve game1.save --open
  ecsdump serve D --addr 127.0.0.1:7000`,
	run: func(f flags) action {
		var s serveCmd
		f.StringVar(&s.addr, "addr", "127.0.0.1:0", "address of the server; port 0 means any free port")
		f.BoolVar(&s.anywhere, "anywhere", false, "allow an --addr that other machines can reach; nothing is encrypted, so a machine that sees the URL on the network can read the store")
		f.BoolVar(&s.browse, "open", false, "open the page in a browser")
		f.BoolVar(&s.forget, "no-cache", false, "do not use the cache directory")
		return s.run
	},
}

// A serveCmd has the flags of serve.
type serveCmd struct {
	addr                     string
	anywhere, browse, forget bool
}

// run serves a store until an interrupt. It prints the URL before the first request, because
// another program may read the URL from the output.
func (s *serveCmd) run(c *call) error {
	host, err := s.host(c)
	if err != nil {
		return err
	}
	path := c.args[0]
	first, err := c.open(c.ctx, path)
	if err != nil {
		return classifyOpen(path, err)
	}
	_ = first.Close() // Open the store once, so that errors are reported now.
	h, err := web.New(c.ctx, func(ctx context.Context) (*inspect.View, error) { return c.open(ctx, path) }, web.Options{Name: path, Hosts: []string{host}, Cache: s.cache()})
	if err != nil {
		return classifyOpen(path, err)
	}
	defer h.Close()
	listener, err := net.Listen("tcp", s.addr)
	if err != nil {
		return systemError(err)
	}
	doc := &serveDoc{"http://" + listener.Addr().String() + h.Path()}
	if err := c.Unpaged(); err != nil {
		return err
	}
	if err := c.printReport(doc); err != nil {
		return err
	}
	if err := c.Flush(); err != nil {
		return err
	}
	if s.browse {
		browse(c, doc.URL)
	}
	server := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 64 << 10}
	// At the interrupt, Close makes Serve return ErrServerClosed, which is no failure.
	stop := context.AfterFunc(c.ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return systemError(err)
	}
	return nil
}

// host returns the host name of the address to listen at. Without --anywhere, only localhost and
// loopback addresses are allowed.
func (s *serveCmd) host(c *call) (string, error) {
	host, _, err := net.SplitHostPort(s.addr)
	if err != nil {
		return "", c.misused("--addr takes HOST:PORT, as in 127.0.0.1:7000")
	}
	ip, err := netip.ParseAddr(host)
	if host != "localhost" && (err != nil || !ip.IsLoopback()) && !s.anywhere {
		return "", c.misused("--addr %s can be reached from other machines; --anywhere allows it", s.addr)
	}
	return host, nil
}

// cache returns the directory for cached counts, or "" for no cache.
func (s *serveCmd) cache() string {
	dir, err := os.UserCacheDir()
	if s.forget || err != nil {
		return ""
	}
	return filepath.Join(dir, "stet", "rows")
}

// print prints the URL.
func (d *serveDoc) print(a *app) { a.Line("%s", d.URL) }

// browse opens a URL in the default browser, without waiting. Errors are ignored, because the URL
// is printed.
func browse(c *call, url string) {
	name, args := "xdg-open", []string{url}
	switch runtime.GOOS {
	case "darwin":
		name = "open"
	case "windows":
		name, args = "rundll32", []string{"url.dll,FileProtocolHandler", url}
	}
	if err := exec.CommandContext(c.ctx, name, args...).Start(); err != nil {
		c.printNote("no browser was opened: %v", err)
	}
}
