package dump

import (
	"cmp"
	"runtime"
	"runtime/debug"
	"time"
)

// --version prints the build information that the Go toolchain stores in a binary.

// versionDoc is what --version --json prints: which program this is.
type versionDoc struct {
	Program  string     `json:"program"`            // The path of its main package.
	Version  string     `json:"version"`            // Of its module; (devel): it was built from a directory.
	Revision string     `json:"revision,omitempty"` // Of the source, if the build noted it.
	Modified bool       `json:"modified,omitempty"` // The source had changes that are in no revision.
	Time     *time.Time `json:"time,omitempty"`     // Of the revision.
	Go       string     `json:"go"`                 // The version of Go that it was built with.
	System   string     `json:"system"`             // What it was built for, as in linux/amd64.
}

// version returns the build information of this program.
func version() *versionDoc {
	doc := &versionDoc{Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = new(debug.BuildInfo)
	}
	doc.Program, doc.Version = info.Path, cmp.Or(info.Main.Version, "(devel)")
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			doc.Revision = s.Value
		case "vcs.modified":
			doc.Modified = s.Value == "true"
		case "vcs.time":
			if t, err := time.Parse(time.RFC3339, s.Value); err == nil {
				doc.Time = &t
			}
		}
	}
	return doc
}

func (d *versionDoc) print(a *app) {
	revision := joined(" ", d.Revision, map[bool]string{true: "with changes"}[d.Modified])
	if revision != "" {
		revision = "revision " + revision
	}
	a.Line("ecsdump %s", joined(", ", d.Version, revision, d.Go, d.System))
}
