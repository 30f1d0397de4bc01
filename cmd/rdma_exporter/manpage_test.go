package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// manPage returns the manual page.
func manPage(t *testing.T, args ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	status := run(t.Context(), args, stdio{in: strings.NewReader(""), out: &out, err: &errs})
	if status != exitOK || errs.Len() > 0 {
		t.Fatalf("%v: status %d\n%s", args, status, errs.String())
	}
	return out.String()
}

// TestManPage makes sure that the page has a title of one line, a line for apropos(1),
// and the flags of all commands that people call.
func TestManPage(t *testing.T) {
	page := manPage(t, "--help-man")
	if titles := regexp.MustCompile(`(?m)^\.TH .*$`).FindAllString(page, -1); len(titles) != 1 ||
		!regexp.MustCompile(`^\.TH RDMA_EXPORTER 1 "[^"]*" "rdma_exporter [^"]*" "[^"]+"$`).MatchString(titles[0]) {
		t.Errorf("the titles are %q, want one with five arguments", titles)
	}
	for _, part := range []string{
		".SH NAME\nrdma_exporter \\- Prometheus exporter", "\n.B audit\n",
		`\fB\-h, \-\-[no\-]help\fR`, `\fB\-\-probe.interval\fR=\fI1m\fR`, `\fB\-\-[no\-]web.systemd\-socket\fR`,
		`\fB\-\-fail\-on\fR=`, `\fB\-\-[no\-]ready\fR`,
	} {
		if !strings.Contains(page, part) {
			t.Errorf("the page has no %q:\n%s", part, page)
		}
	}
	for _, hidden := range []string{".B inventory", `\-\-completion`, "<no value>"} {
		if strings.Contains(page, hidden) {
			t.Errorf("the page has %q:\n%s", hidden, page)
		}
	}
	if other := manPage(t, "audit", "--help-man"); other != page {
		t.Errorf("the page of the command audit is another one:\n%s", other)
	}
}

// TestManPageIsValid has mandoc judge the page. What an installed page looks like is tried in
// test/systemd/install.
func TestManPageIsValid(t *testing.T) {
	mandoc, err := exec.LookPath("mandoc")
	if err != nil {
		t.Skip("there is no mandoc")
	}
	file := filepath.Join(t.TempDir(), "rdma_exporter.1")
	if err := os.WriteFile(file, []byte(manPage(t, "--help-man")), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), mandoc, "-T", "lint", "-W", "error", file).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("mandoc: %v\n%s", err, out)
	}
}

func TestRoff(t *testing.T) {
	for text, want := range map[string]string{
		`a\fB`:               `a\efB`,
		".so /etc/passwd":    `\&.so /etc/passwd`,
		"'x\n.y\n--path=a.b": "\\&'x\n\\&.y\n\\-\\-path=a.b",
	} {
		if got := roff(text); got != want {
			t.Errorf("roff(%q) is %q, want %q", text, got, want)
		}
	}
}
