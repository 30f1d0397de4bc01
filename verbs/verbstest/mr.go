package verbstest

import (
	"bytes"
	"math"
	"testing"

	"rdma_exporter/verbs"
)

// mr tests memory regions.
func (s *suite) mr(t *testing.T) {
	for _, size := range []int{1, 4096, 4097, 1 << 20} {
		s.run(t, "size", func(t *testing.T, d *device) {
			p := d.mustPD()
			// The second region may get the memory of the first: it must be zero again.
			for range 2 {
				m := p.mustMR(size)
				b := m.Bytes()
				if len(b) != size {
					t.Fatalf("len(Bytes()) = %d, want %d", len(b), size)
				}
				if n := bytes.Count(b, []byte{0}); n != size {
					t.Fatalf("%d of %d bytes of the new region are not zero", size-n, size)
				}
				for i := range b {
					b[i] = 0xa5
				}
				if n := bytes.Count(m.Bytes(), []byte{0xa5}); n != size {
					t.Errorf("%d of %d bytes were not kept", size-n, size)
				}
				m.mustClose()
				m.mustClose()
			}
		})
	}
	s.run(t, "invalid size", func(t *testing.T, d *device) {
		p := d.mustPD()
		for _, size := range []int{0, -1, math.MinInt, math.MaxInt} {
			if _, err := p.RegMR(size, access); err == nil {
				t.Errorf("RegMR(%d) succeeded", size)
			}
		}
		p.mustMR(64)
	})
	s.run(t, "access", func(t *testing.T, d *device) {
		p := d.mustPD()
		for _, a := range []verbs.Access{0, verbs.AccessLocalWrite} {
			m, err := p.RegMR(64, a)
			if err != nil {
				t.Errorf("RegMR with access %#x: %v", uint32(a), err)
				continue
			}
			m.Bytes()[63] = 1 // the process itself may always write
		}
	})
	s.run(t, "SGE", func(t *testing.T, d *device) {
		m := d.mustPD().mustMR(100)
		whole := m.SGE(0, 100)
		if whole.Length != 100 {
			t.Errorf("SGE(0, 100) = %+v", whole)
		}
		part := m.SGE(30, 20)
		if part.Addr != whole.Addr+30 || part.Length != 20 || part.LKey != whole.LKey {
			t.Errorf("SGE(30, 20) = %+v within %+v", part, whole)
		}
		if end := m.SGE(100, 0); end.Length != 0 {
			t.Errorf("SGE(100, 0) = %+v", end)
		}
		for _, outside := range [][2]int{
			{0, 101}, {100, 1}, {101, 0}, {-1, 1}, {0, -1}, {1, math.MaxInt}, {math.MaxInt, 1}, {math.MinInt, 0},
		} {
			func() {
				defer func() {
					if recover() == nil {
						t.Errorf("SGE(%d, %d) of 100 bytes did not panic", outside[0], outside[1])
					}
				}()
				m.SGE(outside[0], outside[1])
			}()
		}
	})
	s.run(t, "keys", func(t *testing.T, d *device) {
		p := d.mustPD()
		keys := make(map[uint32]bool)
		for range 8 {
			key := p.mustMR(64).SGE(0, 64).LKey
			if keys[key] {
				t.Errorf("two open regions have the key %#x", key)
			}
			keys[key] = true
		}
	})
	s.run(t, "independent", func(t *testing.T, d *device) {
		p := d.mustPD()
		one, two := p.mustMR(4096), p.mustMR(4096)
		one.Bytes()[0], two.Bytes()[0] = 1, 2
		one.mustClose()
		if two.Bytes()[0] != 2 {
			t.Error("closing one region changed another")
		}
	})
}
