//go:build vm

package check

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"rdma_exporter/internal/api"
	"rdma_exporter/test/running"
)

// audit has the exporter audit its devices, and returns its report on each.
func audit(t *testing.T, flags ...string) ([]api.Device, error) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), exporterFile, append([]string{"audit", "--format=json"}, running.Unhurried(flags...)...)...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil && cmd.ProcessState.ExitCode() != 1 {
		return nil, fmt.Errorf("%w\n%s", err, stderr.String())
	}
	var document api.Status
	if err := json.Unmarshal(stdout.Bytes(), &document); err != nil {
		return nil, fmt.Errorf("%w in\n%s", err, stdout.String())
	}
	return document.Devices, nil
}

// summary says in lines what was found of a device, without what varies.
func summary(d api.Device) string {
	var text strings.Builder
	line := func(format string, args ...any) {
		text.WriteString(strings.TrimRight(fmt.Sprintf(format, args...), " ") + "\n")
	}
	line("driver %s", d.Info.Driver)
	line("run %s, contracts %s, inventory %s: %s", d.Last.Outcome, d.Contracts.Last.Outcome, d.Resources.Last.Outcome, d.Health)
	for _, p := range d.Last.Probes {
		line("probe %s %s", p.Name, p.Status)
		for _, s := range p.Skips {
			if s.Reason != "budget" { // of time, which a busy machine has not
				line("  skipped %s: %s", s.Subject, s.Reason)
			}
		}
		for _, f := range p.Failures {
			line("  failed %s: %s %s %s", f.Subject, f.Verb, f.Errno, f.Message)
		}
	}
	var verdicts []string
	judged := map[string]bool{}
	for _, v := range d.Contracts.Verdicts {
		judged[v.Name] = v.Verdict == "violated"
		known := ""
		if v.Known && v.Verdict == "violated" {
			known = ", known of the driver"
		}
		verdicts = append(verdicts, strings.TrimSpace(fmt.Sprintf("%s: %s%s %s", v.Name, v.Verdict, known, v.Reason)))
	}
	for _, k := range d.Errata() {
		if k.Verdict == "violated" && !judged[k.Name] { // the probes met it
			line("known %s", k.Name)
		}
	}
	slices.Sort(verdicts)
	for _, v := range verdicts {
		line("contract %s", v)
	}
	return text.String()
}
