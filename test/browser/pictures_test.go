//go:build browser

package browser

import (
	"os"
	"path/filepath"
	"testing"

	"rdma_exporter/test/golden"
	"rdma_exporter/test/running"
)

// TestPictures takes the pictures of the README. With -update, as by make screenshots,
// they are stored in docs/images, and otherwise with the other screenshots.
func TestPictures(t *testing.T) {
	t.Parallel()
	folder := screenshots
	if golden.Updating() {
		folder = filepath.Join("..", "..", "docs", "images")
		running.Check(t, os.MkdirAll(folder, 0o755))
	}
	url := startExporter(t, []string{"ibv_create_qp", "notify_identifies_cq"}, profile("readme")...)
	for name, v := range map[string]view{
		"page":  {width: 1000, height: 800},
		"phone": {width: 390, height: 800, dark: true},
	} {
		b := open(t, url+"/", v)
		b.shoot(t, name, false)
		picture := running.Must(os.ReadFile(filepath.Join(screenshots, name+".png")))(t)
		running.Check(t, os.WriteFile(filepath.Join(folder, name+".png"), picture, 0o644))
	}
}
