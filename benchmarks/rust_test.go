package benchmarks

import "testing"

// The benchmarks of github.com/rust-gamedev/ecs_bench_suite, except the benchmark of serialization.
var rustSuite = []definition{
	{name: "simple_insert", forms: []form{{"each", simpleInsert}}, sizes: []int{bodies}},
	{name: "simple_iter", forms: simpleIter, sizes: []int{bodies}},
	{name: "fragmented_iter", forms: fragmentedIter, sizes: []int{letters * lettersOfEach}},
	{name: "schedule", forms: schedule, sizes: []int{4 * bunch}},
	{name: "heavy_compute", forms: heavyCompute, sizes: []int{1000}},
	{name: "add_remove", forms: []form{{"each", addRemoveComponent}}, sizes: []int{10_000}},
}

func BenchmarkRust(b *testing.B) {
	for _, d := range rustSuite {
		d.each(b, "", d.sizes[0], 1000, "µs/op")
	}
}
