package verbstest

import (
	"syscall"
	"testing"

	"rdma_exporter/verbs"
)

// devices tests opening and closing devices.
func (s *suite) devices(t *testing.T) {
	for _, name := range []string{"no_such_device", "", s.cfg.Device + "x", s.cfg.Device + "\x00x"} {
		s.runUnopened(t, "open unknown", func(t *testing.T, b *bench) {
			_, err := observe(b, name, verbs.OpenDevice, func() (verbs.Device, error) { return b.provider.Open(name) })
			wantErrno(t, "Open", err, syscall.ENODEV)
		})
	}
	s.run(t, "open many", func(t *testing.T, d *device) {
		others := []*device{d.b.open(d.device), d.b.open(d.device)}
		d.mustClose()
		for _, d := range others {
			if _, err := d.Query(); err != nil {
				t.Errorf("Query after another was closed: %v", err)
			}
		}
	})
	s.run(t, "close", func(t *testing.T, d *device) {
		d.mustClose()
		d.mustClose()
		wantClosed(t, "Query", errorOf(d.Query()))
		wantClosed(t, "QueryPort", errorOf(d.QueryPort(1)))
		wantClosed(t, "GIDTable", errorOf(d.GIDTable()))
		wantClosed(t, "AllocPD", errorOf(d.AllocPD()))
		wantClosed(t, "CreateCompChannel", errorOf(d.CreateCompChannel()))
		wantClosed(t, "CreateCQ", errorOf(d.CreateCQ(verbs.CQInitAttr{Entries: 1})))
		wantClosed(t, "Cost", errorOf(d.raw.Cost(func() { t.Error("Cost called its function after Close") })))
		d.raw.Transport()
		d.raw.QPTypes()
		d.raw.CompletionVectors()
	})
}
