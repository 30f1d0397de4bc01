package e2e_test

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"rdma_exporter/test/golden"
	"rdma_exporter/test/running"
)

func TestHelp(t *testing.T) {
	t.Parallel()
	for _, flag := range []string{"--help", "-h"} {
		r := invoke(t, binary, t.TempDir(), flag)
		if r.status != 0 || r.stderr != "" {
			t.Errorf("%s: status %d, standard error %q", flag, r.status, r.stderr)
		}
		golden.Check(t, filepath.Join("testdata", "help.txt"), r.stdout)
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	r := invoke(t, binary, t.TempDir(), "--version")
	if r.status != 0 || r.stderr != "" {
		t.Errorf("status %d, standard error %q", r.status, r.stderr)
	}
	if !strings.HasPrefix(r.stdout, programName+", version ") {
		t.Errorf("it begins with %.40q", r.stdout)
	}
	for _, want := range []string{"revision:", "go version:", "platform:"} {
		if !strings.Contains(r.stdout, want) {
			t.Errorf("it has no %q:\n%s", want, r.stdout)
		}
	}
}

// A build without cgo has simulated devices, and says that it has no others.
func TestWithoutCgo(t *testing.T) {
	t.Parallel()
	pure := filepath.Join(t.TempDir(), programName)
	running.Check(t, running.Build(pure, "CGO_ENABLED=0"))
	t.Run("libibverbs", func(t *testing.T) {
		t.Parallel()
		r := invoke(t, pure, t.TempDir(), "--provider=libibverbs", "--web.listen-address=127.0.0.1:0")
		refused(t, r, 2, "", []string{"--provider=libibverbs", "CGO_ENABLED=0", "libibverbs-dev", "--provider=simulated"})
	})
	t.Run("simulated", func(t *testing.T) {
		t.Parallel()
		e := startProgram(t, pure, "--provider=simulated")
		e.ready(t)
		m := e.scrape(t)
		for _, device := range []string{"sim_rxe0", "sim_siw0", "sim_ib0"} {
			if m.runs(device, "ok") == 0 {
				t.Errorf("there is no run on %s that was ok", device)
			}
		}
		if status, _ := e.get(t, "/"); status != http.StatusOK {
			t.Errorf("/: status %d", status)
		}
	})
}
