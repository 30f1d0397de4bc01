package verbs_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"rdma_exporter/verbs"
)

// TestErrorIs crosses every verb with errnos that verbs fail with.
func TestErrorIs(t *testing.T) {
	errnos := []syscall.Errno{syscall.EBUSY, syscall.ENOMEM, syscall.EIO, syscall.EINVAL, syscall.EPERM, syscall.EACCES, syscall.ENODEV, syscall.EOPNOTSUPP, syscall.ENOSYS, syscall.EAGAIN, verbs.NoErrno}
	for _, v := range verbs.Verbs() {
		for _, errno := range errnos {
			err := fmt.Errorf("wrapped: %w", &verbs.Error{Verb: v, Device: "dev", Errno: errno})
			for _, other := range errnos {
				if got := errors.Is(err, other); got != (other == errno) {
					t.Errorf("%s %v is %v: %t", v, errno, other, got)
				}
			}
			if got, want := errors.Is(err, os.ErrPermission), errno == syscall.EPERM || errno == syscall.EACCES; got != want {
				t.Errorf("%s %v is a permission error: %t", v, errno, got)
			}
			if got, want := verbs.IsNotSupported(err), errno == syscall.EOPNOTSUPP || errno == syscall.ENOSYS; got != want {
				t.Errorf("%s %v is not supported: %t", v, errno, got)
			}
			if got, ok := verbs.ErrnoOf(err); !ok || got != errno {
				t.Errorf("%s %v has errno %v, %t", v, errno, got, ok)
			}
			for _, part := range []string{string(v), "dev", verbs.ErrnoName(errno)} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q lacks %q", err, part)
				}
			}
		}
	}
}

func TestErrorText(t *testing.T) {
	detail := fmt.Errorf("2 %w", verbs.ErrUnacknowledged)
	for want, err := range map[string]*verbs.Error{
		"ibv_destroy_cq on dev: EBUSY (device or resource busy): 2 completion events not acknowledged": {
			Verb: verbs.DestroyCQ, Device: "dev", Errno: syscall.EBUSY, Detail: detail,
		},
		"ibv_get_device_list: ENOSYS (function not implemented)":      {Verb: verbs.GetDeviceList, Errno: syscall.ENOSYS},
		"ibv_create_qp on dev: no_errno (it failed and set no errno)": {Verb: verbs.CreateQP, Device: "dev", Errno: verbs.NoErrno},
	} {
		if err.Error() != want || !errors.Is(err, err.Errno) || errors.Is(err, verbs.ErrUnacknowledged) != (err.Detail != nil) {
			t.Errorf("%q, want %q, its errno and its detail", err, want)
		}
	}
}

func TestErrnoName(t *testing.T) {
	for errno, want := range map[syscall.Errno]string{
		syscall.EBUSY: "EBUSY", syscall.EOPNOTSUPP: "EOPNOTSUPP", syscall.EAGAIN: "EAGAIN", 4242: "errno 4242", 0: "errno 0", verbs.NoErrno: "no_errno",
	} {
		if got := verbs.ErrnoName(errno); got != want {
			t.Errorf("%d is %q, want %q", int(errno), got, want)
		}
	}
	if _, ok := verbs.ErrnoOf(errors.New("no verb")); ok {
		t.Error("an errno where there is none")
	}
}

func TestStrings(t *testing.T) {
	for _, tc := range []struct{ got, want string }{
		{verbs.GUID{0x52, 0x54, 0, 0xff, 0xfe, 0x12, 0x34, 0x56}.String(), "5254:00ff:fe12:3456"},
		{verbs.GID{10: 0xff, 11: 0xff, 12: 10, 13: 77, 14: 0, 15: 1}.String(), "::ffff:10.77.0.1"},
		{verbs.PortActive.String(), "active"},
		{verbs.PortState(99).String(), "unknown_99"},
		{verbs.PortState(-1).String(), "unknown_-1"},
		{verbs.LinkEthernet.String(), "Ethernet"},
		{verbs.TransportIWARP.String(), "iWARP"},
		{verbs.Transport(0).String(), "unknown"},
		{verbs.RawPacket.Label(), "raw_packet"},
		{verbs.Err.String(), "ERR"},
		{verbs.GIDTypeRoCEv2.String(), "RoCE v2"},
		{verbs.WCWRFlushErr.String(), "wr_flush_err"},
		{verbs.WCRNRRetryExc.String(), "rnr_retry_exc_err"},
		{verbs.WCGeneralErr.String(), "general_err"},
	} {
		if tc.got != tc.want {
			t.Errorf("%q, want %q", tc.got, tc.want)
		}
	}
}

// TestVerbsComplete: every verb is listed once.
func TestVerbsComplete(t *testing.T) {
	seen := map[verbs.Verb]bool{}
	for _, v := range verbs.Verbs() {
		if seen[v] || !strings.HasPrefix(string(v), "ibv_") {
			t.Errorf("%q is there twice or is none", v)
		}
		seen[v] = true
	}
	if len(seen) != 38 {
		t.Errorf("%d verbs", len(seen))
	}
}
