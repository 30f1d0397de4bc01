package main

import (
	"regexp"
	"strings"
	"testing"
)

// TestManPage verifies that the page has a title of one line, a line for apropos(1), and the flags of
// all commands. test/systemd/install verifies that it can be rendered.
func TestManPage(t *testing.T) {
	t.Parallel()
	_, status, page := parsed(t, "--help-man")
	titles := regexp.MustCompile(`(?m)^\.TH .*$`).FindAllString(page, -1)
	if status != exitOK || len(titles) != 1 || !regexp.MustCompile(`^\.TH RDMA_EXPORTER 1 "" "rdma_exporter [^"]*" "User Commands"$`).MatchString(titles[0]) {
		t.Errorf("status %d, the titles are %q", status, titles)
	}
	for _, part := range []string{
		".SH NAME\nrdma_exporter \\- Prometheus exporter", "\\fBaudit ", `\fB-h, \-\-help\fR`, `\fB\-\-probe.interval=1m\fR`, `\fB\-\-fail-on=`, `\fB\-\-ready\fR`, ".SH FILES",
	} {
		if !strings.Contains(page, part) {
			t.Errorf("the page has no %q:\n%s", part, page)
		}
	}
	for _, hidden := range []string{`fBinventory`, `\-\-completion`, "<no value>"} {
		if strings.Contains(page, hidden) {
			t.Errorf("the page has %q", hidden)
		}
	}
	if _, _, other := parsed(t, "audit", "--help-man"); other != page {
		t.Errorf("the page of the command audit is another one:\n%s", other)
	}
}
