//go:build browser

package browser

import (
	"slices"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// unfold opens everything that can be unfolded.
const unfold = "document.querySelectorAll('details').forEach((d) => { d.open = true; }), 0"

// focus is the element that has the focus.
type focus struct {
	// Index is its position among all elements; −1 if none has the focus.
	Index int    `json:"index"`
	Tag   string `json:"tag"`
	Text  string `json:"text"`
	// Ring is true if the focus is visible.
	Ring bool `json:"ring"`
	// Open is true for the summary of open details.
	Open bool `json:"open"`
}

const focusScript = `(() => {
	const e = document.activeElement;
	if (!e || e === document.body) return { index: -1 };
	const s = getComputedStyle(e);
	return {
		index: [...document.querySelectorAll('*')].indexOf(e), tag: e.localName, text: e.textContent.trim().slice(0, 60),
		ring: e.matches(':focus-visible') && (s.outlineStyle !== 'none' && parseFloat(s.outlineWidth) >= 1 || s.boxShadow !== 'none'),
		open: e.localName === 'summary' && e.parentElement.open,
	};
})()`

// TestKeyboard verifies that all links and details can be reached and opened without a mouse.
func TestKeyboard(t *testing.T) {
	url := serve(t, assessed(host("stuck")))
	b := open(t, url+"/", views()[3])
	press := func(key string) focus {
		t.Helper()
		if err := chromedp.Do(b.ctx, chromedp.KeyEvent(key)); err != nil {
			t.Fatalf("press %q: %v", key, err)
		}
		return evaluate[focus](t, b, focusScript)
	}

	reachable := func() []int {
		return evaluate[[]int](t, b, `[...document.querySelectorAll('*')].map((e, i) => e.matches('a[href], summary') && e.checkVisibility() ? i : -1).filter((i) => i >= 0)`)
	}
	want := reachable()
	if len(want) == 0 {
		t.Fatal("there is nothing to reach")
	}
	var got []int
	summaries := 0
	for range 10 * len(want) {
		at := press(kb.Tab)
		if at.Index < 0 || slices.Contains(got, at.Index) {
			break
		}
		if !at.Ring {
			t.Errorf("the focus on %s %q cannot be seen", at.Tag, at.Text)
		}
		// Others are what scrolls.
		if at.Tag == "a" || at.Tag == "summary" {
			got = append(got, at.Index)
		}
		if at.Tag == "summary" && summaries < 3 {
			summaries++
			for _, key := range []string{kb.Enter, " "} {
				after := press(key)
				if after.Index != at.Index || after.Open == at.Open {
					t.Errorf("%q on %q: open %t before and %t after", key, at.Text, at.Open, after.Open)
				}
				at = after
			}
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("by keyboard the elements %v are reached, want %v", got, want)
	}
	if summaries == 0 {
		t.Error("there is nothing to unfold")
	}
	b.shoot(t, "keyboard", false)
}
