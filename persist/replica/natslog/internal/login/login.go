// Package login connects the programs of this module to servers.
package login

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

// Connect connects to one of the servers, whose URLs are separated by commas. A URL may have a user
// name and a password. The scheme tls of a URL requests TLS. The environment variables of the
// command nats provide other settings. The connection never stops retrying. Errors contain no
// secrets.
func Connect(servers string, more ...nats.Option) (*nats.Conn, error) {
	for _, server := range strings.Split(servers, ",") {
		if _, err := url.Parse(strings.TrimSpace(server)); err != nil {
			return nil, fmt.Errorf("a URL of a server: %w", Plain(err))
		}
	}
	options, err := fromEnvironment()
	if err != nil {
		return nil, err
	}
	options = append(options, nats.MaxReconnects(-1), nats.ReconnectWait(50*time.Millisecond), nats.ReconnectJitter(0, 0),
		nats.Timeout(2*time.Second), nats.PingInterval(500*time.Millisecond))
	nc, err := nats.Connect(servers, append(options, more...)...)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", Plain(err))
	}
	return nc, nil
}

// Plain returns the cause of an error about a URL. The result does not include the URL, which may
// have a password.
func Plain(err error) error {
	if at, ok := errors.AsType[*url.Error](err); ok {
		return at.Err
	}
	return err
}

// fromEnvironment returns the options of the environment variables.
func fromEnvironment() (options []nats.Option, err error) {
	get := os.Getenv
	if file := get("NATS_CREDS"); file != "" {
		options = append(options, nats.UserCredentials(file))
	}
	if file := get("NATS_NKEY"); file != "" {
		key, err := nats.NkeyOptionFromSeed(file)
		if err != nil {
			return nil, fmt.Errorf("NATS_NKEY: %s: %w", file, err)
		}
		options = append(options, key)
	}
	switch user, password := get("NATS_USER"), get("NATS_PASSWORD"); {
	case user != "" && password != "":
		options = append(options, nats.UserInfo(user, password))
	case user != "":
		options = append(options, nats.Token(user))
	}
	if file := get("NATS_CA"); file != "" {
		options = append(options, nats.RootCAs(file))
	}
	switch cert, key := get("NATS_CERT"), get("NATS_KEY"); {
	case cert != "" && key != "":
		options = append(options, nats.ClientCert(cert, key))
	case cert != "" || key != "":
		return nil, errors.New("NATS_CERT and NATS_KEY name a certificate and its key: set both")
	}
	return options, nil
}
