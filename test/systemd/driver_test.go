//go:build vm

package systemd

import (
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"testing"
	"time"

	"rdma_exporter/test/running"
)

// curl asks a server for a page, and gives it 5 seconds to answer.
func curl(url string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return "", err
	}
	resp, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	return string(b), err
}

// The service may be started before the driver is there: at boot, say.
func TestDriverLoadedLater(t *testing.T) {
	for _, device := range []string{active, down} {
		running.Command(t, "rdma", "link", "del", device)
	}
	// A device that was deleted may be in use for a moment.
	await(t, "the driver to be unloaded", func() bool {
		out, err := exec.Command("modprobe", "-r", "rdma_rxe", "rdma_ucm", "ib_umad", "ib_uverbs").CombinedOutput()
		if err != nil {
			t.Logf("modprobe -r: %v\n%s", err, out)
		}
		return err == nil
	})
	if _, err := os.Stat("/sys/class/infiniband_verbs"); !os.IsNotExist(err) {
		t.Fatalf("the driver is still there: %v", err)
	}
	configure(t, quick)
	start(t, service)
	await(t, "the exporter to serve", func() bool { return len(scrape(t)) > 0 })
	running.Command(t, "modprobe", "-a", "rdma_rxe", "ib_uverbs")
	running.Command(t, "rdma", "link", "add", active, "type", "rxe", "netdev", "veth0")
	running.Command(t, "rdma", "link", "add", down, "type", "rxe", "netdev", "veth2")
	done(t, active).ok(t, active)
}
