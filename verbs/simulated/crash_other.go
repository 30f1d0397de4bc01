//go:build !linux

package simulated

// defaultAbort does nothing: here the process ends by the handler of Go's
// runtime, with status 2.
func defaultAbort() {}
