//go:build race

package engine_test

// raceEnabled tells that the race detector slows everything down, and shuffles
// goroutines, so that a seed is not repeated exactly.
const raceEnabled = true
