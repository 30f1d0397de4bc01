// Package simulated is a provider of RDMA devices that exist in memory only. It
// needs no hardware, no kernel module and no cgo.
//
// A [Profile], usually read from a YAML file, says which devices there are, how
// they round the sizes that they are asked for, what their objects cost, how
// long their verbs take and how they fail. The profile of [Default] has three
// devices; its file, default.yaml, documents every key. [New] makes a
// [Provider] of a profile. The files in the folder profiles are adapters of each
// provider, which answer as its source has it.
//
// # What is simulated
//
// Objects form the tree that libibverbs documents, and their destruction is
// refused with EBUSY while others use them. Queue pairs go the way
// from RESET to RTS that the InfiniBand specification has, with the attributes that it
// requires, and from everywhere to RESET and ERR; not by way of SQD.
// Work requests move real bytes between registered memory regions, but only
// between queue pairs of one device in one process: there is no network. A work
// request is executed within the call that posts it.
//
// Completions, flushing, solicited events, one-shot arming, the steering of
// events to channels and their acknowledgement are as the man pages have them.
//
// Measurements ([verbs.Device].Measure) take the same steps as those of real
// devices. The times that they find are drawn from a distribution of the profile
// ([CompletionLatency]), since what the simulation takes is that of Go's
// scheduler; they do pass before the measurement ends.
//
// What differs from real devices:
//   - A CQ that is full drops further completions and goes on working. A real
//     device would raise an asynchronous event; the only one here is that of the
//     limit of an SRQ.
//   - The slot of a signalled send is free again once its completion was polled;
//     that of an unsignalled one as soon as it is executed.
//   - RC reports a peer that does not answer, or has no receive, at once instead of
//     after its retries.
//   - A message that does not fit into the receive of a UC or UD queue pair is
//     lost without a trace.
//   - A message of an SRD queue pair that finds no receive fails at once, instead of
//     being sent again for some time.
//   - iWARP queue pairs are connected with ibv_modify_qp, by QP number, rather
//     than by a connection manager.
//
// # Faults
//
// A fault makes calls of one verb on one device fail, come up short, take long,
// hang for ever or kill the process. Its calls are counted by each [Provider]
// for itself, in this process: a child process counts from the start again, and
// so does a second Provider of the same profile.
//
// A [CompletionFault] has completions or their events go wrong: be lost, come
// late, go astray, or come where none is due. They are counted likewise.
//
// # Broken contracts
//
// A device can be made to break what the manual promises: [Contracts] lists the
// promises, DeviceProfile.Violate those that a device breaks. It breaks them in a
// way that a program sees which relies on them. Each is broken alone: the others
// can still be seen to hold, unless what shows them is what is broken. On a device
// that breaks notify_solicited_delivers_solicited, say, who waits for a solicited
// event to see something else sees nothing. An unsuccessful completion of a CQ
// that is armed for any raises an event whatever is broken, and if there is no
// second channel with a CQ, on the right channel.
//
// # Resources
//
// What the kernel would tell of a device to whoever asks, of the objects of all
// processes, is in the profile, too: DeviceProfile.Resources. This package only
// checks it. Objects that are made here are not among them.
package simulated
