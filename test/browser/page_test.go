//go:build browser

package browser

import (
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	// minTarget is the least height of what is tapped, and minWidth the least width,
	// in CSS pixels.
	minTarget, minWidth = 40, 24
	// maxList is how many of the same complaints are told.
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

// reads makes sure that the first glance tells what it must.
func reads(t *testing.T, s scene, v view, seen *sight) {
	t.Helper()
	fold := plain(seen.Fold)
	first := []string{s.verdict}
	if v.width > 320 {
		first = slices.Concat(first, s.says, s.advises)
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
	for _, text := range slices.Concat(s.says, s.advises, s.shows) {
		if !strings.Contains(plain(seen.Text), plain(text)) {
			t.Errorf("the page does not show %q", text)
		}
	}
	for _, text := range s.never {
		if strings.Contains(plain(seen.Text), plain(text)) {
			t.Errorf("the page says %q", text)
		}
	}
}

// plain is text with every white space the same, for where lines break does not
// matter.
func plain(s string) string { return strings.Join(strings.Fields(s), " ") }

// legible makes sure that everything can be read and reached in a view.
func legible(t *testing.T, v view, seen *sight) {
	t.Helper()
	if seen.Width > int(v.width) {
		t.Errorf("the page is %d wide in a window of %d and scrolls sideways", seen.Width, v.width)
	}
	complain(t, "beyond the edge", seen.Wide)
	if seen.Contrasts == 0 {
		t.Error("no text was found")
	}
	complain(t, "too little contrast", seen.Contrast)
	complain(t, "drawn too faintly", seen.Faint)
	complain(t, "text on a picture", seen.Gradients)
	complain(t, "text is cut off", seen.Clipped)
	complain(t, "texts overlap", seen.Overlaps)
	complain(t, "text is too small", seen.Small)
	var small []string
	for _, target := range seen.Targets {
		if v.phone && !target.Inline && (target.Height < minTarget || target.Width < minWidth) {
			small = append(small, strings.Join([]string{target.Name, number(target.Width) + "×" + number(target.Height)}, " "))
		}
	}
	complain(t, "too small to tap", small)
}

// sound makes sure that the page is well made for those who do not see it, and that
// nothing in it runs.
func sound(t *testing.T, seen *sight) {
	t.Helper()
	if seen.Title == "" || seen.Lang != "en" {
		t.Errorf("title %q, language %q", seen.Title, seen.Lang)
	}
	level, first := 0, 0
	for _, h := range seen.Headings {
		if h.Text == "" {
			t.Errorf("a heading of level %d is empty", h.Level)
		}
		if h.Level > level+1 {
			t.Errorf("heading %q of level %d follows one of level %d", h.Text, h.Level, level)
		}
		if level = h.Level; level == 1 {
			first++
		}
	}
	if first != 1 {
		t.Errorf("%d headings of level 1, want 1", first)
	}
	complain(t, "pictures that do not say what they show", seen.Pictures)
	complain(t, "ids that occur twice", seen.Duplicates)
	complain(t, "references to nothing", seen.Dangling)
	complain(t, "headings of tables without scope", seen.Unscoped)
	complain(t, "attributes that run or style", seen.Attributes)
	for _, element := range []string{"script", "img", "iframe", "object", "embed", "form", "base", "link"} {
		if slices.Contains(seen.Elements, element) {
			t.Errorf("the page has an element %s", element)
		}
	}
	if seen.Hostile {
		t.Error("a script in the text of a device has run")
	}
}

// complain tells what there should be none of.
func complain(t *testing.T, what string, all []string) {
	t.Helper()
	if len(all) == 0 {
		return
	}
	some := slices.Compact(slices.Sorted(slices.Values(all)))
	t.Errorf("%s, %d times:\n\t%s", what, len(all), strings.Join(some[:min(len(some), maxList)], "\n\t"))
}

func number(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
