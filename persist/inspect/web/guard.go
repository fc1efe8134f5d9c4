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
	tokenName  = "token"
	apiPath    = "/api/v1/"
	maxRequest = 32 << 10 // Bytes of what is asked: an expression has at most 16 KiB.
)

// policy is what a browser lets the page do: run and show what comes from here. Nothing in it is
// inline, so that a name or value that gets into it as HTML does nothing.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// A guard says who may ask. A page that somebody else made, open in the same browser, can send
// requests here, and names of its own can be made to lead to this machine:
//
//	it knows no token, and the cookie is not sent with what it asks   SameSite=Strict
//	what it asks under a name of its own has that as its Host
//	what its scripts ask has an Origin, which is not the Host
//
// The token comes once, in the address that the program prints; it becomes a cookie, and leaves the
// address, so that no history and no picture of the screen has it:
//
//	GET /?token=…&at=12 ──▶ 303 See Other, Set-Cookie ──▶ GET /?at=12
type guard struct {
	token  [sha256.Size]byte
	text   string
	cookie string // Its name: cookies know no ports, so each server has another one.
	hosts  []string
}

// newGuard returns a guard that has the token twice: its sum, to compare with, and the text that becomes
// the cookie.
func newGuard(o Options) *guard {
	sum := sha256.Sum256([]byte(o.Token))
	return &guard{sum, o.Token, "stet_" + hex.EncodeToString(sum[:4]), o.Hosts}
}

// randomText returns a text that nobody can guess.
func randomText() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // It never fails.
	return hex.EncodeToString(b[:])
}

// admit reports whether r may be answered. If not, it has answered it. Token and cookie are looked at
// last, only of requests that were meant for here and come from no other site.
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

// enter takes the token out of the address: it becomes a cookie, which no script reads.
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

// hasCookie reports whether one of the cookies of that name is right: a browser may send several.
func (g *guard) hasCookie(r *http.Request) bool {
	return slices.ContainsFunc(r.CookiesNamed(g.cookie), func(c *http.Cookie) bool { return g.is(c.Value) })
}

// is compares a token in a time that says nothing of it.
func (g *guard) is(token string) bool {
	sum := sha256.Sum256([]byte(token))
	return subtle.ConstantTimeCompare(sum[:], g.token[:]) == 1
}

// knowsHost reports whether a request with this Host was meant for here.
func (g *guard) knowsHost(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil { // Without a port, as for port 80; an IPv6 address has brackets.
		name = strings.Trim(host, "[]")
	}
	if name == "localhost" || slices.Contains(g.hosts, name) {
		return true
	}
	ip, err := netip.ParseAddr(name)
	return err == nil && ip.IsLoopback()
}

// refuse says why r is not answered: as JSON to a program, else to people.
func (g *guard) refuse(w http.ResponseWriter, r *http.Request, status int, why string) {
	if strings.HasPrefix(r.URL.Path, apiPath) {
		writeFailure(w, status, errorDoc{errorBody{Code: codeUsage, Kind: "usage", Message: why}})
		return
	}
	http.Error(w, why, status)
}
