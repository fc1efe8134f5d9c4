package dump

import (
	"regexp"
	"slices"
	"strings"
)

// Secrets of URLs are taken out of the command line before anything else sees it, and put back
// where a URL is opened, by this program or a command that bisect runs, so that no error, title or
// suggested command can show one.
//
//	nats://user:password@host/world ──▶ take ──▶ nats://host/world ──▶ whole, in app.find

// A secrets has what was taken out of URLs, by what is left of them: a name and a password, or a token. What
// is printed, served and suggested for pasting has only what is left. A URL without any has "".
type secrets map[string]string

// withSecret is a URL, perhaps with something in front of its host, up to the last @: passwords may
// have others.
var withSecret = regexp.MustCompile(`(?s)^([a-z][a-z0-9+.-]*://)(?:(.*)@)?(.*)$`)

// take returns the arguments of a call without the secrets in them. Two URLs that differ in nothing
// else are an error: they may lead to different stores, and nobody could tell one from the other.
func (s secrets) take(args []string) (rest []string, err error) {
	rest = slices.Clone(args)
	for i, arg := range args {
		m := withSecret.FindStringSubmatch(arg)
		if m == nil {
			continue
		}
		rest[i] = m[1] + m[3]
		if was, ok := s[rest[i]]; ok && was != m[2] && err == nil {
			err = fail(exitUsage, "", "%s is given twice, with different names or passwords: the two could not be told apart; copy one of them to a file first", rest[i])
		}
		s[rest[i]] = m[2]
	}
	return rest, err
}

// whole returns a URL as it was given.
func (s secrets) whole(url string) string {
	secret := s[url]
	if secret == "" {
		return url
	}
	return strings.Replace(url, "://", "://"+secret+"@", 1)
}
