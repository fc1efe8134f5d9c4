package web

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"strconv"

	"github.com/stet-ecs/stet/internal/describe"
	"github.com/stet-ecs/stet/internal/query"
	"github.com/stet-ecs/stet/internal/shell"
	"github.com/stet-ecs/stet/persist"
)

// Whatever goes wrong is answered in one form, with a status of HTTP for programs and words for people.
// Errors come from package inspect and below, which know nothing of either; describe finds out what
// they are. What is wrong with a request is a failure, made here.
//
//	error ──describe──▶ errorDoc: code ──▶ kind, status; message; a command that may help

// What a failure is, by the exit status that ecsdump has for it.
const (
	codeProblem = iota + 1
	codeUsage
	codeNotFound
	codeCorrupt
	codeSystem
)

// kinds are the words for these codes, and how HTTP says them.
var kinds = [...]struct {
	word   string
	status int
}{
	codeProblem:  {"problem", http.StatusConflict},
	codeUsage:    {"usage", http.StatusBadRequest},
	codeNotFound: {"not_found", http.StatusNotFound},
	codeCorrupt:  {"corrupt", http.StatusUnprocessableEntity},
	codeSystem:   {"system", http.StatusInternalServerError},
}

// errorDoc is what is answered when something went wrong.
type errorDoc struct {
	Error errorBody `json:"error"`
}

// An errorBody says what went wrong.
type errorBody struct {
	Code    int    `json:"code"` // The exit status of ecsdump.
	Kind    string `json:"kind"` // problem, usage, not_found, corrupt or system.
	Message string `json:"message"`
	Try     string `json:"try,omitempty"`   // A command that may help.
	Which   string `json:"which,omitempty"` // The parameter with an expression that is wrong,
	At      *int   `json:"at,omitempty"`    // and how many characters of it are before that.
}

// A failure is an error that says what it is.
type failure struct {
	code int
	text string
}

func (f *failure) Error() string { return f.text }

// fail returns a failure of that code.
func fail(code int, format string, args ...any) error {
	return &failure{code, fmt.Sprintf(format, args...)}
}

// A speaker says what goes wrong in the words of ecsdump.
type speaker struct{ name string } // Of the store or save, as commands are given it.

// describe returns what is answered for err. Damage comes before all else that an error may be
// at the same time: what is not found in a damaged file may be there.
func (s speaker) describe(err error) errorDoc {
	body := errorBody{Code: codeSystem, Message: describe.Unprefixed(err)}
	var f *failure
	var wrong *query.Error
	switch {
	case errors.As(err, &wrong):
		body.Code, body.Which = codeUsage, wrong.What
		if wrong.At >= 0 {
			body.At = &wrong.At
		}
	case errors.Is(err, persist.ErrCorrupt), errors.Is(err, persist.ErrForeign):
		body.Code, body.Try = codeCorrupt, s.command("verify")
	case errors.As(err, &f):
		body.Code = f.code
	case errors.Is(err, persist.ErrPoint):
		body.Code = codeUsage
	case errors.Is(err, persist.ErrNewer):
		body.Code = codeProblem
	case errors.Is(err, context.DeadlineExceeded):
		body.Message = "it took too long"
	case errors.Is(err, persist.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		body.Code, body.Try = codeNotFound, s.command("log")
	}
	body.Kind = kinds[body.Code].word
	return errorDoc{body}
}

// command returns a command line that asks the same store.
func (s speaker) command(name string, args ...string) string {
	return "ecsdump " + name + " " + shell.Command(append([]string{s.name}, args...)...)
}

// writeFailure answers with doc. It must not be kept: damage may be mended, a tick may come.
func writeFailure(w http.ResponseWriter, status int, doc errorDoc) {
	text, err := query.Marshal(doc)
	if err != nil {
		panic(err) // It has numbers and text.
	}
	w.Header().Set("Cache-Control", "no-store")
	writeJSON(w, status, text)
}

func writeJSON(w http.ResponseWriter, status int, text []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(status)
	_, _ = w.Write(text) // If it is not read, nobody waits for it.
}
