package dump

import (
	"regexp"
	"slices"
	"strings"
)

// This file hides the passwords and tokens in URLs. take() removes them from the command line
// first. findFiles adds them again, but only to open the URL. So they never appear in the output.
// For example, nats://user:password@host/world is printed as nats://host/world.

// secrets maps a URL without its secret to the secret: "name:password", a token, or "" for none.
type secrets map[string]string

// withSecret matches a URL. Its second group is the secret, which may contain an @.
var withSecret = regexp.MustCompile(`(?s)^([a-z][a-z0-9+.-]*://)(?:(.*)@)?(.*)$`)

// take returns the arguments without the secrets. It returns an error for two URLs that differ only
// in their secrets.
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
