package describe

import (
	"fmt"

	"github.com/stet-ecs/stet/internal/build"
)

// Builds describes the programs and machines that wrote two states, if these differ.
type Builds struct {
	Old string `json:"old"`
	New string `json:"new"`
	// Floats reports whether float results may differ between the two builds: see docs/MACHINES.md.
	Floats bool `json:"floats"`
}

// BuildsOf returns the builds that wrote two states. It returns nil if the builds are equal, or if
// a build is unknown.
func BuildsOf(before, after string) *Builds {
	if before == "" || after == "" || before == after {
		return nil
	}
	return &Builds{before, after, build.Floats(before) != build.Floats(after)}
}

// Line describes the builds of two states in one line. The arguments are the names of the two
// states in the text. If b is nil, Line returns "".
func (b *Builds) Line(before, after string) string {
	if b == nil {
		return ""
	}
	floats := "results of floats may differ"
	if !b.Floats {
		floats = "results of floats are the same"
	}
	return fmt.Sprintf("different builds: %s by %s, %s by %s; %s, see docs/MACHINES.md", before, b.Old, after, b.New, floats)
}
