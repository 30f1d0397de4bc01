//go:build cgo && linux

package ibverbs

/*
#cgo CFLAGS: -D_GNU_SOURCE
#cgo LDFLAGS: -libverbs -ldl
#include "shim.h"
*/
import "C"

import (
	"errors"
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"rdma_exporter/verbs"
)

type provider struct {
	tracer verbs.Tracer
}

// New returns the provider of the host's RDMA devices. The tracer sees
// every verb; it may be nil.
func New(tracer verbs.Tracer) verbs.Provider {
	if tracer == nil {
		tracer = verbs.NopTracer{}
	}
	return &provider{tracer: tracer}
}

// Available returns nil: this build has libibverbs.
func Available() error { return nil }

// trace calls a verb between Begin and End and turns its errno into an error.
func trace(t verbs.Tracer, device string, v verbs.Verb, call func(ns *C.int64_t) C.int) error {
	var ns [2]C.int64_t
	t.Begin(v)
	errno := syscall.Errno(call(&ns[0]))
	t.End(verbs.Call{Verb: v, Began: time.Duration(ns[1]), Duration: time.Duration(ns[0]), Errno: errno})
	if errno != 0 {
		return &verbs.Error{Verb: v, Device: device, Errno: errno}
	}
	return nil
}

// Open implements verbs.Provider (ibv_open_device).
func (p *provider) Open(name string) (verbs.Device, error) {
	var list **C.struct_ibv_device
	var n C.int
	err := trace(p.tracer, "", verbs.GetDeviceList, func(ns *C.int64_t) C.int {
		return C.shim_get_device_list(&list, &n, ns)
	})
	if err != nil {
		return nil, err
	}
	defer C.ibv_free_device_list(list)
	var ctx *C.struct_ibv_context
	err = trace(p.tracer, name, verbs.OpenDevice, func(ns *C.int64_t) C.int {
		for _, dev := range unsafe.Slice(list, n) {
			if C.GoString(C.ibv_get_device_name(dev)) == name {
				return refusal(dev, C.shim_open_device(dev, &ctx, ns))
			}
		}
		return C.int(syscall.ENODEV) // what is not listed cannot be opened
	})
	if err != nil {
		return nil, err
	}
	return newDevice(name, ctx, p.tracer), nil
}

// refusal returns the errno of ibv_open_device. A node that may not be opened makes libibverbs look
// for the same device in /dev/char. Where that is missing, as in most containers, the refusal becomes
// ENOENT; the node itself tells it from a node that is not there.
func refusal(dev *C.struct_ibv_device, errno C.int) C.int {
	if syscall.Errno(errno) != syscall.ENOENT {
		return errno
	}
	var refused syscall.Errno
	fd, err := unix.Open("/dev/infiniband/"+C.GoString(&dev.dev_name[0]), unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err == nil {
		_ = unix.Close(fd) // nothing was written
	} else if errors.As(err, &refused) && refused.Is(os.ErrPermission) {
		return C.int(refused)
	}
	return errno
}
