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
	"github.com/stet-ecs/stet/persist"
)

// Every error has the same response format: an errorDoc with a code, a text for users, and possibly
// a command that may help. The code determines the HTTP status. An error in a request, such as a
// wrong parameter, is a failure and has a code. For all other errors, such as those of package
// inspect, describe chooses the code.

// Error codes. They are the exit statuses of ecsdump.
const (
	codeProblem = iota + 1
	codeUsage
	codeNotFound
	codeCorrupt
	codeSystem
)

// kinds holds the word and the HTTP status for each code.
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

// errorDoc is the response for an error.
type errorDoc struct {
	Error errorBody `json:"error"`
}

// An errorBody describes an error.
type errorBody struct {
	Code    int    `json:"code"` // The exit status of ecsdump.
	Kind    string `json:"kind"` // problem, usage, not_found, corrupt or system.
	Message string `json:"message"`
	Try     string `json:"try,omitempty"` // A command that may help.
	// Which is the parameter with the invalid expression.
	Which string `json:"which,omitempty"`
	// At is the position of the error in the expression, in characters.
	At *int `json:"at,omitempty"`
}

// A failure is an error with a code.
type failure struct {
	code int
	text string
}

func (f *failure) Error() string { return f.text }

// fail returns a failure with the given code.
func fail(code int, format string, args ...any) error {
	return &failure{code, fmt.Sprintf(format, args...)}
}

// An errorWriter describes errors in the terms of ecsdump. name is the name of the store or save
// in suggested commands.
type errorWriter struct{ name string }

// describe returns the description of err. If err wraps damage and says that an object is missing,
// describe reports the damage: the object may be in the damaged file.
func (s errorWriter) describe(err error) errorBody {
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
		body.Message = "the request took too long"
	case errors.Is(err, persist.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		body.Code, body.Try = codeNotFound, s.command("log")
	}
	body.Kind = kinds[body.Code].word
	return body
}

// command returns an ecsdump command line for the same store.
func (s errorWriter) command(name string, args ...string) string {
	return describe.Command(name, append([]string{s.name}, args...)...)
}

// writeFailure responds with an error. The response must not be cached, because the cause may
// disappear.
func writeFailure(w http.ResponseWriter, status int, body errorBody) {
	text, err := query.Marshal(errorDoc{body})
	if err != nil {
		// Encoding body cannot fail, because it contains only numbers and texts.
		panic(err)
	}
	w.Header().Set("Cache-Control", "no-store")
	writeJSON(w, status, text)
}

func writeJSON(w http.ResponseWriter, status int, text []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(status)
	// If the client has disconnected, the error does not matter.
	_, _ = w.Write(text)
}
