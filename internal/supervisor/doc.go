// Package supervisor probes the RDMA devices of the host, holds them to the
// contracts of the manual and inventories them: it finds them, schedules their runs, runs one
// short-lived child process per device and run, and hands each finished run to
// its sinks.
//
// The process that the supervisor lives in never opens a device: a hang, a crash
// in a provider library or a leak ends with the child. A child that cannot even
// be killed, because the kernel holds it, costs its own device further runs and
// nobody else anything.
//
// The package needs Linux.
package supervisor
