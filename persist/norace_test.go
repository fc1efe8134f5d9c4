//go:build !race

package persist_test

const raceDetector = false
