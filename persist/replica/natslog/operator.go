package natslog

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/stet-ecs/stet/persist/replica"
)

// An operatorError is a [replica.ErrOperator] with its cause.
type operatorError struct {
	text  string // The fault, and how to repair it.
	cause error
}

// Error returns the fault, how to repair it, and the error of the engine.
func (e *operatorError) Error() string { return fmt.Sprintf("natslog: %s: %v", e.text, e.cause) }

// Unwrap returns [replica.ErrOperator] and the cause.
func (e *operatorError) Unwrap() []error { return []error{replica.ErrOperator, e.cause} }

// Codes of server errors that remain until an operator acts. nats.go has no names for these codes
// of nats-server.
const (
	codeAccountFull  = 10002
	codeServersFull  = 10023
	codeNoMemory     = 10028
	codeNoAccount    = 10035
	codeNoStorage    = 10047
	codeNotCreated   = 10049
	codeOtherStream  = 10060
	codeNotStored    = 10077
	codeSealed       = 10109
	codeOffline      = 10118
	codeOfflineSince = 10194
)

// A remedy says how an operator can resolve an error code. If mayPass is true, the error is
// permanent only if it lasts longer than 10 seconds (the constant patience).
type remedy struct {
	text    string
	mayPass bool
}

var remedies = map[jetstream.ErrorCode]remedy{
	jetstream.JSErrCodeStreamNotFound:                {"the stream does not exist: restore it from a backup, or create an empty one with Create", false},
	jetstream.JSErrCodeStreamMessageExceedsMaximum:   {"the stream refuses entries of this size: set --max-msg-size -1 for it", false},
	jetstream.JSErrCodeMaximumConsumersLimit:         {"the stream has as many consumers as it may have: raise --max-consumers and the limit of the account", false},
	jetstream.JSErrCodeJetStreamNotEnabled:           {"JetStream is disabled on the servers: set jetstream in their configuration", true},
	jetstream.JSErrCodeJetStreamNotEnabledForAccount: {"JetStream is disabled for the account of the login: set jetstream: enabled for the account", true},
	codeNoAccount:    {"the servers do not have the account of the login: add it to their configuration", true},
	codeAccountFull:  {"the account has no storage left: raise its limits, or remove streams", false},
	codeServersFull:  {"the servers have no storage left: free disk space and raise max_file_store", true},
	codeNoMemory:     {"the servers have no memory left for streams: raise max_memory_store", true},
	codeNoStorage:    {"the servers have no storage left: free disk space and raise max_file_store", false},
	codeOtherStream:  {"the subject belongs to another stream: remove its subjects from that one", false},
	codeSealed:       {"the stream is sealed: restore a backup of it into a stream that is not", false},
	codeOffline:      {"the stream is offline: run servers of the version that created it", false},
	codeOfflineSince: {"the stream is offline: run servers of the version that created it", false},
}

// remedyOf returns the remedy for an error, if the error is an answer of a server.
func remedyOf(err error) (r remedy, ok bool) {
	api, ok := errors.AsType[*jetstream.APIError](err)
	if !ok {
		return r, false
	}
	if r, ok = remedies[api.ErrorCode]; ok {
		return r, true
	}
	if api.ErrorCode == codeNotCreated && strings.Contains(api.Description, "error creating store") {
		// This error may pass. When a server deletes a stream, it removes empty directories a
		// moment later. If a new stream needs one of these directories, its creation fails, and a
		// later try may succeed.
		return remedy{"the server cannot create the files of the stream: check its disk, its rights and its log", true}, true
	}
	if api.ErrorCode != codeNotStored {
		return r, false
	}
	for _, limit := range []string{"maximum messages exceeded", "maximum bytes exceeded", "maximum messages per subject exceeded"} {
		if strings.Contains(api.Description, limit) {
			return remedy{"the stream is full: raise its limits (nats stream edit), or remove worlds that are not needed", false}, true
		}
	}
	return r, false
}

// explain returns err, or an [operatorError] if only an operator can resolve it. The second result
// is true if the error is permanent. The parameter last is the newest error of the connection
// before the attempt. If the connection has another error now, that may be why no server answered.
func (e *engine) explain(err, last error) (explained error, stays bool) {
	if err == nil || errors.Is(err, replica.ErrOperator) {
		return err, true
	}
	if r, ok := remedyOf(err); ok {
		return &operatorError{"stream " + e.stream + ": " + r.text, err}, !r.mayPass
	}
	if !passing(err) && !closed(err) {
		return err, true
	}
	nc := e.js.Conn()
	now := nc.LastError()
	switch {
	case nc.IsClosed() && now != nil:
		return &operatorError{"the connection is closed and cannot be reopened: " + refusal(now, "connect again, with nats.MaxReconnects(-1)"), join(err, now)}, true
	case nc.IsClosed():
		return &operatorError{"the connection is closed: connect again", err}, true
	case !nc.IsConnected() && refusal(now, "") != "":
		return &operatorError{"no server lets this machine in: " + refusal(now, ""), join(err, now)}, false
	case errors.Is(now, nats.ErrPermissionViolation) && !errors.Is(now, last) && e.concerns(now.Error()):
		return &operatorError{"the login lacks a right, see the documentation of natslog: grant it", join(err, now)}, true
	case errors.Is(err, nats.ErrNoResponders):
		return &operatorError{"no server that is reached has JetStream for the account of the login: set jetstream: enabled for the account", err}, false
	}
	return err, false
}

// join joins two errors in one line of text.
func join(err, more error) error { return fmt.Errorf("%w: %w", err, more) }

// closed reports whether an error reports a closed connection.
func closed(err error) bool {
	return errors.Is(err, nats.ErrConnectionClosed) || errors.Is(err, jetstream.ErrConnectionClosed)
}

// refusal returns advice for a known reason of a failed connection. For any other error, it returns
// the second argument.
func refusal(err error, otherwise string) string {
	if err == nil {
		return otherwise
	}
	text := strings.ToLower(err.Error()) // nats.go reports these errors in several types.
	for _, refused := range []string{"authorization violation", "authentication expired", "authentication revoked"} {
		if strings.Contains(text, refused) {
			return "renew the credentials of the login"
		}
	}
	if errors.As(err, new(*tls.CertificateVerificationError)) || errors.As(err, new(x509.CertificateInvalidError)) ||
		errors.As(err, new(x509.UnknownAuthorityError)) || errors.As(err, new(x509.HostnameError)) {
		return "renew the certificate of the server, or trust its issuer"
	}
	if strings.Contains(text, "remote error: tls: ") {
		return "renew the certificate of this machine, or make the servers trust its issuer"
	}
	return otherwise
}

// concerns reports whether the text of a permission violation names a request that the log needs.
func (e *engine) concerns(violation string) bool {
	_, subject, _ := strings.Cut(violation, `"`)
	subject, _, _ = strings.Cut(subject, `"`)
	if strings.Contains(strings.ToLower(violation), "for subscription") {
		prefix, _, _ := strings.Cut(e.js.Conn().NewInbox(), ".")
		return strings.HasPrefix(subject, prefix)
	}
	if request, ok := strings.CutPrefix(subject, e.api("")); ok {
		switch {
		case strings.HasPrefix(request, "CONSUMER.CREATE."):
			return strings.HasSuffix(request, "."+e.subject)
		case strings.HasPrefix(request, "DIRECT.GET."), strings.HasPrefix(request, "CONSUMER.DELETE."):
			return false
		}
		return strings.Contains(request+".", "."+e.stream+".")
	}
	return e.subject != "" && subject == e.subject
}
