// Package benchmarks times the definitions of two published suites on package ecs, so that its
// figures can be compared with those of other libraries:
//
//	BenchmarkGo    go-ecs-benchmarks: ns per entity, for 1 to 1 000 000 entities
//	BenchmarkRust  ecs_bench_suite: µs per repetition, for the sizes of the suite
//
// The package exports nothing; it consists of tests. docs/BENCHMARKS.md has the definitions, the
// figures, and instructions to measure them again.
//
// A definition can have several forms, such as a query by All and by Runs. Each form is timed
// twice: without checkpoints, and with a checkpoint before every repetition. With a checkpoint,
// each write saves the old value. The time then includes the release of the previous checkpoint and
// the creation of the new one.
//
// At its end, every benchmark checks that the world has the state that the definition requires.
package benchmarks
