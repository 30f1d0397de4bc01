package main

import (
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"rdma_exporter/internal/health"
	"rdma_exporter/internal/path"
	"rdma_exporter/internal/probe"
)

// FuzzConfigFile makes sure that a configuration file is refused, or leaves a
// configuration that can be used.
func FuzzConfigFile(f *testing.F) {
	doc, err := os.ReadFile("../../docs/reference/configuration.md")
	if err != nil {
		f.Fatal(err)
	}
	for _, block := range strings.Split(string(doc), "```yaml\n")[1:] {
		text, _, _ := strings.Cut(block, "```")
		f.Add([]byte(text))
	}
	for _, s := range []string{
		"", "---\n---\n", "probe: {cq: {large: {entries: 99999999999999999999}}}", "probe: {destroy_timeout: -1s}", "findings: {near_limit: {warning: .nan}}",
		"probe: &a {cq: *a}", "a: &a [x]\nb: &b [*a,*a]\n<<: *b", "probe: [1]", "findings: {orphan_age: !!binary /w==}", "\xff", "!!set {probe}", "00000\U0007ea300000",
		"accept: [{finding: port_down, device: 'a)|(b', reason: x, until: 2026-02-30}]", "accept: [{finding: contract_violated, contract: notify_any, reason: !!binary /w==}]", "accept: {a: b}", "accept: [null, ~]", "accept: [{!!binary 0000}]",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c := fileConfig{Probe: probe.DefaultConfig(), Findings: health.Default(), Path: path.DefaultConfig()}
		if err := decodeConfig(data, &c); err != nil {
			if s := err.Error(); s == "" || utf8.Valid(data) && !utf8.ValidString(s) {
				t.Errorf("the error is %q", s)
			}
			return
		}
		if err := c.Probe.Validate(); err != nil {
			t.Error(err)
		}
		if err := c.Findings.Validate(); err != nil {
			t.Error(err)
		}
		if err := health.ValidateAccepts(c.Accept); err != nil {
			t.Error(err)
		}
		c.Findings.Accept = c.Accept
		health.New(c.Findings, health.History{}).Evaluate(nil)
	})
}

// FuzzSettings makes sure that a child refuses what it is told, or can use it.
func FuzzSettings(f *testing.F) {
	for _, s := range []string{
		"", " \n", "null", "{}", `{"settings":{"provider":"simulated"},"request":{"done":["notify_any"]}}`, `{"settings":{"profile":{"Devices":[]}}}`, `{"settings":{"profile":{"Devices":[{"Name":"?"}]}}}`,
		`{"settings":{"probe":{"notification":{"samples":-1,"vectors":9223372036854775807}}}}`, `{"settings":{"inventory":{"max_objects":1e99}}}`, `{"request":{"turn":-1}}`, "[", "\xff",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := readInput(newOptions(), strings.NewReader(text))
		if err == nil {
			err = s.Settings.Probe.Validate()
			if err != nil {
				t.Error(err)
			}
		}
	})
}
