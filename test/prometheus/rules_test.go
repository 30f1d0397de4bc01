//go:build prometheus

package prometheus_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"rdma_exporter/test/running"
)

type ruleFile struct {
	// name is that of the file, without its folder.
	name string
	text []byte
}

type rule struct {
	Record string            `yaml:"record"`
	Alert  string            `yaml:"alert"`
	Expr   string            `yaml:"expr"`
	Labels map[string]string `yaml:"labels"`
}

// readRules reads the files of rules in a folder, not those of their tests.
func readRules(t testing.TB, folder string) []ruleFile {
	t.Helper()
	var files []ruleFile
	for _, path := range list(t, folder, "*.yaml") {
		if strings.HasSuffix(path, "_test.yaml") {
			continue
		}
		text := running.Must(os.ReadFile(path))(t)
		files = append(files, ruleFile{name: filepath.Base(path), text: text})
	}
	return files
}

// list returns the paths of the files in a folder, of which there must be any.
func list(t testing.TB, folder, pattern string) []string {
	t.Helper()
	paths := running.Must(filepath.Glob(filepath.Join(folder, pattern)))(t)
	if len(paths) == 0 {
		t.Fatalf("there is no %s in %s", pattern, folder)
	}
	return paths
}

func (f ruleFile) rules(t testing.TB) []rule {
	t.Helper()
	var content struct {
		Groups []struct {
			Rules []rule `yaml:"rules"`
		} `yaml:"groups"`
	}
	if err := yaml.Unmarshal(f.text, &content); err != nil {
		t.Fatalf("%s: %v", f.name, err)
	}
	var all []rule
	for _, group := range content.Groups {
		all = append(all, group.Rules...)
	}
	return all
}

// hurried returns the file's text without the intervals of its groups: the test has
// no minutes to wait.
func (f ruleFile) hurried(t testing.TB) string {
	t.Helper()
	var content map[string]any
	if err := yaml.Unmarshal(f.text, &content); err != nil {
		t.Fatalf("%s: %v", f.name, err)
	}
	groups, ok := content["groups"].([]any)
	if !ok {
		t.Fatalf("%s has no groups", f.name)
	}
	for _, group := range groups {
		if group, ok := group.(map[string]any); ok {
			delete(group, "interval")
		}
	}
	text := running.Must(yaml.Marshal(content))(t)
	// Nor has it the minutes for which a node that has booted is quiet.
	return strings.ReplaceAll(string(text), "(rdma_exporter_boot_time_seconds) + 600", "(rdma_exporter_boot_time_seconds)")
}

// expressions returns what is to be asked: the expression of each rule, and beside
// that of a recording rule the series that it records.
func (f ruleFile) expressions(t testing.TB) []*expression {
	t.Helper()
	var all []*expression
	for _, r := range f.rules(t) {
		switch {
		case r.Record != "":
			if i := slices.IndexFunc(all, func(e *expression) bool { return e.name == r.Record }); i >= 0 {
				all[i].text = fmt.Sprintf("(%s) or (%s)", all[i].text, r.Expr) // Several rules record it.
				continue
			}
			all = append(all,
				&expression{file: f.name, name: r.Record, kind: kindRecording, text: r.Expr, instant: true},
				&expression{file: f.name, name: r.Record + "/recorded", kind: kindRecorded, text: r.Record, instant: true})
		case r.Alert != "":
			all = append(all, &expression{file: f.name, name: r.Alert, kind: kindAlert, text: r.Expr, instant: true})
		default:
			t.Errorf("%s has a rule that is neither record nor alert", f.name)
		}
	}
	return all
}
