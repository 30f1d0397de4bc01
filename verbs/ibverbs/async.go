//go:build cgo && linux

package ibverbs

// #include "shim.h"
import "C"

import (
	"fmt"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"rdma_exporter/verbs"
)

// AsyncEvent implements verbs.Device (ibv_get_async_event, ibv_ack_async_event).
func (d *device) AsyncEvent(timeout time.Duration) (verbs.AsyncEvent, error) {
	if err := d.use(); err != nil {
		return verbs.AsyncEvent{}, err
	}
	// ibv_get_async_event must never wait.
	if err := unix.SetNonblock(int(d.ctx.async_fd), true); err != nil {
		return verbs.AsyncEvent{}, fmt.Errorf("make asynchronous events of %s non-blocking: %w", d.name, err)
	}
	for deadline := time.Now().Add(timeout); ; {
		left := time.Until(deadline)
		ready, err := readable(d.ctx.async_fd, left)
		if err != nil {
			return verbs.AsyncEvent{}, fmt.Errorf("wait for an asynchronous event of %s: %w", d.name, err)
		}
		if ready {
			return d.takeAsync()
		}
		if left <= 0 {
			return verbs.AsyncEvent{}, fmt.Errorf("no asynchronous event of %s within %s: %w", d.name, timeout, verbs.ErrTimeout)
		}
	}
}

// takeAsync takes and acknowledges an event that is there: what it names cannot be
// destroyed before.
func (d *device) takeAsync() (verbs.AsyncEvent, error) {
	var c C.struct_ibv_async_event
	err := d.trace(verbs.GetAsyncEvent, func(ns *C.int64_t) C.int {
		return C.shim_get_async_event(d.ctx, &c, ns)
	})
	if err != nil {
		return verbs.AsyncEvent{}, err
	}
	e := verbs.AsyncEvent{Type: verbs.AsyncEventType(c.event_type)}
	switch {
	case e.Type.OfPort():
		e.Port = int(*(*C.int)(unsafe.Pointer(&c.element)))
	case e.Type.OfSRQ():
		if s := d.srqs[*(**C.struct_ibv_srq)(unsafe.Pointer(&c.element))]; s != nil {
			e.SRQ = s
		}
	}
	err = d.trace(verbs.AckAsyncEvent, func(ns *C.int64_t) C.int {
		C.shim_ack_async_event(&c, ns)
		return 0
	})
	return e, err
}
