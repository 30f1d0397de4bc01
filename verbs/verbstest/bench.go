package verbstest

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"rdma_exporter/verbs"
)

// bench is what one subtest works on: a provider with a recorder, and all that
// the subtest opened.
type bench struct {
	t        *testing.T
	cfg      Config
	rec      *recorder
	provider verbs.Provider
	handles  []*handle
}

// newBench returns a bench that is cleared away when t ends.
func newBench(t *testing.T, cfg Config) *bench {
	t.Helper()
	b := &bench{t: t, cfg: cfg, rec: &recorder{}}
	b.provider = cfg.New(b.rec)
	if b.provider == nil {
		t.Fatal("New returned no provider")
	}
	late := time.AfterFunc(watchdog, func() {
		panic(fmt.Sprintf("verbstest: %s on %s hangs: inside %s", t.Name(), cfg.Device, b.rec.inside()))
	})
	t.Cleanup(func() {
		b.clear()
		late.Stop()
	})
	return b
}

// clear closes what is still open, newest first, and checks the record.
func (b *bench) clear() {
	b.t.Helper()
	for _, h := range slices.Backward(b.handles) {
		if h.closed {
			continue
		}
		if h.beforeClose != nil {
			h.beforeClose()
		}
		if err := h.Close(); err != nil {
			b.t.Errorf("closing the %s at the end: %v", h.kind, err)
		}
	}
	for _, fault := range b.rec.verdict() {
		b.t.Errorf("tracer: %s", fault)
	}
}

// open opens a device and fails the test if that fails.
func (b *bench) open(name string) *device {
	b.t.Helper()
	raw, err := observe(b, name, verbs.OpenDevice, func() (verbs.Device, error) { return b.provider.Open(name) })
	if err != nil {
		b.t.Fatalf("Open(%q): %v", name, err)
	}
	return &device{object: object[verbs.Device]{b.track("device", name, verbs.CloseDevice, raw.Close), raw}}
}

// track remembers an object so that it is closed at the end.
func (b *bench) track(kind, device string, destroy verbs.Verb, closeRaw func() error) *handle {
	h := &handle{b: b, kind: kind, device: device, destroy: destroy, closeRaw: closeRaw}
	b.handles = append(b.handles, h)
	return h
}

// handle is the part that all objects have in common: they can be closed.
type handle struct {
	b           *bench
	kind        string
	device      string
	destroy     verbs.Verb
	closeRaw    func() error
	beforeClose func()
	closed      bool
}

// Close closes the object. If it is closed already, that must be no error and
// must not reach the device.
func (h *handle) Close() error {
	h.b.t.Helper()
	if h.closed {
		mark := h.b.rec.mark()
		err := h.closeRaw()
		if err != nil {
			h.b.t.Errorf("closing the closed %s: %v, want nil", h.kind, err)
		}
		if n := len(h.b.rec.since(mark, h.destroy)); n > 0 {
			h.b.t.Errorf("closing the closed %s called %s", h.kind, h.destroy)
		}
		return err
	}
	err := h.b.call(h.device, h.destroy, h.closeRaw)
	if err == nil {
		h.closed = true
	}
	return err
}

// mustClose closes the object and reports a failure.
func (h *handle) mustClose() {
	h.b.t.Helper()
	if err := h.Close(); err != nil {
		h.b.t.Errorf("closing the %s: %v", h.kind, err)
	}
}

// closeAll closes objects in this order.
func closeAll(list ...*handle) {
	for _, h := range list {
		h.b.t.Helper()
		h.mustClose()
	}
}

// closed closes an object and returns it.
func closed[T interface{ mustClose() }](o T) T {
	o.mustClose()
	return o
}

// call runs one method, and checks that its error and the trace of its verb
// tell the same story.
func (b *bench) call(device string, verb verbs.Verb, method func() error) error {
	b.t.Helper()
	mark := b.rec.mark()
	err := method()
	b.checkError(device, verb, err)
	calls := b.rec.since(mark, verb)
	if err == nil {
		if len(calls) == 0 {
			b.t.Errorf("%s succeeded, but the tracer did not see it", verb)
		}
		for _, c := range calls {
			if c.Errno != 0 {
				b.t.Errorf("%s succeeded, but the tracer was told %s", verb, verbs.ErrnoName(c.Errno))
			}
		}
		return nil
	}
	if len(calls) == 0 {
		return err // refused without asking the device
	}
	if errors.Is(err, verbs.ErrClosed) {
		b.t.Errorf("the object is closed, yet %s was called", verb)
		return err
	}
	if errno, _ := verbs.ErrnoOf(err); calls[len(calls)-1].Errno != errno && !errors.Is(err, verbs.ErrTimeout) {
		b.t.Errorf("%s returned %v, but the tracer was told errno %d", verb, err, int(calls[len(calls)-1].Errno))
	}
	return err
}

// checkError checks the form of an error that a method returned.
func (b *bench) checkError(device string, verb verbs.Verb, err error) {
	b.t.Helper()
	if err == nil || errors.Is(err, verbs.ErrClosed) || errors.Is(err, verbs.ErrTimeout) {
		return
	}
	var e *verbs.Error
	if !errors.As(err, &e) {
		b.t.Errorf("%s: error %q is a %T, want a *verbs.Error", verb, err, err)
		return
	}
	if e.Verb != verb {
		b.t.Errorf("error %q names verb %s, want %s", err, e.Verb, verb)
	}
	if e.Device != device {
		b.t.Errorf("error %q names device %q, want %q", err, e.Device, device)
	}
	if e.Errno == 0 || e.Errno > maxErrno {
		b.t.Errorf("error %q has errno %d", err, int(e.Errno))
	}
	if !errors.Is(err, e.Errno) {
		b.t.Errorf("errors.Is does not find errno %d in %q", int(e.Errno), err)
	}
}

// observe is call for a method that returns something. With an error, an object
// that it returns must be nil, and without, it must not.
func observe[R any](b *bench, device string, verb verbs.Verb, method func() (R, error)) (R, error) {
	b.t.Helper()
	var result R
	err := b.call(device, verb, func() error {
		var err error
		result, err = method()
		return err
	})
	switch any(&result).(type) {
	case *verbs.Device, *verbs.PD, *verbs.MR, *verbs.AH, *verbs.CompChannel, *verbs.CQ, *verbs.SRQ, *verbs.QP:
		if err == nil && any(result) == nil {
			b.t.Fatalf("%s: no error and no object", verb)
		}
		if err != nil && any(result) != nil {
			b.t.Errorf("%s: an error and an object (%T)", verb, result)
		}
	}
	return result, err
}
