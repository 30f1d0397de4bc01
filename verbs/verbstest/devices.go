package verbstest

import (
	"slices"
	"syscall"
	"testing"

	"rdma_exporter/verbs"
)

// devices tests listing, opening and closing devices.
func (s *suite) devices(t *testing.T) {
	t.Run("list", func(t *testing.T) {
		b := newBench(t, s.cfg)
		first, err := observe(b, "", verbs.GetDeviceList, b.provider.Devices)
		if err != nil {
			t.Fatalf("Devices: %v", err)
		}
		if !slices.Contains(first, s.cfg.Device) {
			t.Fatalf("device %q is missing from %q", s.cfg.Device, first)
		}
		if !slices.IsSorted(first) {
			t.Errorf("Devices are not sorted: %q", first)
		}
		if n := len(slices.Compact(slices.Clone(first))); n != len(first) {
			t.Errorf("Devices has a name twice: %q", first)
		}
		want := slices.Clone(first)
		clear(first) // the caller's own
		second, err := observe(b, "", verbs.GetDeviceList, b.provider.Devices)
		if err != nil || !slices.Equal(second, want) {
			t.Errorf("Devices again: %q, %v; want %q", second, err, want)
		}
	})
	for _, name := range []string{"no_such_device", "", s.cfg.Device + "x", s.cfg.Device + "\x00x"} {
		t.Run("open unknown", func(t *testing.T) {
			b := newBench(t, s.cfg)
			_, err := observe(b, name, verbs.OpenDevice, func() (verbs.Device, error) { return b.provider.Open(name) })
			wantErrno(t, "Open", err, syscall.ENODEV)
		})
	}
	t.Run("open many", func(t *testing.T) {
		b := newBench(t, s.cfg)
		names, err := b.provider.Devices()
		if err != nil {
			t.Fatalf("Devices: %v", err)
		}
		var open []*device
		for range 3 {
			for _, name := range names {
				d := b.open(name)
				if got := d.raw.Name(); got != name {
					t.Errorf("Name = %q, want %q", got, name)
				}
				open = append(open, d)
			}
		}
		open[0].mustClose()
		for _, d := range open[1:] {
			if _, err := d.Query(); err != nil {
				t.Errorf("Query of %s after another was closed: %v", d.raw.Name(), err)
			}
		}
	})
	s.run(t, "close", func(t *testing.T, d *device) {
		d.mustClose()
		d.mustClose()
		_, err := d.Query()
		wantClosed(t, "Query", err)
		_, err = d.QueryPort(1)
		wantClosed(t, "QueryPort", err)
		_, err = d.GIDTable()
		wantClosed(t, "GIDTable", err)
		_, err = d.AllocPD()
		wantClosed(t, "AllocPD", err)
		_, err = d.CreateCompChannel()
		wantClosed(t, "CreateCompChannel", err)
		_, err = d.CreateCQ(verbs.CQInitAttr{Entries: 1})
		wantClosed(t, "CreateCQ", err)
		_, err = d.raw.Cost(func() { t.Error("Cost called its function after Close") })
		wantClosed(t, "Cost", err)
		if got := d.raw.Name(); got != s.cfg.Device {
			t.Errorf("Name after Close = %q", got)
		}
		d.raw.Transport()
		d.raw.QPTypes()
		d.raw.CompletionVectors()
	})
}
