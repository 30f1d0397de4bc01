// Package simulated provides RDMA devices that exist in memory only, without cgo.
//
// A [Profile], usually read from a YAML file, says which devices there are, what their
// objects cost, how long their verbs take and how they fail. [Default] has three devices.
//
// Work requests move bytes between registered memory regions of one device in one process,
// within the call that posts them. Simulated devices differ from real ones:
//   - A full CQ drops further completions and goes on working, without an event.
//   - RC reports a peer that does not answer, or has no receive, at once.
//   - A message that does not fit into the receive of a UC or UD queue pair is lost.
//   - iWARP queue pairs are connected with ibv_modify_qp, by QP number.
//
// Calls, completions and events are counted by each [Provider] in its own process, so that
// the faults of a child process begin again.
package simulated
