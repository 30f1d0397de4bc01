// Package supervisor finds the RDMA devices of the host, schedules their runs (probes,
// contracts, inventories, hardware), runs one short-lived child process per run, and gives
// each finished run to its observers.
//
// The supervisor's process never opens a device, so a hang, a crash in a provider library or
// a leak ends with the child. A child that the kernel does not let end only keeps its own
// device from further runs.
//
// The package needs Linux.
package supervisor
