package simulated

import (
	"context"
	"fmt"
	"syscall"
	"time"

	"rdma_exporter/internal/restrack"
)

// Devices returns the device, unless the kernel does not know it.
func (h *Host) Devices(ctx context.Context) ([]restrack.Device, error) {
	if h.device == nil {
		return nil, ctx.Err()
	}
	return []restrack.Device{{Index: index, Name: h.device.Name}}, ctx.Err()
}

// Summary returns the number of objects of each type that has a table.
func (h *Host) Summary(ctx context.Context, device uint32) ([]restrack.Count, error) {
	if err := h.known(device); err != nil {
		return nil, err
	}
	var counts []restrack.Count
	for _, t := range restrack.Types() {
		if h.fault(t) == "not_supported" {
			continue
		}
		c := restrack.Count{Name: t.String()}
		for i := range h.batches {
			c.Objects += uint64(h.batches[i].objects[t])
		}
		counts = append(counts, c)
	}
	return counts, ctx.Err()
}

// Dump visits each object of a type. The object is valid during the call. If the table hangs by the
// profile, Dump never returns, not even if ctx ends.
func (h *Host) Dump(ctx context.Context, device uint32, t restrack.Type, visit func(*restrack.Object) error) error {
	if err := h.ask(device, t); err != nil {
		return err
	}
	var o restrack.Object
	for i := range h.batches {
		b := &h.batches[i]
		for n := range b.objects[t] {
			if err := ctx.Err(); err != nil {
				return fmt.Errorf("the table of %s: %w", t, err)
			}
			o = b.object(t, n)
			if err := visit(&o); err != nil {
				return err
			}
		}
	}
	switch h.fault(t) {
	case "interrupted":
		return fmt.Errorf("the table of %s: %w", t, restrack.ErrInterrupted)
	case "timeout":
		<-ctx.Done()
	}
	return ctx.Err()
}

// Get returns one object. The error matches ENOENT if there is none with this id.
func (h *Host) Get(ctx context.Context, device uint32, t restrack.Type, id uint32) (restrack.Object, error) {
	if err := h.ask(device, t); err != nil {
		return restrack.Object{}, err
	}
	for i := range h.batches {
		b := &h.batches[i]
		// Ids before the first wrap around, and are too large.
		if n := id - b.first[t]; n < b.objects[t] {
			return b.object(t, n), ctx.Err()
		}
	}
	return restrack.Object{}, fmt.Errorf("%s %d: %w", t, id, syscall.ENOENT)
}

func (h *Host) known(device uint32) error {
	if h.device == nil || device != index {
		return fmt.Errorf("device %d: %w", device, syscall.ENODEV)
	}
	return nil
}

// ask returns the error with which the kernel answers. If it would hang, ask does not return.
func (h *Host) ask(device uint32, t restrack.Type) error {
	if err := h.known(device); err != nil {
		return err
	}
	switch h.fault(t) {
	case "not_supported":
		return fmt.Errorf("the table of %s: %w", t, restrack.ErrNotSupported)
	case "failed":
		return fmt.Errorf("the table of %s: %w", t, syscall.EIO)
	case "hang":
		// The runtime would report a wait without a timer as a deadlock.
		for {
			time.Sleep(time.Hour)
		}
	}
	return nil
}

// fault returns how reading a table fails. Empty means that it does not.
func (h *Host) fault(t restrack.Type) string { return h.device.Resources.Incomplete[t.String()] }
