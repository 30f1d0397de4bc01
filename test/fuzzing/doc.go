// Package fuzzing holds tools/fuzz to what it promises. Its tests have the build tag fuzzing:
// they wait for what hangs, and concern nothing but that script. make test-fuzz runs them.
package fuzzing
