//go:build vm

package softroce

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// faultyCommand runs a command under the library of test/faults, with these faults
// in its file, and returns what it wrote to standard error, its exit status, and
// the library's log.
func faultyCommand(t *testing.T, faults string, args ...string) (stderr string, status int, log string) {
	t.Helper()
	dir := t.TempDir()
	file, logFile := filepath.Join(dir, "faults"), filepath.Join(dir, "log")
	if faults != "" {
		if err := os.WriteFile(file, []byte(faults), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var b bytes.Buffer
	cmd := exec.Command("env", append([]string{
		"LD_PRELOAD=" + faultsLibrary(t), "RDMA_FAULTS=" + file, "RDMA_FAULTS_LOG=" + logFile,
	}, args...)...)
	cmd.Stderr = &b
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	text, err := os.ReadFile(logFile)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return b.String(), cmd.ProcessState.ExitCode(), string(text)
}

// A line that is not understood ends the process, whatever verb it calls first. A
// process that calls none does not even look.
func TestFaultsLibraryRejects(t *testing.T) {
	for _, tt := range []struct{ faults, message string }{
		{"", "No such file or directory"},
		{"ibv_creat_qp errno=EIO", `no verb "ibv_creat_qp"`},
		{"ibv_create_qp errno=EOI", `no errno "EOI"`},
		{"ibv_create_qp fail", `"fail" is not known`},
		{"ibv_create_qp hang=1", `"hang" is not known`},
		{"ibv_create_qp", "no whole fault"},
		{"ibv_create_qp times=1", "no whole fault"},
		{"ibv_create_qp errno=EIO hang", "one fault in a line"},
		{"ibv_create_qp errno=EIO times=x", `"x" is no number`},
		{"ibv_create_qp errno=EIO after=-1", `"-1" is no number`},
		{"ibv_alloc_pd short", "not with this verb"},
		{"ibv_create_qp drop", "not with this verb"},
		{"ibv_ack_cq_events errno=EIO", "not with this verb"},
		{"ibv_create_qp keep while=/", "not with this verb"},
		{"ibv_open_device keep", "no whole fault"},
		{"ibv_open_device errno=EIO while=/", "no whole fault"},
		{"ibv_create_qp max_send_wr", `"max_send_wr" is not known`},
		{"ibv_create_qp max_send_wr=more", `"more" is no number`},
		{"ibv_create_qp max_send_wr=given+", `"" is no number`},
		{"ibv_create_qp max_send_wr>5", "no whole fault"},
		{"ibv_create_qp max_send_wr=5 drop", "one fault in a line"},
		{"ibv_create_cq max_send_wr=5", "not with this verb"},
		{"ibv_create_qp errno=EIO type=RC,XY", `"XY" is not known`},
		{"ibv_create_cq errno=EIO type=RC", "not with this verb"},
		{"ibv_create_qp errno=EIO state=RTS", "not with this verb"},
		{"ibv_post_send errno=EIO ready=maybe", `"ready" is not known`},
		{"ibv_post_recv errno=EIO solicited", "not with this verb"},
		{"ibv_create_qp errno=EIO channel", "not with this verb"},
		{"ibv_create_qp errno=-EIO", "not with this verb"},
		{"ibv_poll_cq errno=EIO before=ibv_poll", `no verb "ibv_poll"`},
		{"# well\n\nibv_poll_cq crash # so\nibv_poll_cq crush", `"crush" is not known`},
		{"ibv_poll_cq crash " + strings.Repeat("#", 1000), "a line is too long"},
	} {
		stderr, status, log := faultyCommand(t, tt.faults, "ibv_devinfo")
		if status != 2 || !strings.HasPrefix(stderr, "faults: ") || !strings.Contains(stderr, tt.message) || log != "" {
			t.Errorf("%q: status %d, %q, want 2, %q; the log is %q", tt.faults, status, stderr, tt.message, log)
		}
	}
	if stderr, status, log := faultyCommand(t, "nonsense", "true"); status != 0 || stderr+log != "" {
		t.Errorf("a command that calls no verb: status %d, %q, %q", status, stderr, log)
	}
}

// A plain C program meets the faults as its manual says verbs fail.
func TestFaultsLibraryOnPingpong(t *testing.T) {
	for _, tt := range []struct{ fault, message string }{
		{"ibv_get_device_list errno=EPERM", "Failed to get IB devices list: Operation not permitted"},
		{"ibv_open_device errno=EIO", "Couldn't get context for " + active},
		{"ibv_create_comp_channel errno=EIO", "Couldn't create completion channel"},
		{"ibv_alloc_pd errno=EIO", "Couldn't allocate PD"},
		{"ibv_reg_mr errno=EIO", "Couldn't register MR"},
		{"ibv_create_cq errno=EIO", "Couldn't create CQ"},
		{"ibv_create_qp errno=EIO", "Couldn't create QP"},
		{"ibv_modify_qp errno=EIO", "Failed to modify QP to INIT"},
		{"ibv_post_recv errno=EIO after=7", "Couldn't post receive (7)"},
		{"ibv_post_recv errno=EIO after=7 times=1", "Couldn't post receive (7)"},
		{"ibv_req_notify_cq errno=EIO", "Couldn't request CQ notification"},
		{"ibv_query_port errno=EIO", "Couldn't get port info"},
	} {
		stderr, status, log := faultyCommand(t, tt.fault+"\n", "ibv_rc_pingpong", "-e", "-d", active, "-g", "1")
		if status != 1 || !strings.Contains(stderr, tt.message) {
			t.Errorf("%s: status %d, %q, want 1, %q", tt.fault, status, stderr, tt.message)
		}
		if !strings.HasSuffix(log, " loaded 1\n"+strings.Fields(log + " ?")[0]+" "+tt.fault+"\n") {
			t.Errorf("%s: the log is %q", tt.fault, log)
		}
	}
}
