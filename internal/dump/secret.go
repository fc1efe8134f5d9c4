package dump

import (
	"regexp"
	"slices"
	"strings"
)

// Secrets of URLs are removed from the command line first. A secret is put back only where this
// program or a command of bisect opens the URL. So no error, title or suggested command can show a
// secret.
//
//	nats://user:password@host/world ──▶ take ──▶ nats://host/world ──▶ findFiles: the whole URL

// secrets maps a URL without its secret to the secret: a name and a password, or a token. Output,
// pages and suggested commands contain only such URLs. A URL without a secret maps to "".
type secrets map[string]string

// withSecret matches a URL. Its second group is everything up to the last @, because a password
// may contain an @.
var withSecret = regexp.MustCompile(`(?s)^([a-z][a-z0-9+.-]*://)(?:(.*)@)?(.*)$`)

// take returns the arguments with the secrets removed. Two URLs that differ only in their secrets
// are an error, because they could not be distinguished afterwards.
func (s secrets) take(args []string) (rest []string, err error) {
	rest = slices.Clone(args)
	for i, arg := range args {
		m := withSecret.FindStringSubmatch(arg)
		if m == nil {
			continue
		}
		rest[i] = m[1] + m[3]
		if was, ok := s[rest[i]]; ok && was != m[2] && err == nil {
			err = fail(exitUsage, "", "%s is given twice, with different names or passwords, and the output would not distinguish them: copy one to a file first", rest[i])
		}
		s[rest[i]] = m[2]
	}
	return rest, err
}

// whole returns url with its secret.
func (s secrets) whole(url string) string {
	secret := s[url]
	if secret == "" {
		return url
	}
	return strings.Replace(url, "://", "://"+secret+"@", 1)
}
