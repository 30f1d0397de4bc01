//go:build vmhost && kernels

package vm_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestSiw boots two kernels, one by one.
func TestSiw(t *testing.T) {
	release, err := exec.CommandContext(t.Context(), "bash", "-c", `. /etc/os-release && echo -n "$VERSION_CODENAME"`).Output()
	if err != nil {
		t.Fatal(err)
	}
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
