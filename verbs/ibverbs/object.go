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

func (o *object) base() *object { return o }

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

// call calls a verb, unless the object is closed.
func (o *object) call(v verbs.Verb, f func(ns *C.int64_t) C.int) error {
	if err := o.use(); err != nil {
		return err
	}
	return o.dev.trace(v, f)
}

// create calls a verb that creates an object by way of another one, and returns what was made.
func create[T any](by *object, v verbs.Verb, made T, f func(ns *C.int64_t) C.int) (result T, err error) {
	if err := by.call(v, f); err != nil {
		return result, err
	}
	by.dev.live++
	return made, nil
}

// destroy closes the object with a verb, and then calls gone, which may be nil. If the verb is
// refused, the object stays open.
func (o *object) destroy(v verbs.Verb, gone func(), f func(ns *C.int64_t) C.int) error {
	if o.closed {
		return nil
	}
	if err := o.dev.trace(v, f); err != nil {
		return err
	}
	o.closed = true
	o.dev.live--
	if gone != nil {
		gone()
	}
	return nil
}

// own returns an object as its type, and adds it to those used. It reports whether the object
// is nil or one of the device.
func own[T interface {
	comparable
	base() *object
}](d *device, o any, used *[]*object) (result T, ok bool) {
	if o == nil {
		return result, true
	}
	var none T
	if result, ok = o.(T); !ok || result == none || result.base().dev != d {
		return none, false
	}
	*used = append(*used, result.base())
	return result, true
}

// invalid returns the error for an argument that must not reach C.
func (d *device) invalid(v verbs.Verb, format string, args ...any) error {
	return &verbs.Error{Verb: v, Device: d.name, Errno: syscall.EINVAL, Detail: fmt.Errorf(format, args...)}
}
