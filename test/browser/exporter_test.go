//go:build browser

package browser

import (
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"rdma_exporter/test/running"
)

// startExporter starts the built exporter and returns its address, without a slash
// at the end, once its page has a text. It ends with the test.
func startExporter(t *testing.T, shows string, args ...string) (url string) {
	t.Helper()
	log := new(running.Output)
	// A run ends at once or never, so that the page is the same whenever it is
	// looked at.
	args = append([]string{"--web.listen-address=127.0.0.1:0", "--probe.interval=1h", "--probe.jitter=0", "--discovery.interval=1h"}, args...)
	cmd := exec.Command(exporterFile, args...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("log of the exporter:\n%s", log)
		}
	})
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-ended:
		case <-time.After(patience):
			t.Errorf("the exporter has not ended %v after SIGTERM", patience)
			_ = cmd.Process.Kill()
			<-ended
		}
	})

	listening := regexp.MustCompile(`msg="Listening on" address=(\S+)`)
	client := &http.Client{Timeout: patience}
	var body string
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("the exporter has ended: %v", err)
		default:
		}
		m := listening.FindStringSubmatch(log.String())
		if m == nil {
			continue
		}
		url = "http://" + m[1]
		if body = get(t, client, url+"/"); strings.Contains(body, shows) {
			return url
		}
	}
	t.Fatalf("after %v the page does not show %q:\n%s", patience, shows, body)
	return ""
}

// get returns what is at an address.
func get(t *testing.T, client *http.Client, url string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// profile is the flags that have the exporter simulate the devices of
// testdata/NAME.yaml.
func profile(name string) []string {
	return []string{"--provider=simulated", "--simulated.profile=" + filepath.Join("testdata", name+".yaml")}
}
