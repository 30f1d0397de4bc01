package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"

	"go.yaml.in/yaml/v3"

	"rdma_exporter/internal/health"
	"rdma_exporter/internal/health/expect"
	"rdma_exporter/internal/input"
)

// checkLearning returns an error if what is expected cannot be written.
func checkLearning(o *options) error {
	path := o.writeExpect
	switch {
	case path == "":
		return nil
	case o.output != "" || o.brief || o.format != formatText:
		return errors.New("--write-expect writes no report: leave out --output, --brief and --format")
	case path == "-":
		return nil
	}
	if err := checkOutput("--write-expect", path); err != nil {
		return err
	}
	// A line that is not indented begins another key.
	b, err := input.ReadFile(path)
	if err == nil && regexp.MustCompile(`(?m)^[^\s#-]`).Match(bytes.TrimPrefix(b, []byte("expect:"))) {
		return fmt.Errorf("--write-expect %s: it has more than the key expect, and would be replaced: name another file, or copy from standard output (-)", path)
	}
	return nil
}

// learn writes what a host has as rules for what is expected of it. It refuses a host with a
// problem that the rules would hide.
func learn(o *options, host *health.Host, std stdio) error {
	if host.Problem != nil {
		return fmt.Errorf("--write-expect: %s", host.Problem.Message)
	}
	bad := func(f health.Finding) bool {
		return slices.Contains([]health.Kind{
			health.FindingVanished, health.FindingStuck, health.FindingUnusable, health.FindingRunAborted,
			health.FindingPortDown, health.FindingSlowPort, health.FindingUnreadable,
		}, f.Kind)
	}
	for _, d := range host.Devices {
		for _, f := range d.Findings {
			if f.Accepted == nil && (bad(f) || slices.ContainsFunc(f.Consequences, bad)) {
				return fmt.Errorf("--write-expect: %q is not in order: %s Mend it, or add --accept=%s/%q if it is meant to be so", d.State.Name, f.Message, f.Kind, f.Subject)
			}
		}
		if d.State.Last == nil || d.State.Hardware == nil {
			return fmt.Errorf("--write-expect: %q was not audited completely: allow more time", d.State.Name)
		}
	}
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	rules := expect.Of(host.Snapshot)
	if err := e.Encode(map[string]expect.Rules{"expect": rules}); err != nil || len(rules) == 0 {
		return cmp.Or(err, errors.New("--write-expect: the host has only virtual functions and subfunctions, which come and go"))
	}
	path := o.writeExpect
	if path == "-" {
		path = ""
	}
	return write("--write-expect", path, b.Bytes(), std)
}
