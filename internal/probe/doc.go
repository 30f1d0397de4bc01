// Package probe opens one RDMA device, creates small objects on it, compares
// what was asked with what was given, and reports what it found line by line.
// There is one file per man page of libibverbs, and several for the measuring of
// completion notification.
//
// It is made to run in a process of its own that may hang, crash or be killed at
// any moment: each verb is named in the report before it is called, and nothing
// that the process holds outlives it.
package probe
