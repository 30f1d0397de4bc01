package verbstest

import (
	"errors"
	"testing"

	"rdma_exporter/verbs"
)

// backing tests memory regions of buffers that are made of something in particular. What
// the host does not have, and a dma-buf that the device does not take, is passed over.
func (s *suite) backing(t *testing.T) {
	for _, b := range verbs.Backings() {
		s.run(t, string(b.Verb()), func(t *testing.T, d *device) {
			p := d.mustPD()
			for range 2 {
				m, err := p.RegMRBackedBy(b, verbs.HugePageSize, access)
				if err != nil {
					if !errors.Is(err, verbs.ErrNoBacking) && (b != verbs.BackingDMABuf || !verbs.IsNotSupported(err)) {
						t.Fatalf("backing %d: %v", b, err)
					}
					t.Logf("backing %d: %v", b, err)
					continue
				}
				buf := m.Bytes()
				if len(buf) != verbs.HugePageSize {
					t.Fatalf("backing %d: %d bytes", b, len(buf))
				}
				buf[0], buf[len(buf)-1] = 1, 1
				if sge := m.SGE(0, len(buf)); sge.Length != verbs.HugePageSize || sge.Addr == 0 {
					t.Errorf("backing %d: SGE %+v", b, sge)
				}
				m.mustClose()
				m.mustClose()
			}
		})
	}
	s.run(t, "invalid size", func(t *testing.T, d *device) {
		p := d.mustPD()
		for _, tc := range []struct {
			b    verbs.Backing
			size int
		}{
			{verbs.BackingPages, 0},
			{verbs.BackingPages, -1},
			{verbs.BackingHugePages, verbs.HugePageSize - 1},
			{verbs.BackingHugePages, 0},
			{verbs.BackingDMABuf, 1},
			{-1, 4096},
			{99, 4096},
		} {
			if _, err := p.RegMRBackedBy(tc.b, tc.size, access); err == nil || errors.Is(err, verbs.ErrNoBacking) {
				t.Errorf("%d bytes of backing %d: %v", tc.size, tc.b, err)
			}
		}
	})
}
