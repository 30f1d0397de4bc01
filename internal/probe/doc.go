// Package probe opens one RDMA device, creates small objects on it, compares requested with
// actual sizes, and reports its results line by line. There is one file per man page of
// libibverbs, and several for the measurement of completion notification.
//
// It runs in a process of its own that may hang, crash or be killed at any moment: each verb
// is named in the report before it is called, and no object outlives the process.
package probe
