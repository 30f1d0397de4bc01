//go:build browser

package browser

import (
	_ "embed"
	"testing"
)

//go:embed inspect.js
var inspectScript string

// sight is what inspect.js sees of a page. The markup itself is checked by TestPages of
// internal/web.
type sight struct {
	// Width is the width of the page, in CSS pixels.
	Width int    `json:"width"`
	Title string `json:"title"`
	Lang  string `json:"lang"`
	// Fold is the text in the window, without scrolling; Text is all that is shown.
	Fold string `json:"fold"`
	Text string `json:"text"`
	// Contrasts counts the texts whose contrast was measured. Contrast are those with too little.
	Contrasts int      `json:"contrasts"`
	Contrast  []string `json:"contrast"`
	// Gradients are elements with a picture behind text, whose contrast cannot be measured.
	Gradients []string `json:"gradients"`
	// Clipped are texts that are cut off, Overlaps those that are painted on one another, Small
	// those that are too small to read.
	Clipped  []string `json:"clipped"`
	Overlaps []string `json:"overlaps"`
	Small    []string `json:"small"`
	Targets  []target `json:"targets"`
	Links    []string `json:"links"`
	// Wide are elements that reach beyond the page's edge.
	Wide []string `json:"wide"`
	// Faint are shapes in drawings that do not stand out.
	Faint []string `json:"faint"`
	// Hostile is true if a script in the text of a device has run.
	Hostile bool `json:"hostile"`
}

// target is something that can be tapped, with its size in CSS pixels.
type target struct {
	Name   string  `json:"name"`
	Width  float64 `json:"width"`
	Height float64 `json:"height"`
	// Inline is true if it is a part of a sentence.
	Inline bool `json:"inline"`
}

func inspect(t *testing.T, b *tab) sight {
	t.Helper()
	return evaluate[sight](t, b, inspectScript)
}
