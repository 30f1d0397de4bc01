//go:build cgo && linux

package ibverbs

// #include "shim.h"
import "C"

import (
	"fmt"
	"syscall"

	"rdma_exporter/verbs"
)

// object is what all objects have in common.
type object struct {
	kind   string
	dev    *device
	closed bool
}

// use returns an error if the object is closed.
func (o *object) use() error {
	if o.closed {
		return fmt.Errorf("%s of %s: %w", o.kind, o.dev.name, verbs.ErrClosed)
	}
	return nil
}

// useAll is use for several objects.
func useAll(objects ...*object) error {
	for _, o := range objects {
		if err := o.use(); err != nil {
			return err
		}
	}
	return nil
}

// destroy closes the object with a verb. If the verb is refused, the object
// stays open.
func (o *object) destroy(v verbs.Verb, call func(ns *C.int64_t) C.int) error {
	if o.closed {
		return nil
	}
	if err := o.dev.trace(v, call); err != nil {
		return err
	}
	o.closed = true
	o.dev.live--
	return nil
}

// invalid returns the error for an argument that must not reach C.
func (d *device) invalid(v verbs.Verb, format string, args ...any) error {
	return &verbs.Error{Verb: v, Device: d.name, Errno: syscall.EINVAL, Detail: fmt.Errorf(format, args...)}
}
