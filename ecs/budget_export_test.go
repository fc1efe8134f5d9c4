package ecs

// Unclear reverts a Clear of n rows. Nothing may have changed since the Clear. Benchmarks use
// Unclear to measure Clear alone.
func (s *Storage[T]) Unclear(n int) { s.rows.N = n }
