package docs_test

import (
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rdma_exporter/test/running"
)

// mostPicture is the most bytes that a picture has.
const mostPicture = 100 << 10

// TestPictures makes sure that pictures are small, and that they are shown.
func TestPictures(t *testing.T) {
	pictures, err := filepath.Glob(filepath.Join(root, "docs", "images", "*"))
	if err != nil || len(pictures) == 0 {
		t.Fatalf("there are no pictures: %v", err)
	}
	var shown strings.Builder
	for _, p := range pages(t) {
		shown.WriteString(p.text)
	}
	for _, path := range pictures {
		name := filepath.Base(path)
		if !strings.Contains(shown.String(), "images/"+name) {
			t.Errorf("no page shows %s", name)
		}
		f := running.Must(os.Open(path))(t)
		info := running.Must(f.Stat())(t)
		if info.Size() > mostPicture {
			t.Errorf("%s has %d bytes, of %d at most", name, info.Size(), mostPicture)
		}
		if filepath.Ext(name) == ".png" {
			config, err := png.DecodeConfig(f)
			if err != nil {
				t.Errorf("%s: %v", name, err)
			} else if _, ok := config.ColorModel.(color.Palette); !ok {
				t.Errorf("%s has no palette: make screenshots takes it", name)
			}
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}
