package docs_test

import (
	"context"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// commands are those that have a help, with flags of their own.
func commands() []string {
	return []string{"serve", "audit", "healthcheck", "verdict", "ceiling", "path", "bandwidth"}
}

var (
	flagOfHelp = regexp.MustCompile(`(?m)^ +(?:-\w, )?--(?:\[no-\])?([a-z][a-z0-9.-]*)`)
	flagOfText = regexp.MustCompile(`(^|[\s"'(\[` + "`" + `])--(?:\[?no-\]?)?([a-z][a-z0-9.-]*[a-z0-9])`)
	command    = regexp.MustCompile(`\brdma_exporter(?: [a-z]+)?(?: [^ |;&<>` + "`" + `]+)*`)
)

// foreign are flags with a dot that pages name and that are of other programs.
func foreign() []string {
	return []string{
		"collector.disable-defaults", "collector.infiniband", "collector.meminfo", "collector.pcidevice", // node_exporter, which has meminfo_numa, too
		"config.custom-plugin-monitor",                                      // node-problem-detector
		"storage.tsdb.path", "storage.tsdb.retention.time", "query.timeout", // Prometheus
	}
}

// flags returns the flags of the exporter and of its commands.
func flags(t *testing.T) []string {
	t.Helper()
	binary := os.Getenv("RDMA_EXPORTER_BINARY")
	if binary == "" {
		t.Fatal("RDMA_EXPORTER_BINARY is not set: set it to the absolute path of the built exporter (make build)")
	}
	var all []string
	for _, c := range commands() {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		out, err := exec.CommandContext(ctx, binary, c, "--help").CombinedOutput()
		cancel()
		if err != nil {
			t.Fatalf("%s %s --help: %v\n%s", binary, c, err, out)
		}
		for _, m := range flagOfHelp.FindAllSubmatch(out, -1) {
			all = append(all, string(m[1]))
		}
	}
	if len(all) < 30 {
		t.Fatalf("the help has only the flags %v", all)
	}
	// What every program built with kingpin has and no help shows.
	return append(all, "help-long", "help-man", "completion-bash", "completion-script-bash", "completion-script-zsh", "completion-script-fish")
}

// TestFlags makes sure that the flags that pages name are there: those that are given
// to the exporter, and those with a dot wherever they stand, as only exporters have such.
func TestFlags(t *testing.T) {
	known := flags(t)
	for _, p := range pages(t) {
		if p.path == "CHANGELOG.md" {
			continue // It names flags that no longer exist.
		}
		text := p.text
		if p.path == "docs/migration.md" {
			text, _, _ = strings.Cut(text, "## From earlier builds") // as above
		}
		for i, line := range strings.Split(text, "\n") {
			for _, m := range flagOfText.FindAllStringSubmatch(line, -1) {
				if strings.Contains(m[2], ".") && !slices.Contains(known, m[2]) && !slices.Contains(foreign(), m[2]) {
					t.Errorf("%s:%d: there is no flag --%s", p.path, i+1, m[2])
				}
			}
			for _, c := range command.FindAllString(line, -1) {
				for _, m := range flagOfText.FindAllStringSubmatch(c, -1) {
					// The children's, which no help shows.
					if !slices.Contains(known, m[2]) && m[2] != "device" {
						t.Errorf("%s:%d: the exporter has no flag --%s", p.path, i+1, m[2])
					}
				}
			}
		}
	}
}

// TestFlagsDocumented makes sure that each flag of the help is in the pages that list
// them.
func TestFlagsDocumented(t *testing.T) {
	var text strings.Builder
	for _, p := range pages(t) {
		switch p.path {
		case "docs/reference/configuration.md", "docs/audit.md", "docs/operations.md", "docs/ceiling.md", "docs/path.md", "docs/bandwidth.md":
			text.WriteString(p.text)
		}
	}
	for _, name := range flags(t) {
		if !strings.HasPrefix(name, "completion") && !strings.HasPrefix(name, "help-") && !regexp.MustCompile("--"+regexp.QuoteMeta(name)+`\b`).MatchString(text.String()) {
			t.Errorf("no page explains --%s", name)
		}
	}
}
