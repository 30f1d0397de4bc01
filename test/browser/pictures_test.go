//go:build browser

package browser

import (
	"bytes"
	"cmp"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"rdma_exporter/test/golden"
)

// TestPictures takes the pictures of the README. With -update, as make screenshots has it,
// they are stored in docs/images, and otherwise with the other screenshots.
func TestPictures(t *testing.T) {
	t.Parallel()
	folder := screenshots
	if golden.Updating() {
		folder = filepath.Join("..", "..", "docs", "images")
		if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	url := startExporter(t, []string{"ibv_create_qp", "notify_identifies_cq"}, profile("readme")...)
	for name, v := range map[string]view{
		"page":  {width: 1000, height: 800},
		"phone": {width: 390, height: 800, dark: true},
	} {
		b := open(t, url+"/", v)
		b.shoot(t, name, false)
		shot, err := os.ReadFile(filepath.Join(screenshots, name+".png"))
		if err != nil {
			t.Fatal(err)
		}
		picture := small(t, shot)
		t.Logf("%s: %d bytes", name, len(picture))
		if err := os.WriteFile(filepath.Join(folder, name+".png"), picture, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// small returns a picture with a palette: of the colours of text on a page there are few
// that matter, and the others have one beside them that nobody can tell apart.
func small(t *testing.T, shot []byte) []byte {
	t.Helper()
	from, err := png.Decode(bytes.NewReader(shot))
	if err != nil {
		t.Fatal(err)
	}
	bounds := from.Bounds()
	often := make(map[color.RGBA]int)
	for y := range bounds.Dy() {
		for x := range bounds.Dx() {
			often[color.RGBAModel.Convert(from.At(x, y)).(color.RGBA)]++
		}
	}
	colours := slices.SortedFunc(maps.Keys(often), func(a, b color.RGBA) int { return cmp.Compare(often[b], often[a]) })
	var palette color.Palette
	for _, c := range colours[:min(len(colours), 64)] {
		palette = append(palette, c)
	}
	to := image.NewPaletted(bounds, palette)
	draw.Draw(to, bounds, from, bounds.Min, draw.Src)
	var out bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, to); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
