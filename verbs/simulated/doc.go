// Package simulated provides RDMA devices that exist in memory only. It needs no hardware,
// no kernel module and no cgo.
//
// A [Profile], usually read from a YAML file, says which devices there are, what their
// objects cost, how long their verbs take and how they fail. [Default] has three devices.
// docs/reference/simulator.md describes the keys.
//
// Objects form the tree that libibverbs documents. Queue pairs go from RESET to RTS, and
// from each state to RESET and ERR, but not by way of SQD. Work requests move bytes between
// registered memory regions of one device in one process. They are executed within the call
// that posts them. The times that [verbs.Device].Measure finds are drawn from a distribution
// of the profile ([CompletionLatency]).
//
// Simulated devices differ from real ones:
//   - A full CQ drops further completions and goes on working, without an event.
//   - The slot of a signalled send is free once its completion was polled, that of an
//     unsignalled one as soon as it is executed.
//   - RC reports a peer that does not answer, or has no receive, at once.
//   - A message that does not fit into the receive of a UC or UD queue pair is lost.
//   - iWARP queue pairs are connected with ibv_modify_qp, by QP number.
//
// Calls, completions and events are counted by each [Provider] in its own process, so that
// the faults of a child process begin again.
package simulated
