package dump

import (
	"regexp"
	"strings"
)

// A secrets has what was taken out of URLs, by what is left of them: a name and a password, or a token. What
// is printed, served and suggested for pasting has only what is left.
type secrets map[string]string

// withSecret is a URL with something in front of its host, up to the last @: passwords may have
// others.
var withSecret = regexp.MustCompile(`(?s)^([a-z][a-z0-9+.-]*://)(.*)@(.*)$`)

// take returns the arguments of a call without the secrets in them.
func (s secrets) take(args []string) []string {
	args = append([]string(nil), args...)
	for i, arg := range args {
		if m := withSecret.FindStringSubmatch(arg); m != nil {
			args[i] = m[1] + m[3]
			s[args[i]] = m[2]
		}
	}
	return args
}

// whole returns a URL as it was given.
func (s secrets) whole(url string) string {
	secret, ok := s[url]
	if !ok {
		return url
	}
	return strings.Replace(url, "://", "://"+secret+"@", 1)
}
