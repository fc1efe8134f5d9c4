//go:build !linux

package ecs_test

import "time"

var start = time.Now()

func now() time.Duration { return time.Since(start) }
