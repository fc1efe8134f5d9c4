package benchmarks

import (
	"flag"
	"fmt"
	"testing"
)

// The benchmarks of github.com/mlange-42/go-ecs-benchmarks.
var goSuite = []definition{
	{name: "query2comp", forms: queries(query2comp)},
	{name: "query32arch", forms: queries(query32arch)},
	{name: "query256arch", forms: queries(query256arch)},
	{name: "random", forms: []form{{"get", random}}},
	{name: "create2comp", forms: []form{{"each", create2comp}}},
	{name: "create10comp", forms: []form{{"each", create10comp}}},
	{name: "add_remove", forms: []form{{"each", addRemove}}},
	{name: "add_remove_large", forms: []form{{"each", addRemoveLarge}}},
	{name: "delete2comp", forms: []form{{"each", delete2comp}}},
	{name: "delete10comp", forms: []form{{"each", delete10comp}}},
	{name: "new_world", forms: []form{{"each", newWorld}}, sizes: []int{1}, untracked: true},
}

var goSizes = []int{1, 4, 16, 64, 256, 1024, 16_000, 256_000, 1_000_000}

var most = flag.Int("most", 1_000_000, "the largest `number` of entities that BenchmarkGo takes; with -short 16000")

func (d *definition) sizesUpTo(most int) (sizes []int) {
	all := d.sizes
	if all == nil {
		all = goSizes
	}
	for _, n := range all {
		if n <= most {
			sizes = append(sizes, n)
		}
	}
	return sizes
}

func sizeName(n int) string {
	switch {
	case n >= 1_000_000:
		return fmt.Sprintf("%dM", n/1_000_000)
	case n >= 1000:
		return fmt.Sprintf("%dk", n/1000)
	}
	return fmt.Sprint(n)
}

func BenchmarkGo(b *testing.B) {
	limit := *most
	if testing.Short() {
		limit = min(limit, 16_000)
	}
	for _, d := range goSuite {
		for _, n := range d.sizesUpTo(limit) {
			d.each(b, "/"+sizeName(n), n, float64(n), "ns/entity")
		}
	}
}
