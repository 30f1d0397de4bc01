package verbstest

import (
	"errors"
	"os"
	"syscall"
	"testing"

	"rdma_exporter/verbs"
)

// rawPacket tests that a raw packet QP is created or refused for a reason.
func (s *suite) rawPacket(t *testing.T) {
	s.run(t, "create", func(t *testing.T, d *device) {
		c := d.mustCQ(16, nil, 0)
		q, err := d.mustPD().CreateQP(verbs.QPInitAttr{Type: verbs.RawPacket, SendCQ: c, RecvCQ: c, Cap: smallCap()})
		if err == nil {
			if got := q.raw.Type(); got != verbs.RawPacket {
				t.Errorf("Type = %s", got)
			}
			q.mustBe(verbs.Reset)
			q.mustClose()
			return
		}
		switch errno, _ := verbs.ErrnoOf(err); errno {
		case syscall.EPERM:
			if !errors.Is(err, os.ErrPermission) {
				t.Errorf("%v does not match os.ErrPermission", err)
			}
		case syscall.EINVAL, syscall.EOPNOTSUPP, syscall.ENOSYS:
		default:
			t.Errorf("CreateQP: %v, want EPERM, EINVAL, EOPNOTSUPP or ENOSYS", err)
		}
		t.Skipf("no raw packet queue pair: %v", err)
	})
}
