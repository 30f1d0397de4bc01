//go:build browser

package browser

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/chromedp"

	"rdma_exporter/internal/api/apitest"
)

// node is an element as a screen reader presents it.
type node struct{ role, name, description string }

// nodes returns them in the order of the page.
func nodes(t *testing.T, b *tab) []node {
	t.Helper()
	tree, err := chromedp.Call(b.ctx, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
	if err != nil {
		t.Fatalf("accessibility tree: %v", err)
	}
	text := func(v *accessibility.Value) string {
		var s string
		if v != nil {
			_ = json.Unmarshal(v.Value, &s)
		}
		return s
	}
	byID := make(map[accessibility.NodeID]*accessibility.Node)
	for _, n := range tree.Nodes {
		byID[n.NodeID] = n
	}
	var all []node
	var walk func(n *accessibility.Node)
	walk = func(n *accessibility.Node) {
		if !n.Ignored {
			all = append(all, node{role: text(n.Role), name: strings.TrimSpace(text(n.Name)), description: text(n.Description)})
		}
		for _, id := range n.ChildIDs {
			if child := byID[id]; child != nil {
				walk(child)
			}
		}
	}
	if len(tree.Nodes) > 0 {
		walk(tree.Nodes[0])
	}
	return all
}

// TestAccessibility verifies that a screen reader finds landmarks, headings and names.
func TestAccessibility(t *testing.T) {
	url := serve(t, assessed(host("slow_vector")))
	b := open(t, url+"/", views()[3])
	evaluate[int](t, b, unfold)
	all := nodes(t, b)
	count := make(map[string]int)
	var vectors []node
	section := "the top"
	for _, n := range all {
		count[n.role]++
		if n.role == "heading" {
			section = n.name
		}
		switch n.role {
		case "image", "img", "graphics-document", "link", "button", "DisclosureTriangle", "heading", "table", "meter", "progressbar", "region", "navigation":
			if n.name == "" {
				t.Errorf("a %s below %q has no name", n.role, section)
			}
		}
		if n.role == "image" && strings.Contains(n.name, "completion vector") {
			vectors = append(vectors, n)
		}
	}
	for _, role := range []string{"banner", "main"} {
		if count[role] != 1 {
			t.Errorf("%d landmarks %s, want 1", count[role], role)
		}
	}
	if count["navigation"] == 0 {
		t.Error("no landmark navigation")
	}
	if !slices.ContainsFunc(vectors, func(n node) bool { return strings.Contains(n.description, "1 slow") }) {
		t.Errorf("no picture of the completion vectors says that one is slow: %q", vectors)
	}
	if t.Failed() {
		t.Logf("roles: %v", count)
	}
}

// TestLargeText verifies that the page can be read with letters of twice the size.
func TestLargeText(t *testing.T) {
	for _, name := range []string{"stuck", "leaks"} {
		t.Run(name, func(t *testing.T) {
			url := serve(t, assessed(host(name)))
			v := views()[3]
			b := open(t, url+"/", v)
			evaluate[int](t, b, unfold)
			evaluate[int](t, b, "document.documentElement.style.fontSize = '200%', 0")
			seen := inspect(t, b)
			b.shoot(t, name+"-large-text", true)
			legible(t, v, &seen)
		})
	}
}

// TestWithoutPolicy verifies that hostile text is escaped. The policy that would keep it from
// running is off.
func TestWithoutPolicy(t *testing.T) {
	url := serve(t, apitest.Hostile(hostileText).Evaluated())
	b := open(t, url+"/", views()[3], bypassPolicy())
	seen := inspect(t, b)
	sound(t, &seen)
	// The policy keeps the browser from asking for the picture in its tab, too.
	requests, noise := b.noted()
	for _, request := range requests {
		if request != url+"/" && request != url+"/favicon.ico" {
			t.Errorf("the page asked for %s", request)
		}
	}
	noise = slices.DeleteFunc(noise, func(s string) bool { return strings.Contains(s, "/favicon.ico") })
	complain(t, "the browser complains", noise)
}

// TestInspect verifies that inspect.js finds flaws, and that hostile text would run if it was
// not escaped.
func TestInspect(t *testing.T) {
	url := serveText(t, `<!DOCTYPE html><html><head><style>
	body { width: 2000px; } .pale { color: #999; } .cut { width: 3em; overflow: hidden; white-space: nowrap; }
	.on { position: absolute; left: 8px; top: 8px; } .tiny { font-size: 8px; }
	</style></head><body><h2>Heading</h2><p class="on">upon</p><p class="pale">pale</p><p class="cut">something long</p><p class="tiny">tiny</p>
	<a href="x">x</a><p>`+hostileText)
	v := views()[1]
	b := open(t, url+"/", v)
	seen := inspect(t, b)
	for what, found := range map[string]bool{
		"width": seen.Width > int(v.width), "contrast": len(seen.Contrast) > 0, "clipped": len(seen.Clipped) > 0, "overlap": len(seen.Overlaps) > 0,
		"small": len(seen.Small) > 0, "hostile": seen.Hostile, "link": len(seen.Links) > 0, "language": seen.Lang != "en",
		"target": slices.ContainsFunc(seen.Targets, func(t target) bool { return t.Height < minTarget }),
	} {
		if !found {
			t.Errorf("not seen: %s", what)
		}
	}
	if requests, _ := b.noted(); len(requests) < 2 {
		t.Errorf("the request for the picture was not noted: %q", requests)
	}
}
