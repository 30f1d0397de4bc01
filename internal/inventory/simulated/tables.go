package simulated

import (
	"context"
	"fmt"
	"syscall"
	"time"

	"rdma_exporter/internal/restrack"
	profile "rdma_exporter/verbs/simulated"
)

// Devices returns the device, unless the kernel does not know it.
func (h *Host) Devices(ctx context.Context) ([]restrack.Device, error) {
	if h.device == nil {
		return nil, ctx.Err()
	}
	return []restrack.Device{{Index: index, Name: h.device.Name}}, ctx.Err()
}

// Summary returns how many objects of each type there are, save of those types of
// which there is no table.
func (h *Host) Summary(ctx context.Context, device uint32) ([]restrack.Count, error) {
	if err := h.known(device); err != nil {
		return nil, err
	}
	var counts []restrack.Count
	for _, t := range restrack.Types() {
		if h.fault(t) == profile.TableNotSupported {
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

// Dump visits each object of a type. The object is Dump's, and another at each call.
// If the profile has the table hang, Dump never returns, not even if ctx ends.
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
	case profile.TableInterrupted:
		return fmt.Errorf("the table of %s: %w", t, restrack.ErrInterrupted)
	case profile.TableTimeout:
		<-ctx.Done()
	}
	return ctx.Err()
}

// Get returns one object. The error matches ENOENT if there is none with that id.
func (h *Host) Get(ctx context.Context, device uint32, t restrack.Type, id uint32) (restrack.Object, error) {
	if err := h.ask(device, t); err != nil {
		return restrack.Object{}, err
	}
	for i := range h.batches {
		b := &h.batches[i]
		// What is before the first wraps around, and is no less than there are.
		if n := id - b.first[t]; n < b.objects[t] {
			return b.object(t, n), ctx.Err()
		}
	}
	return restrack.Object{}, fmt.Errorf("%s %d: %w", t, id, syscall.ENOENT)
}

// known returns an error if there is no such device.
func (h *Host) known(device uint32) error {
	if h.device == nil || device != index {
		return fmt.Errorf("device %d: %w", device, syscall.ENODEV)
	}
	return nil
}

// ask returns an error if the kernel would not begin to answer, and does not return
// if it would neither.
func (h *Host) ask(device uint32, t restrack.Type) error {
	if err := h.known(device); err != nil {
		return err
	}
	switch h.fault(t) {
	case profile.TableNotSupported:
		return fmt.Errorf("the table of %s: %w", t, restrack.ErrNotSupported)
	case profile.TableFailed:
		return fmt.Errorf("the table of %s: %w", t, syscall.EIO)
	case profile.TableHang:
		// Rather than wait for nothing, which the runtime would take for a deadlock.
		for {
			time.Sleep(time.Hour)
		}
	}
	return nil
}

// fault returns how reading a table goes wrong; empty if it does not.
func (h *Host) fault(t restrack.Type) string { return h.device.Resources.Incomplete[t.String()] }
