package web_test

import (
	"math"
	"os"
	"regexp"
	"strconv"
	"testing"
)

// colours returns the variables of the style that are colours, for each scheme.
func colours(t *testing.T) (light, dark map[string]float64) {
	t.Helper()
	css, err := os.ReadFile("page.css")
	if err != nil {
		t.Fatal(err)
	}
	roots := regexp.MustCompile(`(?s):root \{(.*?)\}`).FindAllStringSubmatch(string(css), -1)
	if len(roots) != 2 {
		t.Fatalf("%d schemes", len(roots))
	}
	var schemes [2]map[string]float64
	for i, root := range roots {
		schemes[i] = make(map[string]float64)
		for _, v := range regexp.MustCompile(`--([\w-]+): #([0-9a-f]{6});`).FindAllStringSubmatch(root[1], -1) {
			schemes[i][v[1]] = luminance(t, v[2])
		}
	}
	if len(schemes[0]) != len(schemes[1]) || len(schemes[0]) == 0 {
		t.Errorf("%d and %d colours", len(schemes[0]), len(schemes[1]))
	}
	return schemes[0], schemes[1]
}

// luminance returns the relative luminance of a colour, as WCAG defines it.
func luminance(t *testing.T, hex string) float64 {
	t.Helper()
	var l float64
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		n, err := strconv.ParseUint(hex[2*i:2*i+2], 16, 8)
		if err != nil {
			t.Fatal(err)
		}
		c := float64(n) / 255
		if c <= 0.04045 {
			c /= 12.92
		} else {
			c = math.Pow((c+0.055)/1.055, 2.4)
		}
		l += weight * c
	}
	return l
}

// TestContrast makes sure that everything can be read, and every picture seen, in both
// schemes: WCAG 2 at level AA.
func TestContrast(t *testing.T) {
	const text, picture = 4.5, 3
	light, dark := colours(t)
	for name, scheme := range map[string]map[string]float64{"light": light, "dark": dark} {
		check := func(front, back string, least float64) {
			a, b := scheme[front], scheme[back]
			if _, known := scheme[front]; !known {
				t.Fatalf("%s: no colour %s", name, front)
			}
			if _, known := scheme[back]; !known {
				t.Fatalf("%s: no colour %s", name, back)
			}
			if ratio := (max(a, b) + 0.05) / (min(a, b) + 0.05); ratio < least {
				t.Errorf("%s: %s on %s has a contrast of %.2f, want %.1f", name, front, back, ratio, least)
			}
		}
		for _, front := range []string{"ink", "muted", "link"} {
			for _, back := range []string{"page", "card"} {
				check(front, back, text)
			}
		}
		check("ink", "code", text)
		check("critical", "code", text)
		for _, state := range []string{"ok", "info", "unknown", "warning", "critical"} {
			check(state, state+"-tint", text)
			check(state, "card", text)
		}
		check("column", "card", picture)
		check("column", "track", 1.5) // the figure is beside the bar
	}
}
