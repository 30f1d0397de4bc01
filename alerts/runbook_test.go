package alerts_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"rdma_exporter/test/running"
)

const runbookFile = "../docs/alerts.md"

// TestRunbook verifies that each alert has a section in the runbook with its meaning, how to confirm it and what to
// do, and that each section has an alert.
func TestRunbook(t *testing.T) {
	sections := make(map[string]string)
	for _, s := range strings.Split(string(running.Must(os.ReadFile(runbookFile))(t)), "\n## ")[1:] {
		title, text, _ := strings.Cut(s, "\n")
		if strings.HasPrefix(title, "RDMA") {
			sections[title] = text
		}
	}
	for _, r := range rules(t, alertsFile) {
		text, ok := sections[r.Alert]
		if !ok {
			t.Errorf("%s has no section for %s", runbookFile, r.Alert)
			continue
		}
		delete(sections, r.Alert)
		for _, part := range []string{"**Meaning:** ", "**Confirm by hand:** ", "**What to do:** "} {
			if !strings.Contains("\n"+text, "\n- "+part) {
				t.Errorf("%s: the section %s has no line that begins with %q", runbookFile, r.Alert, part)
			}
		}
	}
	for title := range sections {
		t.Errorf("%s has a section for %s, which is no alert", runbookFile, title)
	}
}

// TestRunbookNames verifies that the alerts, metrics and flags in the runbook exist. test/docs checks the links.
func TestRunbookNames(t *testing.T) {
	text := string(running.Must(os.ReadFile(runbookFile))(t))
	known := make(map[string]bool)
	for _, r := range append(rules(t, recordingFile), rules(t, alertsFile)...) {
		known[r.Record+r.Alert] = true
	}
	for name := range documented(t) {
		known[name] = true
	}
	named := func(pattern string) []string { return regexp.MustCompile(pattern).FindAllString(text, -1) }
	for _, alert := range named(`RDMA[A-Z][A-Za-z]+`) {
		if !known[alert] {
			t.Errorf("%s: there is no alert %s", runbookFile, alert)
		}
	}
	for _, metric := range named(`[a-z_]*:?rdma_[a-z0-9_]+[a-z0-9_:]*`) {
		// The exporter, its folder and its groups are no metrics.
		if !known[metric] && metric != "rdma_exporter" && !strings.HasPrefix(metric, "rdma_exporter_") {
			t.Errorf("%s: there is no metric %s", runbookFile, metric)
		}
	}
	flag := regexp.MustCompile(`--[a-z]+\.[a-z-]+`)
	flags := flag.FindAllString(string(running.Must(os.ReadFile("../docs/reference/configuration.md"))(t)), -1)
	for _, name := range flag.FindAllString(text, -1) {
		if !slices.Contains(flags, name) {
			t.Errorf("%s: there is no flag %s", runbookFile, name)
		}
	}
}
