package dump

import (
	"cmp"
	"runtime"
	"runtime/debug"
	"time"
)

// --version prints the build information that the Go toolchain stores in a binary.

// versionDoc is what --version --json prints about the program.
type versionDoc struct {
	Program string `json:"program"` // Path of the main package.
	// Version of the main module; (devel) if it was built from a directory.
	Version string `json:"version"`
	// Revision of the source, if the build recorded it.
	Revision string `json:"revision,omitempty"`
	// True if the source had changes that are not in the revision.
	Modified bool       `json:"modified,omitempty"`
	Time     *time.Time `json:"time,omitempty"` // Time of the revision.
	Go       string     `json:"go"`             // Version of Go that built the program.
	// System and processor of the program, as in linux/amd64.
	System string `json:"system"`
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
