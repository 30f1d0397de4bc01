//go:build browser

package browser

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rdma_exporter/test/running"
)

// startExporter starts the built exporter and returns its address, without a slash
// at the end, once its page has each of some texts. It ends with the test.
func startExporter(t *testing.T, shows []string, args ...string) (url string) {
	t.Helper()
	// A run ends at once or never, so that the page stays the same.
	p := running.Launch(t, "the exporter", exporterFile,
		append([]string{"--web.listen-address=127.0.0.1:0", "--probe.interval=1h"}, running.Unhurried(args...)...)...)
	url = "http://" + p.Listening(t)
	running.Eventually(t, fmt.Sprintf("the page shows %q", shows), func() bool {
		p.MustRun(t)
		page := string(running.Must(running.Get(nil, url+"/"))(t))
		return !slices.ContainsFunc(shows, func(text string) bool { return !strings.Contains(page, text) })
	})
	return url
}

// profile returns the flags that simulate the devices of testdata/NAME.yaml.
func profile(name string) []string {
	return []string{"--provider=simulated", "--simulated.profile=" + filepath.Join("testdata", name+".yaml")}
}
