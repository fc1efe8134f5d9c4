// Package benchmarks implements two published suites of ECS benchmarks with package ecs. Its
// figures can be compared with those of other libraries:
//
//	BenchmarkGo    go-ecs-benchmarks: ns per entity, for 1 to 1 000 000 entities
//	BenchmarkRust  ecs_bench_suite: µs per repetition, for the sizes of the suite
//
// The package has only tests. docs/BENCHMARKS.md has the figures, and says how to measure them
// again.
//
// Some benchmarks are written in several forms, such as a query by All and by Runs. Each form is
// timed without checkpoints, and with a new checkpoint before every repetition. With a checkpoint,
// each write also saves the old value.
//
// At its end, every benchmark checks the state of the world.
package benchmarks
