package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"rdma_exporter/internal/api/apitest"
	"rdma_exporter/internal/health"
	"rdma_exporter/internal/path"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/wire"
	"rdma_exporter/test/running"
)

// TestReload: what is in the file holds, for findings and children alike; a file that
// cannot be used changes nothing, and says so.
func TestReload(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "config.yaml")
	o := newOptions()
	o.configFile = path
	children := testCommands(t)
	evaluator := health.NewFinder(o.findings, health.History{}, func(*state.DeviceState) []health.Finding {
		return []health.Finding{{Kind: health.FindingPortDown, Severity: health.SeverityWarning, Subject: "port 1"}}
	})
	s := &state.Snapshot{Devices: []state.DeviceState{apitest.Device("mlx5_0", 4)}}
	r := &reloader{flags: *o, children: children, evaluator: evaluator, findings: health.Config{Now: time.Now}, probesChanged: func() {}}
	r.latest.Store(new(loaded))
	var before time.Time
	for _, step := range []struct {
		file, says string
		ok         bool
		health     health.Health
		entries    int
		docs       string
	}{
		{"", "", true, health.Warning, 256, ""},
		{"accept: [{finding: port_down, reason: spare}]\nprobe: {cq: {medium: {entries: 99}}}\ndocs_url: https://git.example/", "", true, health.OK, 99, "https://git.example/"},
		{"accept: [{finding: port_down}]\nprobe: {cq: {medium: {entries: 100}}}", "accept[0].reason is missing", false, health.OK, 99, "https://git.example/"},
		{"probe: {destroy_timeout: 59s}", "--probe.timeout 10s leaves no time", false, health.OK, 99, "https://git.example/"},
		{"accept: [", "did not find expected node content", false, health.OK, 99, "https://git.example/"},
		{"docs_url: git.example", "docs_url is", false, health.OK, 99, "https://git.example/"},
		{"findings: {qp_errors: 2}", "", true, health.Warning, 256, ""},
	} {
		running.Check(t, os.WriteFile(path, []byte(step.file), 0o600))
		err := r.reload()
		if (err == nil) != step.ok || err != nil && !strings.Contains(err.Error(), step.says) {
			t.Errorf("%s: %v", step.file, err)
		}
		last := r.latest.Load()
		if last.ok != step.ok || step.ok != last.at.After(before) {
			t.Errorf("%s: ok %v, loaded at %s, before at %s", step.file, last.ok, last.at, before)
		}
		before = last.at
		if got := evaluator.Evaluate(s).At(time.Now()); got != step.health {
			t.Errorf("%s: the host is %s, want %s", step.file, got, step.health)
		}
		if got := evaluator.Evaluate(s).DocsURL; got != step.docs {
			t.Errorf("%s: documents are at %q, want %q", step.file, got, step.docs)
		}
		if got := decoded(t, children.start(state.KindProbe, "sim0", wire.Request{}).Stdin).Settings.Probe.CQ.Medium.Entries; got != step.entries {
			t.Errorf("%s: children ask for %d entries, want %d", step.file, got, step.entries)
		}
	}
}

// TestReloadOfTheSame: a reload that changes nothing makes no full run due, whatever the timeout,
// from which some settings follow. One that changes a size does.
func TestReloadOfTheSame(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "config.yaml")
	o := newOptions()
	o.configFile, o.schedule.Timeout = path, 2*time.Minute
	changes := 0
	r := &reloader{
		flags: *o, children: newCommands(o.settings()), findings: health.Config{Now: time.Now},
		evaluator: health.New(o.findings, health.History{}), probesChanged: func() { changes++ },
	}
	for _, step := range []struct {
		file string
		want int
	}{{"", 0}, {"docs_url: https://git.example/", 0}, {"probe: {cq: {medium: {entries: 99}}}", 1}, {"probe: {cq: {medium: {entries: 99}}}", 1}} {
		running.Check(t, os.WriteFile(path, []byte(step.file), 0o600))
		if err := r.reload(); err != nil || changes != step.want {
			t.Errorf("%q: %v, %d changes, want %d", step.file, err, changes, step.want)
		}
	}
}

// TestAcceptFile: a file with something to accept is taken, or refused in one line.
func TestAcceptFile(t *testing.T) {
	t.Parallel()
	for text, says := range map[string]string{
		"accept: []": "",
		"accept:":    "",
		"accept: [{finding: contract_violated, contract: notify_any, device: mlx5_.*, reason: known, until: 2026-12-31}]": "",
		"accept: [{finding: port_down, reason: known, until: \"2026-12-31\"}]":                                            "",
		"accept: [{finding: port_down, reason: known, until: 31.12.2026}]":                                                `accept[0].until is "31.12.2026"`,
		"accept: [{finding: contract_violated, contract: notify_sany, reason: known}]":                                    `accept[0].contract is "notify_sany": there is no such contract`,
		"accept: [{finding: port_down, reason: known, who: me}]":                                                          `there is no key "who"`,
		"accept: {finding: port_down}":                   "found a mapping, expected a list",
		"accept: port_down":                              "found `port_down`, expected a list",
		"accept: [port_down]":                            "found `port_down`, expected a mapping",
		"accept: [{finding: [port_down], reason: x}]":    "found a list, expected text",
		"accept: [{finding: port_down, reason: {a: b}}]": "found a mapping, expected text",
		"accept: [{}, {reason: x}]":                      "accept[0].finding is missing: name a kind of finding; docs/reference/findings.md lists them; accept[0].reason is missing: say why this is accepted; accept[1].finding is missing",
	} {
		err := decodeConfig([]byte(text), &fileConfig{Probe: newOptions().probe, Findings: health.Default(), Path: path.DefaultConfig()})
		if (err == nil) != (says == "") || err != nil && (!strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%s: got %v, want %s", text, err, says)
		}
	}
}

// TestDocsURL: documents are at an absolute URL of the web with a slash at its end, of
// characters that need no escaping.
func TestDocsURL(t *testing.T) {
	t.Parallel()
	for url, ok := range map[string]bool{
		"":                                   true,
		"~":                                  true,
		"https://git.example/rdma_exporter/": true,
		"http://10.0.0.7:8080/":              true,
		"https://[2001:db8::7]:8443/a%20b/":  true,
		"https://git.example/x/-/blob/v1.2/": true,
		"https://git.example/?p=x;f=/":       true,
		"https://git.example/" + strings.Repeat("x", 479) + "/": true,
		"https://git.example/" + strings.Repeat("x", 480) + "/": false,
		"https://git.example":              false,
		"https://git.example/docs":         false,
		"https://git.example/#/":           false,
		"https://me:secret@git.example/":   false,
		"https://git.example:https/":       false,
		"https://git.example/%2/":          false,
		"https://git.example/a b/":         false,
		"https://git.example/\"><script>/": false,
		"https://git.example/`x`/":         false,
		"https://git.example/{device}/":    false,
		"https://git.example/é/":           false,
		"https://git.example/\n/":          false,
		"https:///docs/":                   false,
		"//git.example/":                   false,
		"/usr/share/doc/rdma_exporter/":    false,
		"file:///usr/share/doc/":           false,
		"javascript:alert(1)//":            false,
		"[https://git.example/]":           false,
	} {
		text := "docs_url: " + strconv.Quote(url)
		if url == "~" || strings.HasPrefix(url, "[") {
			text = "docs_url: " + url
		}
		err := decodeConfig([]byte(text), &fileConfig{Probe: newOptions().probe, Findings: health.Default(), Path: path.DefaultConfig()})
		if (err == nil) != ok || err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v", text, err)
		}
	}
}
