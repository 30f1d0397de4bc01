package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"rdma_exporter/internal/api"
	"rdma_exporter/internal/state"
)

// A device that is there is assessed as ever; one that has vanished is a finding,
// the worst.
func TestWithVanished(t *testing.T) {
	t.Parallel()
	known := &state.Assessment{Findings: []state.Finding{{Kind: state.FindingStuck, Severity: state.SeverityCritical}}}
	if got := withVanished(&state.DeviceState{Present: true}, known); got != known {
		t.Errorf("of one that is there: %+v", got)
	}
	if got := withVanished(&state.DeviceState{Present: true}, nil); got != nil {
		t.Errorf("of one of which nothing is known: %+v", got)
	}
	for _, before := range []*state.Assessment{nil, known} {
		got := withVanished(&state.DeviceState{}, before)
		f := got.Findings[0]
		if f.Kind != state.FindingUnusable || f.Severity != state.SeverityCritical || f.Subject == "" || f.Message == "" || f.Meaning == "" || f.Action == "" {
			t.Errorf("the finding is %+v", f)
		}
		if before != nil && !slices.Equal(got.Findings[1:], known.Findings) {
			t.Errorf("the others are %+v", got.Findings[1:])
		}
	}
	if len(known.Findings) != 1 {
		t.Error("the assessment was changed")
	}
}

// What is accepted does not decide, and hides nothing else.
func TestFailsAccepted(t *testing.T) {
	t.Parallel()
	contract := api.Finding{Kind: state.FindingContract, Severity: state.SeverityCritical, Subject: "notify_any"}
	port := api.Finding{Kind: state.FindingPortDown, Severity: state.SeverityWarning, Subject: "port 1"}
	for _, c := range []struct {
		name              string
		health            api.Health
		findings          []api.Finding
		accepted          []string
		warning, critical bool
	}{
		{"nothing accepted", api.HealthCritical, []api.Finding{contract}, nil, true, true},
		{"the finding", api.HealthCritical, []api.Finding{contract}, []string{"contract_violated/notify_any"}, false, false},
		{"the kind", api.HealthCritical, []api.Finding{contract}, []string{"contract_violated"}, false, false},
		{"another one", api.HealthCritical, []api.Finding{contract}, []string{"contract_violated/notify_one_shot"}, true, true},
		{"one of two", api.HealthCritical, []api.Finding{contract, port}, []string{"contract_violated"}, true, false},
		{"both", api.HealthCritical, []api.Finding{contract, port}, []string{"contract_violated", "port_down/port 1"}, false, false},
		{"critical without a finding", api.HealthCritical, nil, []string{"contract_violated"}, true, true},
		{"unknown nevertheless", api.HealthUnknown, []api.Finding{contract}, []string{"contract_violated"}, true, false},
	} {
		s := api.Status{Devices: []api.Device{{Health: c.health, Findings: c.findings}}}
		if got := fails(&s, state.SeverityWarning, c.accepted); got != c.warning {
			t.Errorf("%s, from warning on: %v", c.name, got)
		}
		if got := fails(&s, state.SeverityCritical, c.accepted); got != c.critical {
			t.Errorf("%s, from critical on: %v", c.name, got)
		}
	}
}

func TestFails(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		healths           []api.Health
		warning, critical bool
	}{
		{nil, false, false},
		{[]api.Health{api.HealthOK}, false, false},
		{[]api.Health{api.HealthOK, api.HealthWarning}, true, false},
		{[]api.Health{api.HealthWarning, api.HealthCritical}, true, true},
		{[]api.Health{api.HealthUnknown}, true, false},
	} {
		var s api.Status
		for _, h := range c.healths {
			s.Devices = append(s.Devices, api.Device{Health: h})
		}
		if got := fails(&s, state.SeverityWarning, nil); got != c.warning {
			t.Errorf("%v from warning on: %v", c.healths, got)
		}
		if got := fails(&s, state.SeverityCritical, nil); got != c.critical {
			t.Errorf("%v from critical on: %v", c.healths, got)
		}
	}
}

func TestQuotedList(t *testing.T) {
	t.Parallel()
	if got := quotedList([]string{"a", "b\x1b"}); got != `"a", "b\x1b"` {
		t.Error(got)
	}
	if got := quotedList(slices.Repeat([]string{"a"}, 33)); !strings.HasSuffix(got, `"a", and 13 more`) {
		t.Error(got)
	}
}

// names are what a folder has.
func names(t *testing.T, folder string) []string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

func TestReplace(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "a*b.prom") // A star has no meaning in it.
	for _, text := range []string{"one", "", strings.Repeat("two", 1<<20)} {
		if err := replace(path, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != text {
			t.Errorf("%v: %.10q", err, got)
		}
		if info, err := os.Stat(path); err != nil || info.Mode() != outputMode {
			t.Errorf("%v: %v", err, info)
		}
		if got := names(t, dir); !slices.Equal(got, []string{"a*b.prom"}) {
			t.Errorf("the folder has %q", got)
		}
	}
}

// What cannot be replaced stays, and nothing else is left.
func TestReplaceFails(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	full := filepath.Join(dir, "folder")
	if err := os.MkdirAll(filepath.Join(full, "file"), 0o755); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]error{
		full:                               syscall.EEXIST, // as it is of a directory
		filepath.Join(dir, "none", "file"): fs.ErrNotExist,
		filepath.Join(dir, strings.Repeat("x", 255)):            syscall.ENAMETOOLONG,
		filepath.Join(full, "file", strings.Repeat("x/", 4096)): syscall.ENAMETOOLONG,
	} {
		if err := replace(path, []byte("text")); !errors.Is(err, want) {
			t.Errorf("%.100s: %v, want %v", path, err, want)
		}
	}
	if got := names(t, dir); !slices.Equal(got, []string{"folder"}) {
		t.Errorf("the folder has %q", got)
	}
	if got := names(t, full); !slices.Equal(got, []string{"file"}) {
		t.Errorf("the folder in it has %q", got)
	}
}
