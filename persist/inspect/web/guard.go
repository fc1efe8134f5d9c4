package web

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

const (
	tokenName = "token"
	apiPath   = "/api/v1/"
	// Maximum bytes of path and query. An expression has at most 16 KiB.
	maxRequest = 32 << 10
)

// policy restricts the page to scripts and styles from this server. It allows no inline code, so
// a name or value that is inserted as HTML has no effect.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// A guard decides which requests are allowed. A hostile page in the same browser can send requests
// to this server. It can also use a host name that resolves to this machine. The guard checks three
// parts of a request:
//
//	token    A hostile page has no token, and its requests carry no cookie (SameSite=Strict).
//	Host     A request to a host name of the attacker has this name as Host.
//	Origin   A request by a script has an Origin that differs from Host.
//
// The token is part of the address that the program prints. The server moves it into a cookie and
// redirects the browser to the address without the token. So the token does not appear in the
// history or on screenshots.
type guard struct {
	token [sha256.Size]byte
	text  string
	// cookie is the name of the cookie. All ports share cookies, so each server has its own name.
	cookie string
	hosts  []string
}

// newGuard returns a guard. The guard stores a hash of the token for comparison, and the token
// for the cookie.
func newGuard(o Options) *guard {
	sum := sha256.Sum256([]byte(o.Token))
	return &guard{sum, o.Token, "stet_" + hex.EncodeToString(sum[:4]), o.Hosts}
}

// randomText returns an unguessable text.
func randomText() string {
	var b [16]byte
	// rand.Read never fails.
	_, _ = rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// admit reports whether r is allowed. If not, it writes a response. It checks the host and the
// origin before the token.
func (g *guard) admit(w http.ResponseWriter, r *http.Request) bool {
	head := w.Header()
	head.Set("Content-Security-Policy", policy)
	head.Set("X-Content-Type-Options", "nosniff")
	head.Set("Referrer-Policy", "no-referrer")
	head.Set("Cross-Origin-Resource-Policy", "same-origin")
	head.Set("Cross-Origin-Opener-Policy", "same-origin")
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		head.Set("Allow", "GET, HEAD")
		g.refuse(w, r, http.StatusMethodNotAllowed, "only GET is answered: nothing here changes anything")
	case !g.knowsHost(r.Host):
		g.refuse(w, r, http.StatusForbidden, "not asked for under a name of this machine")
	case r.Header.Get("Origin") != "" && !strings.EqualFold(r.Header.Get("Origin"), "http://"+r.Host):
		g.refuse(w, r, http.StatusForbidden, "asked for by another site")
	case len(r.URL.RawQuery)+len(r.URL.Path) > maxRequest:
		g.refuse(w, r, http.StatusRequestURITooLong, "too long")
	case r.URL.Path == "/" && r.URL.Query().Has(tokenName):
		g.enter(w, r)
	case !g.hasCookie(r):
		g.refuse(w, r, http.StatusForbidden, "open the address that ecsdump serve printed: the token in it is missing or of another server")
	default:
		return true
	}
	return false
}

// enter moves the token from the address into a cookie that scripts cannot read.
func (g *guard) enter(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if !g.is(q.Get(tokenName)) {
		g.refuse(w, r, http.StatusForbidden, "the token is that of another server")
		return
	}
	http.SetCookie(w, &http.Cookie{Name: g.cookie, Value: g.text, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
	q.Del(tokenName)
	target := "/"
	if len(q) > 0 {
		target += "?" + q.Encode()
	}
	w.Header().Set("Cache-Control", "no-store")
	http.Redirect(w, r, target, http.StatusSeeOther)
}

// hasCookie reports whether one of the cookies with the guard's name is valid. A browser may send
// several cookies of this name.
func (g *guard) hasCookie(r *http.Request) bool {
	return slices.ContainsFunc(r.CookiesNamed(g.cookie), func(c *http.Cookie) bool { return g.is(c.Value) })
}

// is reports whether token equals the token of g. It takes constant time.
func (g *guard) is(token string) bool {
	sum := sha256.Sum256([]byte(token))
	return subtle.ConstantTimeCompare(sum[:], g.token[:]) == 1
}

// knowsHost reports whether a Host header names this server.
func (g *guard) knowsHost(host string) bool {
	name, _, err := net.SplitHostPort(host)
	// Without a port, the host means port 80, and an IPv6 address is still in brackets.
	if err != nil {
		name = strings.Trim(host, "[]")
	}
	if name == "localhost" || slices.Contains(g.hosts, name) {
		return true
	}
	ip, err := netip.ParseAddr(name)
	return err == nil && ip.IsLoopback()
}

// refuse responds with the reason. An API request gets JSON, and any other request gets text.
func (g *guard) refuse(w http.ResponseWriter, r *http.Request, status int, why string) {
	if strings.HasPrefix(r.URL.Path, apiPath) {
		writeFailure(w, status, errorBody{Code: codeUsage, Kind: "usage", Message: why})
		return
	}
	http.Error(w, why, status)
}
