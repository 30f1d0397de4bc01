//go:build browser

package browser

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"rdma_exporter/internal/api/apitest"
	"rdma_exporter/test/running"
)

// TestLinks follows the links of the page to the other paths of the exporter.
func TestLinks(t *testing.T) {
	url := startExporter(t, []string{"notify_identifies_cq"}, profile("healthy")...)
	b := open(t, url+"/", views()[1])
	links := inspect(t, b).Links
	for path, has := range map[string]string{
		"/metrics":       "rdma_device_info{",
		"/api/v2/status": `"sim_well0"`,
		"/-/healthy":     "rdma_exporter is healthy",
		"/-/ready":       "rdma_exporter is ready",
	} {
		if !slices.Contains(links, url+path) {
			t.Errorf("no link to %s: %q", path, links)
			continue
		}
		running.Check(t, chromedp.Do(b.ctx, chromedp.Navigate(url+"/")))
		evaluate[int](t, b, unfold)
		response, err := chromedp.RunResponse(b.ctx, chromedp.Tap(chromedp.CSS(`nav a[href$="`+path+`"]`)))
		if err != nil {
			t.Errorf("tap on %s: %v", path, err)
			continue
		}
		text := evaluate[string](t, b, "document.body.innerText")
		if response.URL != url+path || response.Status != http.StatusOK || !strings.Contains(text, has) {
			t.Errorf("the link to %s leads to %s, status %d, which does not show %q:\n%.500s", path, response.URL, response.Status, has, text)
		}
	}
	for _, link := range links {
		if !strings.HasPrefix(link, url+"/") {
			t.Errorf("a link leads elsewhere: %s", link)
		}
	}
	// For what is no page, the browser requests an icon.
	_, noise := b.noted()
	noise = slices.DeleteFunc(noise, func(s string) bool { return strings.Contains(s, "/favicon.ico") })
	complain(t, "the browser complains", noise)
}

// TestDeviceLink follows a link from the list of many devices to one that is folded.
func TestDeviceLink(t *testing.T) {
	t.Parallel()
	url := serve(t, assessed(apitest.Many(64, 64).Snapshot))
	b := open(t, url+"/", views()[1])
	const where = `(() => {
		const heading = document.querySelector('[id="device-mlx5_30"]').closest('details').querySelector('h4');
		const r = heading.getBoundingClientRect();
		return heading.checkVisibility() && r.height > 0 && r.top >= 0 && r.top < innerHeight;
	})()`
	if evaluate[bool](t, b, where) {
		t.Fatal("the device is shown at first")
	}
	running.Check(t, chromedp.Do(b.ctx, chromedp.Tap(chromedp.CSS(`a[href="#device-mlx5_30"]`))))
	if _, err := chromedp.Run(b.ctx, chromedp.Poll[bool](where)); err != nil {
		t.Errorf("the link does not show the device: %v", err)
	}
	b.shoot(t, "device-link", false)
}

// TestRefresh verifies that ?refresh= reloads the page.
func TestRefresh(t *testing.T) {
	t.Parallel()
	url := serve(t, assessed(host("healthy")))
	b := open(t, url+"/?refresh=1", views()[3])
	running.Eventually(t, "the page loads again", func() bool {
		requests, _ := b.noted()
		return len(requests) >= 2
	})
	_, noise := b.noted()
	complain(t, "the browser complains", noise)
}
