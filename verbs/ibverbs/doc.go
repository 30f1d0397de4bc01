// Package ibverbs implements package verbs with the system's libibverbs. It is
// the only package of the module that contains C.
//
// libibverbs is linked dynamically, because its providers are plug-ins of the
// system's release. Where cgo is off, the package still builds, and its
// provider answers every call with an error that matches verbs.ErrUnavailable.
//
// A process that holds objects of a device can keep the device from being
// removed, and a hang or crash of a provider library takes the process with it.
// Long-lived processes should therefore not use this package but run a child
// that does.
package ibverbs
