//go:build vm

package check

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rdma_exporter/test/running"
)

// What the machine writes is lost with it: the files are made from what is printed.
var printed = flag.String("check.print", "", "print what files of testdata must be, each behind a line with its name: all, or those that this version of rdma-core has for itself")

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

// TestAudit has the exporter audit every paper adapter of the machine, and compares
// what it says of each with what the adapter's library and kernel driver make a correct
// answer: the files of testdata.
func TestAudit(t *testing.T) {
	list := adapters(t)
	before := held(t)
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), exporterFile, append([]string{"audit", "--format=json"}, running.Unhurried()...)...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil && cmd.ProcessState.ExitCode() != 1 {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	var document struct{ Devices []device }
	if err := json.Unmarshal(stdout.Bytes(), &document); err != nil {
		t.Fatalf("%v in\n%s", err, stdout.String())
	}
	for _, a := range list {
		t.Run(a.spec, func(t *testing.T) {
			i := slices.IndexFunc(document.Devices, func(d device) bool { return d.Name == a.name })
			if i < 0 {
				t.Fatalf("the audit says nothing of %s", a.name)
			}
			got := summary(document.Devices[i])
			t.Logf("%s: %s", a.name, describe(a.counters(t)))
			file, own := golden(t, a.spec)
			want, err := os.ReadFile(file)
			switch {
			case *printed == "all":
				fmt.Printf("== %s\n%s", file, got)
			case *printed == "version" && got != string(want):
				fmt.Printf("== %s\n%s", own, got)
			case err != nil:
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("the exporter says\n%s\nand should say, by %s,\n%s", got, file, want)
			}
		})
	}
	if after := held(t); after != before {
		t.Errorf("the kernel holds\n%s\nand held before\n%s", after, before)
	}
}

// golden returns the file that has what must be said of an adapter, and the one for the
// machine's version of rdma-core alone, which is the first one if it is there.
func golden(t testing.TB, spec string) (file, own string) {
	t.Helper()
	own = filepath.Join("testdata", spec+"@"+rdmaCore(t)+".txt")
	if _, err := os.Stat(own); err == nil {
		return own, own
	}
	return filepath.Join("testdata", spec+".txt"), own
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
