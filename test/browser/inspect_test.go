//go:build browser

package browser

import (
	_ "embed"
	"testing"
)

//go:embed inspect.js
var inspectScript string

// sight is what there is to see of a page, as inspect.js says.
type sight struct {
	// Width and Height are those of the page, in CSS pixels.
	Width  int    `json:"width"`
	Height int    `json:"height"`
	Title  string `json:"title"`
	Lang   string `json:"lang"`
	// Fold is the text in the window, without scrolling; Text is all that is shown.
	Fold string `json:"fold"`
	Text string `json:"text"`
	// Contrasts counts the texts whose contrast was measured; Contrast are those
	// that have too little.
	Contrasts int      `json:"contrasts"`
	Contrast  []string `json:"contrast"`
	// Gradients are elements with a picture behind text, whose contrast cannot be
	// measured.
	Gradients []string `json:"gradients"`
	// Clipped are texts that are cut off, Overlaps those that are painted on one
	// another, Small those that are too small to read.
	Clipped  []string  `json:"clipped"`
	Overlaps []string  `json:"overlaps"`
	Small    []string  `json:"small"`
	Targets  []target  `json:"targets"`
	Headings []heading `json:"headings"`
	// Pictures are those that do not say what they show.
	Pictures []string `json:"pictures"`
	// Duplicates are ids that occur twice, Dangling references to ids that do not
	// exist.
	Duplicates []string `json:"duplicates"`
	Dangling   []string `json:"dangling"`
	Links      []string `json:"links"`
	// Elements are the kinds of element, Attributes those that could run a script
	// or carry a style.
	Elements   []string `json:"elements"`
	Attributes []string `json:"attributes"`
	// Unscoped are headings of tables that do not say what they are the heading of.
	Unscoped []string `json:"unscoped"`
	// Wide are elements that reach beyond the page's edge.
	Wide []string `json:"wide"`
	// Faint are shapes in drawings that do not stand out.
	Faint []string `json:"faint"`
	// Hostile tells that a script which came as the text of a device has run.
	Hostile bool `json:"hostile"`
}

// target is something that can be tapped, with its size in CSS pixels.
type target struct {
	Name   string  `json:"name"`
	Width  float64 `json:"width"`
	Height float64 `json:"height"`
	// Inline tells that it is a part of a sentence.
	Inline bool `json:"inline"`
}

type heading struct {
	Level int    `json:"level"`
	Text  string `json:"text"`
}

// inspect looks at the page as it is in the tab.
func inspect(t *testing.T, b *tab) sight {
	t.Helper()
	return evaluate[sight](t, b, inspectScript)
}
