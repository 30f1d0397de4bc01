package verbstest

import (
	"testing"
)

// ah tests address handles.
func (s *suite) ah(t *testing.T) {
	s.run(t, "create and close", func(t *testing.T, d *device) {
		s.requirePort(t)
		requireAH(t, d)
		p, way := d.mustPD(), d.mustPath()
		a := must(p.CreateAH(way.ah))(t, "CreateAH(%+v)", way.ah)
		if err := p.Close(); err == nil {
			t.Log("the device deallocated a PD with an AH in it")
		}
		a.mustClose()
		a.mustClose()
	})
	s.run(t, "out of range", func(t *testing.T, d *device) {
		s.requirePort(t)
		requireAH(t, d)
		p, way := d.mustPD(), d.mustPath()
		for _, port := range []int{0, -1, -255, 257} { // those of one byte more would be port 1, cut to a byte
			attr := way.ah
			attr.Port = port
			if _, err := p.CreateAH(attr); err == nil {
				t.Errorf("CreateAH with port %d succeeded", port)
			}
		}
		if way.ah.Global {
			for _, index := range []int{-1, way.ah.SGIDIndex + 256, way.ah.SGIDIndex - 256} {
				attr := way.ah
				attr.SGIDIndex = index
				if _, err := p.CreateAH(attr); err == nil {
					t.Errorf("CreateAH with GID index %d succeeded", index)
				}
			}
		}
		if _, err := p.CreateAH(way.ah); err != nil {
			t.Errorf("CreateAH(%+v): %v", way.ah, err)
		}
	})
}

// requireAH skips the test if the device says that it has no address handles.
func requireAH(t *testing.T, d *device) {
	t.Helper()
	attr := must(d.Query())(t, "Query")
	if attr.Limits.MaxAH == 0 {
		t.Skipf("%s has no address handles (max_ah is 0)", d.device)
	}
}
