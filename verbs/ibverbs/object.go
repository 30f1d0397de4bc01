//go:build cgo && linux

package ibverbs

// #include "shim.h"
import "C"

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"syscall"

	"rdma_exporter/verbs"
)

// object is what all objects have in common: a use of it and its destruction
// exclude each other.
type object struct {
	kind string
	dev  *device
	// order is when the object was created, among those of its device.
	order uint64

	mu     sync.RWMutex
	closed bool
}

// use keeps the object from being destroyed until done is called. It fails if
// the object is closed; done must not be called then.
func (o *object) use() error {
	o.mu.RLock()
	if o.closed {
		o.mu.RUnlock()
		return fmt.Errorf("%s of %s: %w", o.kind, o.dev.name, verbs.ErrClosed)
	}
	return nil
}

func (o *object) done() { o.mu.RUnlock() }

// useAll is use for several objects of one device at once. A read lock waits
// behind a Close that waits, so an object that is given twice is locked once, and
// all are locked in the order of their creation: otherwise two callers, each
// behind the Close of what the other holds, would wait for ever.
func useAll(objects ...*object) (done func(), err error) {
	slices.SortFunc(objects, func(a, b *object) int { return cmp.Compare(a.order, b.order) })
	objects = slices.Compact(objects)
	for i, o := range objects {
		if err := o.use(); err != nil {
			releaseAll(objects[:i])
			return nil, err
		}
	}
	return func() { releaseAll(objects) }, nil
}

func releaseAll(objects []*object) {
	for _, o := range objects {
		o.done()
	}
}

// destroy closes the object with a verb. If the verb is refused, the object
// stays open.
func (o *object) destroy(v verbs.Verb, call func(ns *C.int64_t) C.int) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.destroyLocked(v, call)
}

// destroyLocked is destroy for a caller that holds o.mu.
func (o *object) destroyLocked(v verbs.Verb, call func(ns *C.int64_t) C.int) error {
	if o.closed {
		return nil
	}
	if err := o.dev.trace(v, call); err != nil {
		return err
	}
	o.closed = true
	o.dev.forget()
	return nil
}

// invalid returns the error for an argument that must not reach C.
func (d *device) invalid(v verbs.Verb, format string, args ...any) error {
	return &verbs.Error{Verb: v, Device: d.name, Errno: syscall.EINVAL, Detail: fmt.Errorf(format, args...)}
}
