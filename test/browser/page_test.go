//go:build browser

package browser

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

const (
	// minTarget and minWidth are the minimum height and width of what is tapped, in CSS pixels.
	minTarget, minWidth = 40, 24
	// maxList limits how many of the same complaints are shown.
	maxList = 8
)

// TestPage looks at the page in every state, in every view.
func TestPage(t *testing.T) {
	t.Parallel()
	for _, s := range states() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			url := s.start(t)
			for _, v := range views() {
				t.Run(v.String(), func(t *testing.T) {
					b := open(t, url+"/", v)
					name := s.name + "-" + v.String()
					atFirst := inspect(t, b)
					b.shoot(t, name, false)
					reads(t, s, v, &atFirst)

					// All of it, with everything unfolded that can be.
					if !s.folded {
						evaluate[int](t, b, unfold)
					}
					whole := inspect(t, b)
					if v.width > 320 {
						b.shoot(t, name+"-whole", true)
					}
					legible(t, v, &whole)
					sound(t, &whole)

					requests, noise := b.noted()
					if want := []string{url + "/"}; !slices.Equal(requests, want) {
						t.Errorf("the page asked for %q, want %q alone", requests, want)
					}
					complain(t, "the browser complains", noise)
				})
			}
		})
	}
}

// reads verifies what the first window and the whole page say.
func reads(t *testing.T, s scene, v view, seen *sight) {
	t.Helper()
	fold := plain(seen.Fold)
	first := []string{s.verdict}
	if v.width > 320 {
		first = append(first, s.says...)
	}
	var lacks []string
	for _, text := range first {
		if !strings.Contains(fold, plain(text)) {
			lacks = append(lacks, text)
		}
	}
	if len(lacks) > 0 {
		t.Errorf("the first glance lacks %q:\n%s", lacks, seen.Fold)
	}
	for _, text := range slices.Concat(s.says, s.shows) {
		if !strings.Contains(plain(seen.Text), plain(text)) {
			t.Errorf("the page does not show %q", text)
		}
	}
	never := slices.Clone(s.never)
	if s.verdict != calm {
		never = append(never, calm)
	}
	for _, text := range never {
		if strings.Contains(plain(seen.Text), plain(text)) {
			t.Errorf("the page says %q", text)
		}
	}
}

// plain makes line breaks spaces.
func plain(s string) string { return strings.Join(strings.Fields(s), " ") }

func legible(t *testing.T, v view, seen *sight) {
	t.Helper()
	if seen.Width > int(v.width) {
		t.Errorf("the page is %d wide in a window of %d and scrolls sideways", seen.Width, v.width)
	}
	if seen.Contrasts == 0 {
		t.Error("no text was found")
	}
	complain(t, "beyond the edge", seen.Wide)
	complain(t, "too little contrast", seen.Contrast)
	complain(t, "drawn too faintly", seen.Faint)
	complain(t, "text on a picture", seen.Gradients)
	complain(t, "text is cut off", seen.Clipped)
	complain(t, "texts overlap", seen.Overlaps)
	complain(t, "text is too small", seen.Small)
	var small []string
	for _, target := range seen.Targets {
		if v.phone && !target.Inline && (target.Height < minTarget || target.Width < minWidth) {
			small = append(small, fmt.Sprintf("%s %g×%g", target.Name, target.Width, target.Height))
		}
	}
	complain(t, "too small to tap", small)
}

func sound(t *testing.T, seen *sight) {
	t.Helper()
	if seen.Title == "" || seen.Lang != "en" {
		t.Errorf("title %q, language %q", seen.Title, seen.Lang)
	}
	if seen.Hostile {
		t.Error("a script in the text of a device has run")
	}
}

func complain(t *testing.T, what string, all []string) {
	t.Helper()
	if len(all) == 0 {
		return
	}
	some := slices.Compact(slices.Sorted(slices.Values(all)))
	t.Errorf("%s, %d times:\n\t%s", what, len(all), strings.Join(some[:min(len(some), maxList)], "\n\t"))
}
