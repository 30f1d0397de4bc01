//go:build vmhost && kernels

package vm_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"rdma_exporter/test/running"
)

// TestProviders runs this machine's RDMA libraries, and those of the newest
// suite: each program finds one version of them.
func TestProviders(t *testing.T) {
	r := newRunner(t)
	seen := map[string]bool{}
	for _, options := range [][]string{nil, {"--providers", "sid"}} {
		setup := exec.CommandContext(t.Context(), filepath.Join(filepath.Dir(r.path), "setup"), options...)
		if out, err := setup.CombinedOutput(); err != nil {
			t.Fatalf("setup %q: %v\n%s", options, err, out)
		}
		got := r.run(t, append(options, "bash", "-ec",
			`LD_DEBUG=files LD_DEBUG_OUTPUT=/tmp/providers ibv_devinfo -d rxe0 | grep -c PORT_ACTIVE
			sed -n 's/.*calling init: .*-\(rdmav[0-9]*\)\.so$/\1/p' /tmp/providers.* | sort -u`)...)
		active, providers, _ := strings.Cut(got.stdout, "\n")
		if got.status != 0 || active != "1" || strings.Count(providers, "rdmav") != 1 || seen[providers] {
			t.Errorf("%q: %+v, want rxe0, and providers of one version that none before had", options, got)
		}
		seen[providers] = true
	}
}

// TestSiw boots two kernels, one by one.
func TestSiw(t *testing.T) {
	release := running.Must(exec.CommandContext(t.Context(), "bash", "-c", `. /etc/os-release && echo -n "$VERSION_CODENAME"`).Output())(t)
	r := newRunner(t)
	seen := map[string]string{}
	for _, options := range [][]string{{"--siw"}, {"--siw", "--kernel", string(release) + "-backports"}} {
		setup := exec.CommandContext(t.Context(), filepath.Join(filepath.Dir(r.path), "setup"), options...)
		if out, err := setup.CombinedOutput(); err != nil {
			t.Fatalf("setup %q: %v\n%s", options, err, out)
		}
		got := r.run(t, append(options, "bash", "-ec", "uname -r; ibv_devinfo; modprobe dummy")...)
		kernel, devices, _ := strings.Cut(got.stdout, "\n")
		if got.status != 0 || seen[kernel] != "" {
			t.Errorf("%q: status %d, Linux %q; stderr:\n%s", options, got.status, kernel, got.stderr)
		}
		seen[kernel] = devices
		_, siw, found := strings.Cut(devices, "siw0")
		if !found || !strings.Contains(siw, "iWARP") || !strings.Contains(siw, "PORT_ACTIVE") || strings.Count(devices, "hca_id") != 3 {
			t.Errorf("%q: no rxe0, rxe1 and an active siw0:\n%s", options, devices)
		}
	}
}
