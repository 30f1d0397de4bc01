package web_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"rdma_exporter/internal/api"
	"rdma_exporter/internal/api/apitest"
	"rdma_exporter/internal/health"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/web"
	"rdma_exporter/test/golden"
)

// hostConfig returns a valid configuration of a handler that shows a host of apitest.
func hostConfig(host apitest.Host) web.Config {
	c := config(host.Snapshot)
	c.Now, c.Status = apitest.Now, func(now time.Time) *api.Status { return status(host, now) }
	return c
}

func status(host apitest.Host, now time.Time) *api.Status {
	return api.New(host.Evaluated(), api.Options{Now: now, Version: "1.2.3", Host: "node-17"})
}

func page(t *testing.T, host apitest.Host) *httptest.ResponseRecorder {
	t.Helper()
	w := get(handler(t, hostConfig(host)), "GET", "/")
	if w.Code != 200 {
		t.Fatalf("got %d: %s", w.Code, w.Body)
	}
	return w
}

// more returns what pages of hosts show and the golden files of the other hosts lack.
func more() map[string][]string {
	const locked = "; memory that the exporter may lock (RLIMIT_MEMLOCK): 64 KiB</li>"
	return map[string][]string{
		"not_listed":       {`<div class="trouble unknown">`, "<p><b>What to do (none):</b> Wait a few seconds after"},
		"discovery_failed": {`<section class="glance critical"`, "could not be listed: list the RDMA devices: open /sys/class/infiniband: permission denied</h2>"},
		"no_devices":       {"<title>node-17: warning – rdma_exporter</title>", `<section class="glance warning"`, "</span> warning</span> No RDMA device was found.</h2>"},
		"not_probed":       {`<section class="glance unknown"`, `<span class="headline">Not probed yet.</span>`},
		"healthy":          {"<title>node-17: ok – rdma_exporter</title>", `<section class="glance ok"`, "</span> ok</span> All is well. No action needed</h2>"},
		"stuck": {
			`<b>Stuck:</b> process 81433 was killed but has not ended for <time datetime="2026-03-01T10:00:10Z" title="2026-03-01 10:00:10 UTC">1 h</time>, in <code>ibv_destroy_cq</code>.</p>`,
			`<span class="text warning"><span aria-hidden="true">▲</span> old</span></td>`,
			`</span> older than it should be</span>; it was in <code>ibv_destroy_cq</code><pre>`,
			`<p>1 probe run since the last good one, <time datetime="2026-03-01T09:59:30Z"`,
		},
		"contract_violated": {
			`<span class="badge critical"><span aria-hidden="true">✕</span> violated</span> <code>notify_any</code> critical, checked <time`,
			`<div><dt>Observed</dt><dd>no event within 2s; the completion was there when the queue was polled</dd></div>`,
			`<span class="note text warning"><span aria-hidden="true">▲</span> queried: <b>1023</b></span>`,
			"1 size reported differently when queried; 1 size reduced to a limit",
		},
		"accepted": {
			"<details><summary>2 findings about the host</summary>", "<code>acceptance_unused</code> leaked on mlx4_.*</p>",
			`<details class="accepted"><summary>1 finding is accepted</summary>`, "<b>Why, until 2026-04-30:</b> &lt;b&gt;fixed&lt;/b&gt; in firmware 29, due in April</p>",
			`notify_any <span class="since">for <time datetime="2026-03-01T09:00:00Z" title="2026-03-01 09:00:00 UTC">3 h</time></span></p>`,
			"</span> 1 violated, 1 more accepted</span>",
		},
		"known_of_driver": {
			"<div><dt>Driver</dt><dd>hns</dd></div>", `<span class="more"><b>255</b> less, as the driver is known to</span>`, `<span class="note">queried: 1023, as the driver is known to</span>`,
			"</span> none violated except as the driver is known to</span> 2 hold, 1 could not be checked.</p>\n<details><summary>Not checked: 1</summary>", "<h4>Known driver errata</h4>", "that it breaks: 4. No action needed</summary>",
			"<code>cq_destroy_busy</code> is kept here. A queue in use", "<b>Programs:</b> Take the sizes", "hns_roce_cq.c. Observed: EBUSY</span></li>",
		},
		"leaks": {
			"2048 rc rts, 12 ud rts, <b class=\"text warning\"><span aria-hidden=\"true\">▲</span> 8 rc err</b>.</p>",
			`<td class="headroom">no limit reported</td><td>9</td><td>0</td><td>0</td><td>0</td><td><b class="text critical"><span aria-hidden="true">✕</span> 1</b></td>`,
			`<tr><th scope="row">all</th><td></td><td>qp</td><td>1481 → 2061 in 58 min, 10 a minute</td>`,
			`<td>python3</td><td>qp</td><td>1420 → 2000 in 58 min, 10 a minute</td><td><b class="text warning"><span aria-hidden="true">▲</span> all the time, never fewer</b></td><td>13 min</td><td><code title="3f2a1b2c3d4e`,
			`<span class="text warning">`, "Smaller owners have 48 qp. The kernel names no process for 2 pd, 10 qp.</p>",
			`<span class="note">Exhausted at 4012, `, "(ibv_create_cq: ENOMEM)</span>",
			`<tr><th scope="row">a process that was never seen</th><td>10 qp, 2 pd</td>`, `<tr><th scope="row">a child of the exporter (probe run, timeout in ibv_destroy_cq)</th><td>1 ctx, 2 cq</td>`,
		},
		"permission_denied": {
			"the verb that failed: <code>ibv_open_device</code> <code>EACCES</code><pre>open the device: ",
			"<p>17 probe runs since the last good one; none has succeeded yet.</p>",
		},
		"memlock_too_small": {
			"; event: 2 × port_err of port 1", "; event: 1 × device_fatal",
			"(<code>ibv_create_cq</code> <code>ENOMEM</code>)" + locked, "<li>skipped not_permitted (ibv_reg_mr: ENOMEM)" + locked,
			"Every size is at least as requested.", "ud 828 bytes (accepted, not tried)", "<b>notification</b> <span class=\"badge unknown\">",
		},
		"slow_vector": {
			"<p>2 devices: 1 critical, 1 ok. Findings: 1 critical, 1 info.</p>",
			`<a href="#device-mlx5_0">mlx5_0</a>, missed events: 7 completions whose event did not come by the deadline. Where: loopback any on port 1, vector 3: 7, while 100 samples went well.</p>`,
			"note <code>slow_vector</code> vector 13</p>", "<p>A thread that sleeps on this vector is woken late.",
			`<span class="line">of 1500 samples</span> <span class="line text critical"><span aria-hidden="true">✕</span> 7 missed</span></p>`,
			"15 of 16 measured, usually 9.38 µs; 1 slow; 1 with errors. The higher a cell, the longer notification takes, up to 94.8 µs.</p>",
			`<desc>15 of 16 measured, usually 9.38 µs; 1 slow; 1 with errors</desc><text class="row" x="23" y="42">0</text><rect class="usual" x="29" y="39" width="8" height="3"><title>0: median 8.98 µs, p99 25.6 µs</title></rect>`,
			`<rect class="slow" x="149" y="14" width="8" height="28"><title>13: median 94.8 µs, p99 270 µs, slow</title>`,
			`<p class="text critical"><span aria-hidden="true">✕</span> <b>Vector 3:</b> median 9.06 µs, p99 25.8 µs, 7 events or completions went wrong, <time`,
			`<p class="text warning"><span aria-hidden="true">▲</span> <b>Vector 13:</b> median 94.8 µs, p99 270 µs, slow, <time datetime="2026-03-01T11:59:48Z"`,
			"<desc>16 of 16 measured, usually 9.3 µs</desc>",
		},
		"peers": {
			`<thead><tr><th scope="col">peer</th><th scope="col">its device</th><th scope="col">result</th>`,
			`<tr><th scope="row">node-18:10879</th><td>mlx5_0</td><td>ok, RC success</td><td></td><td>2.9 µs, 3.4 µs, 81 µs</td><td>0, 0 of 9</td><td>4096</td><td>20 s ago</td></tr>`,
			`<p><span class="badge warning"><span aria-hidden="true">▲</span> lost_forward</span> <b>node-19:10879, mlx5_0:</b> 6 of 9 packets were lost on the way there, 1 on the way back.</p>`,
			`<p><span class="badge info"><span aria-hidden="true">i</span> control_unreachable</span> <b>node-21:10879:</b> dial tcp: connection refused.</p>`,
		},
		"left_alone": {
			"; reduced: mpirun (process 4711) holds queue pairs</li>", "; put off: mpirun (process 4711) holds queue pairs</li>",
			"not run yet, or switched off; put off: the kernel does not tell", "<p>Put off: mpirun (process 4711) holds queue pairs.</p>", `<tr class="ok" role="row">`,
		},
	}
}

// TestPages verifies that the whole page of a host in each state is sound.
func TestPages(t *testing.T) {
	t.Parallel()
	style := regexp.MustCompile(`(?s)<style>.*</style>`)
	for _, host := range apitest.Hosts() {
		t.Run(host.Name, func(t *testing.T) {
			t.Parallel()
			body := page(t, host).Body.String()
			for _, err := range flaws(body) {
				t.Error(err)
			}
			says, ok := more()[host.Name]
			if !ok {
				golden.Check(t, filepath.Join("testdata", host.Name+".html"), style.ReplaceAllLiteralString(body, "<style>page.css</style>"))
			}
			for _, text := range says {
				if !strings.Contains(body, text) {
					t.Errorf("the page does not say %s", text)
				}
			}
		})
	}
}

// emptyHeading matches a heading without content.
var emptyHeading = regexp.MustCompile(`<h4>[^<]*</h4>\s*(?:<h|</)`)

// flaws returns what is wrong with a page. It must be well-formed, and have nothing that its
// policy forbids.
func flaws(body string) []error {
	var errs []error
	flaw := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if !utf8.ValidString(body) {
		flaw("not UTF-8")
	}
	if i := strings.IndexFunc(body, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }); i >= 0 {
		flaw("%.20q is not to be seen", body[i:])
	}
	if heading := emptyHeading.FindString(body); heading != "" {
		flaw("nothing is below %q", heading)
	}
	ids := make(map[string]int)
	var links, open []string
	heading := 0
	d := xml.NewDecoder(strings.NewReader(body))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			flaw("not well-formed: %w", err)
			break
		}
		if _, ends := token.(xml.EndElement); ends {
			open = open[:len(open)-1]
			continue
		}
		element, starts := token.(xml.StartElement)
		if !starts {
			continue
		}
		name := element.Name.Local
		open = append(open, name)
		attributes := make(map[string]string)
		for _, a := range element.Attr {
			if _, twice := attributes[a.Name.Local]; twice {
				flaw("<%s> has %s twice", name, a.Name.Local)
			}
			attributes[a.Name.Local] = a.Value
			if a.Name.Local == "style" || strings.HasPrefix(a.Name.Local, "on") || a.Name.Space != "" {
				flaw("<%s> has the attribute %s %s", name, a.Name.Space, a.Name.Local)
			}
		}
		if id, ok := attributes["id"]; ok {
			ids[id]++
		}
		if href, ok := attributes["href"]; ok {
			links = append(links, href)
		}
		switch name {
		case "script", "link", "img", "image", "iframe", "object", "embed", "base", "form", "input", "button", "use", "foreignObject":
			flaw("there is a <%s>", name)
		case "th":
			if attributes["scope"] == "" {
				flaw("a <th> has no scope")
			}
		case "svg":
			if attributes["role"] != "img" {
				flaw("an <svg> is no image")
			}
		case "table":
			if role := attributes["role"]; role != "table" && !slices.Contains(open, "div") {
				flaw("a table may be wider than the page")
			}
		case "h1", "h2", "h3", "h4":
			level := int(name[1] - '0')
			if level > heading+1 {
				flaw("<%s> follows <h%d>", name, heading)
			}
			heading = level
		}
		for _, attribute := range []string{"src", "srcset", "xlink:href", "action", "data", "poster"} {
			if _, ok := attributes[attribute]; ok {
				flaw("<%s> has %s", name, attribute)
			}
		}
	}
	for id, n := range ids {
		if n > 1 || strings.ContainsFunc(id, unicode.IsSpace) {
			flaw("id %q is there %d times, or has a space", id, n)
		}
	}
	for _, link := range links {
		if id, inside := strings.CutPrefix(link, "#"); inside && ids[id] == 0 || !inside && !strings.HasPrefix(link, "./") {
			flaw("a link leads to %q", link)
		}
	}
	return errs
}

func TestFlaws(t *testing.T) {
	for _, body := range []string{
		"<p>", "<p></b>", "<p>&lt;&x;</p>", "\x1b", "\xff", `<p style="x"></p>`, `<p onclick="x"></p>`, "<script></script>",
		`<a href="http://x"></a>`, `<a href="#x"></a>`, `<p><b id="x"></b><b id="x"></b></p>`, "<th></th>", "<h3></h3>", "<table></table>",
		"<h1>a</h1><h2>b</h2><h3>c</h3><div><h4>d</h4>\n</div>",
	} {
		if len(flaws(body)) == 0 {
			t.Errorf("%q is without a flaw", body)
		}
	}
	if errs := flaws(`<a id="x" href="#x">x</a>`); errs != nil {
		t.Error(errs)
	}
}

// FuzzPage verifies that no text from outside breaks the page or the JSON.
func FuzzPage(f *testing.F) {
	for _, text := range []string{
		"mlx5_0", "", "</style><script>alert(1)</script>", `" onload="x`, "'; x", "a b", "#x", "javascript:x", "\xff\x00\x1b\n\u202e", "`a` `b", "`<b>`", "{{.}}",
		"&amp;&#39;", "]]>", "<!--", strings.Repeat("x", 5000), "active", "qp_rc",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s := apitest.Hostile(text)
		h := handler(t, hostConfig(s))
		for _, err := range flaws(get(h, "GET", "/").Body.String()) {
			t.Error(err)
		}
		if body := get(h, "GET", "/api/v2/status").Body.Bytes(); !utf8.Valid(body) || bytes.ContainsAny(body, "\x1b\u202e<>&") {
			t.Errorf("the JSON has raw text")
		}
	})
}

// TestGlance verifies that the top of the page says what is wrong and what to do.
func TestGlance(t *testing.T) {
	want := map[string][]string{
		"not_listed":        {"unknown", "have not been listed yet", "Wait"},
		"discovery_failed":  {"critical", "could not be listed", "permission denied", "<code>ls -l /sys/class/infiniband</code>"},
		"no_devices":        {"warning", "No RDMA device was found", "<code>ls /sys/class/infiniband</code>", "--provider=simulated"},
		"not_probed":        {"unknown", "1 of 1 device not probed yet"},
		"healthy":           {"ok", "All is well. No action needed", "2 devices: 2 ok."},
		"stuck":             {"critical", "1 of 2 devices needs attention", "mlx5_0", "has not ended", "ibv_destroy_cq", "<code>cat /proc/81433/stack</code>"},
		"contract_violated": {"critical", "1 of 2 devices needs attention", "mlx5_0</a>, notify_any: ", "no event within 2s", "docs/reference/contracts.md#notify_any", "mlx5_0</a>, srq_reports_actual: "},
		"accepted":          {"warning", "2 of 2 devices need attention", "Findings: 3 warning, 2 accepted.", "mlx5_1</a>, port 1: ", `<span class="since">for`, "expired on 2026-02-28", "ticket 4711"},
		"known_of_driver":   {"ok", "All is well. No action needed", "1 device: 1 ok."},
		"leaks":             {"critical", "3 objects (2 cq, 1 ctx)", "--device.exclude=mlx5_0", "2061 queue pairs and allows 2200", "Without a living owner: 12 objects"},
		"slow_vector":       {"critical", "7 completions whose event did not come by the deadline", "vector 3: 7", "/proc/interrupts"},
		"permission_denied": {"critical", "The device needs attention", "permission denied", "<code>ls -l /dev/infiniband</code>"},
		"memlock_too_small": {"critical", "The device needs attention", "ENOMEM", "may lock 64 KiB", "LimitMEMLOCK=infinity"},
		"peers":             {"ok", "All is well. No action needed"},
		"left_alone":        {"ok", "All is well. No action needed", "2 devices: 2 ok."},
		"simulated":         {"Simulated devices:", "unknown", "2 of 3 devices not probed yet, or not recently", "The first probe run has not finished on every device"},
		"hostile":           {"critical", "&lt;script&gt;"},
	}
	for _, host := range apitest.Hosts() {
		glance, _, _ := strings.Cut(page(t, host).Body.String(), `id="devices"`)
		_, glance, _ = strings.Cut(glance, "</header>")
		if len(want[host.Name]) == 0 {
			t.Errorf("nothing is expected of %s", host.Name)
		}
		for _, w := range want[host.Name] {
			if !strings.Contains(glance, w) {
				t.Errorf("%s: at a glance there is no %q:\n%s", host.Name, w, glance)
			}
		}
	}
}

// TestContentSecurityPolicy verifies that the policy allows only the page's style. TestPages
// verifies that the page needs nothing else.
func TestContentSecurityPolicy(t *testing.T) {
	w := page(t, apitest.Many(2, 4))
	style := regexp.MustCompile(`(?s)<style>(.*)</style>`).FindStringSubmatch(w.Body.String())
	if style == nil {
		t.Fatal("no style")
	}
	hash := sha256.Sum256([]byte(style[1]))
	want := "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(hash[:]) +
		"'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
	if got := w.Header().Get("Content-Security-Policy"); got != want {
		t.Errorf("got policy %q, want %q", got, want)
	}
	for _, unwanted := range []string{"@import", "url(", "expression", "//"} {
		if strings.Contains(style[1], unwanted) {
			t.Errorf("the style has %q", unwanted)
		}
	}
	for name, want := range map[string]string{
		"Content-Type": "text/html; charset=utf-8", "Cache-Control": "no-store", "Referrer-Policy": "no-referrer",
		"X-Content-Type-Options": "nosniff", "Refresh": "",
	} {
		if got := w.Header().Get(name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

func TestRefresh(t *testing.T) {
	h := handler(t, config(devices()))
	for query, want := range map[string]string{
		"refresh=30": "30", "refresh=1": "5", "refresh=-9": "5", "refresh=86400": "3600",
		"refresh=": "", "refresh=1%0d%0aX:y": "", "refresh=9999999999999999999999": "", "": "",
	} {
		if got := get(h, "GET", "/?"+query).Header().Get("Refresh"); got != want {
			t.Errorf("%q: got %q, want %q", query, got, want)
		}
	}
}

// TestManyDevices verifies that only the unhealthy ones of many devices are open, and that the
// page stays small. TestTroublesTogether has a problem of all of them.
func TestManyDevices(t *testing.T) {
	t.Parallel()
	for _, err := range flaws(page(t, apitest.Many(4, 64)).Body.String()) {
		t.Error(err)
	}
	body := page(t, apitest.Many(64, 64)).Body.String()
	opened := regexp.MustCompile(`<details class="device \w+" open="">\n<summary><h3>(\w+)</h3>`).FindAllStringSubmatch(body, -1)
	var names []string
	for _, o := range opened {
		names = append(names, o[1])
	}
	if want := []string{"mlx5_42", "mlx5_07", "mlx5_23"}; !slices.Equal(names, want) {
		t.Errorf("%v are shown in full, want %v", names, want)
	}
	if n := strings.Count(body, `<details class="device `); n != 64 {
		t.Errorf("%d devices are there", n)
	}
	if most := 3 << 20; len(body) > most {
		t.Errorf("the page has %d bytes", len(body))
	}
}

// TestAnchors verifies that links to devices with any name work.
func TestAnchors(t *testing.T) {
	s := new(state.Snapshot)
	for _, name := range []string{"mlx5_0", "a b", "ä", "", ".1", "rxe-0.1"} {
		s.Devices = append(s.Devices, state.DeviceState{Name: name, Present: true})
	}
	body := page(t, apitest.Host{Snapshot: s}).Body.String()
	for _, err := range flaws(body) {
		t.Error(err)
	}
	for _, want := range []string{
		`href="#device-mlx5_0"`, `<div class="body" id="device-mlx5_0">`, `id="device-rxe-0.1"`, `id="device-.1"`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("no %s", want)
		}
	}
}

// TestDocuments verifies that the page links to documents if their address is known.
func TestDocuments(t *testing.T) {
	const name, contracts = "mlx5_0", "docs/reference/contracts.md"
	for _, tt := range []struct {
		url              string
		unwanted, wanted []string
	}{
		{"", []string{"http", "docs/reference/findings.md"}, []string{
			"<code>contract_violated</code>", "<code>notify_any</code>", " " + contracts + "#notify_any says",
		}},
		{"https://git.example/?p=x&f=/", []string{"?p=x&f="}, []string{
			`<a href="https://git.example/?p=x&amp;f=/docs/reference/findings.md#contract_violated"><code>contract_violated</code></a>`,
			`<a href="https://git.example/?p=x&amp;f=/docs/reference/findings.md#port_down"><code>port_down</code></a>`,
			`<a href="https://git.example/?p=x&amp;f=/docs/reference/findings.md#acceptance_unused"><code>acceptance_unused</code></a>`,
			`<a href="https://git.example/?p=x&amp;f=/docs/reference/contracts.md#notify_any"><code>notify_any</code></a>`,
			`<a href="https://git.example/?p=x&amp;f=/docs/reference/contracts.md#cq_at_least_requested"><code>cq_at_least_requested</code></a>`,
			`. <a href="https://git.example/?p=x&amp;f=/docs/reference/contracts.md#notify_any">https://git.example/?p=x&amp;f=/docs/reference/contracts.md#notify_any</a> says`,
			`(<a href="https://git.example/?p=x&amp;f=/docs/reference/contracts.md">https://git.example/?p=x&amp;f=/docs/reference/contracts.md</a>):`,
		}},
	} {
		d := apitest.Device(name, 4)
		d.Contracts.Verdicts = append(d.Contracts.Verdicts, state.Contract{
			Name: "notify_any", Severity: state.SeverityCritical, Verdict: state.VerdictViolated, Asked: "a", Expected: "b", Observed: "c", CheckedAt: apitest.Now(),
		}, state.Contract{
			Name: "cq_at_least_requested", Severity: state.SeverityCritical, Verdict: state.VerdictViolated, Known: true, Fact: "a", Source: "b", CheckedAt: apitest.Now(),
		})
		d.Last.Info.Ports = append(d.Last.Info.Ports, state.Port{Number: 2, State: "down", LinkLayer: "Ethernet"})
		d.Last.Probes[0].Status, d.Last.Probes[0].Failures = state.StatusFailed, []state.Failure{{Subject: state.Subject{Object: "cq", Profile: "small"}, Verb: "ibv_create_cq", Message: "asked for cqe 16, given 15"}}
		c := health.Default()
		c.DocsURL = tt.url
		c.Accept = []health.Accept{
			{Finding: health.FindingPortDown, Reason: "spare"},
			{Finding: health.FindingLeaked, Reason: "known", Until: "2026-01-01"},
		}
		c.Now = apitest.Now
		h := health.New(c, health.History{}).Evaluate(&state.Snapshot{Ready: true, Devices: []state.DeviceState{d}})
		host := config(h.Snapshot)
		host.Status = func(now time.Time) *api.Status { return api.New(h, api.Options{Now: now}) }
		body := get(handler(t, host), "GET", "/").Body.String()
		for _, want := range tt.wanted {
			if !strings.Contains(body, want) {
				t.Errorf("%q: no %s", tt.url, want)
			}
		}
		for _, unwanted := range tt.unwanted {
			if strings.Contains(body, unwanted) {
				t.Errorf("%q: %s", tt.url, unwanted)
			}
		}
		for _, err := range flaws(strings.ReplaceAll(body, `href="https://git.example/`, `href="./`)) {
			t.Errorf("%q: %v", tt.url, err)
		}
	}
}
