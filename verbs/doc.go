// Package verbs describes RDMA verbs as Go types: small interfaces for the
// objects of libibverbs, plain values for their attributes, and typed errors.
//
// It contains no C and builds everywhere. Package verbs/ibverbs implements it
// with the system's libibverbs, package verbs/simulated with devices that exist
// in memory only; package verbs/verbstest holds the one suite that both pass.
//
// # Ownership
//
// A child object holds its parents: a [QP] its [PD], its CQs and its [SRQ], a
// [CQ] its [CompChannel], and everything its [Device]. Nothing is ever destroyed
// by a finaliser. Close is explicit: it asks the device to destroy the object
// and reports what the device answered. After a successful Close, a further
// Close returns nil and every other method an error that matches [ErrClosed].
// After a refused Close the object is as before and may be used or closed again.
// A Device refuses to close while any object of it is open, because libibverbs
// itself would free memory that they still use.
//
// # Concurrency
//
// A [Provider] and all that was opened and created by way of it are used by one
// goroutine at a time: no method waits for another, or keeps it out. The [Tracer] alone
// can be called from another goroutine, while that one is in [Device].Measure.
//
// # Errors
//
// A verb that fails returns an [*Error], from which errors.Is finds the
// [syscall.Errno] ([syscall.EBUSY], [syscall.ENOMEM], …) and, for EPERM and
// EACCES, [os.ErrPermission]. How libibverbs told of the failure (NULL and
// errno, a positive or a negative number, −1 and errno) makes no difference.
package verbs
