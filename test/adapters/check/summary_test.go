package check

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"rdma_exporter/test/running"
)

// exporterFile is the exporter that is tested.
var exporterFile string

func TestMain(m *testing.M) {
	os.Exit(running.Exporter(m, &exporterFile))
}

// device is what matters here of a device of the document that the exporter serves at
// /api/v1/status and writes with audit --format=json.
type device struct {
	Name     string
	Health   string
	Identity struct{ Driver string }
	Run      struct{ Outcome, Error string }
	Probes   []struct {
		Name, Status string
		Failures     []struct{ Subject, Verb, Errno, Message string }
		Skips        []struct{ Subject, Reason, Detail string }
	}
	Ways []struct {
		Path, Way string
		Port      int
	}
	Contracts struct {
		Run      struct{ Outcome string }
		Verdicts []struct {
			Name, Verdict, Reason string
			Known                 bool
		}
	}
	Known     []struct{ Contract, Verdict string }
	Resources struct{ Run struct{ Outcome string } }
}

// audit has the exporter audit its devices, and returns what it says of each.
func audit(t *testing.T, flags ...string) ([]device, error) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), exporterFile, append([]string{"audit", "--format=json"}, running.Unhurried(flags...)...)...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil && cmd.ProcessState.ExitCode() != 1 {
		return nil, fmt.Errorf("%w\n%s", err, stderr.String())
	}
	var document struct{ Devices []device }
	if err := json.Unmarshal(stdout.Bytes(), &document); err != nil {
		return nil, fmt.Errorf("%w in\n%s", err, stdout.String())
	}
	return document.Devices, nil
}

// summary says in lines what was found of a device, without what varies.
func summary(d device) string {
	var text strings.Builder
	line := func(format string, args ...any) {
		text.WriteString(strings.TrimRight(fmt.Sprintf(format, args...), " ") + "\n")
	}
	line("driver %s", d.Identity.Driver)
	line("run %s, contracts %s, inventory %s: %s", d.Run.Outcome, d.Contracts.Run.Outcome, d.Resources.Run.Outcome, d.Health)
	for _, p := range d.Probes {
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
	for _, k := range d.Known {
		if k.Verdict == "violated" && !judged[k.Contract] { // the probes met it
			line("known %s", k.Contract)
		}
	}
	slices.Sort(verdicts)
	for _, v := range verdicts {
		line("contract %s", v)
	}
	return text.String()
}
