// Package verbs describes RDMA verbs as Go types: small interfaces for the objects of
// libibverbs, plain values for their attributes, and typed errors. It contains no C.
// Package ibverbs implements it with libibverbs, package simulated in memory; both pass the
// suite of package verbstest.
//
// A child object holds its parents: a [QP] its [PD], CQs and [SRQ], a [CQ] its
// [CompChannel], and everything its [Device]. Close is explicit, and no finaliser destroys
// anything. After a successful Close, a further Close returns nil, and every other method an
// error that matches [ErrClosed]. After a refused Close the object is unchanged. A Device
// refuses to close while an object of it is open, because libibverbs would free memory that
// the object still uses.
//
// A [Provider] and everything opened or created with it must be used by one goroutine at a
// time. Only the [Tracer] may be called from another goroutine, during [Device].Measure.
//
// A verb that fails returns an [*Error]. errors.Is finds its [syscall.Errno] and, for EPERM
// and EACCES, [os.ErrPermission].
package verbs
