// Package benchmarks times the definitions of two published suites on package
// ecs, so that its figures stand beside those of others:
//
//	BenchmarkGo    go-ecs-benchmarks: ns per entity, for 1 to 1 000 000 entities
//	BenchmarkRust  ecs_bench_suite: µs per repetition, of the sizes it names
//
// There is nothing to import; all of it is in tests. docs/BENCHMARKS.md has the
// definitions, the figures, and how to take them again.
//
// A definition can have several forms, such as a query by All and by Runs. Each
// is timed without a frame, and with a checkpoint before every repetition: then
// everything that it writes is saved, and releasing the checkpoint before and
// taking the new one counts as part of it.
//
// Every benchmark checks at its end that the world is what the definition leaves.
package benchmarks
