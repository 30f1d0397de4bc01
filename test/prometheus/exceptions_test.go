//go:build prometheus

package prometheus_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"rdma_exporter/test/running"
)

// exceptions are the ids of expressions of which not all is true that is true of the
// others, by the reason.
type exceptions struct {
	// Empty return nothing.
	Empty map[string][]string `yaml:"empty"`
	// Stirred return nothing, or either once the test has stirred.
	Stirred map[string][]string `yaml:"stirred"`
	// Either return data or nothing, as chance has it.
	Either map[string][]string `yaml:"either"`
	// Healthy are alerts that find something on healthy instances too.
	Healthy map[string][]string `yaml:"healthy"`
	// Unscraped are alerts that may find something on a healthy instance of which
	// scrapes failed.
	Unscraped map[string][]string `yaml:"unscraped"`
}

func readExceptions(t testing.TB, name string) exceptions {
	t.Helper()
	text := running.Must(os.ReadFile(filepath.Join("testdata", name)))(t)
	var e exceptions
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(&e); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return e
}

// reason returns why an expression is listed, empty if it is not.
func reason(list map[string][]string, e *expression) string {
	for reason, ids := range list {
		if slices.Contains(ids, e.id()) {
			return reason
		}
	}
	return ""
}

// check verifies that the exceptions are expressions that exist, and have reasons. Each is
// listed once for whether it returns data, and once for healthy instances.
func (x exceptions) check(t testing.TB, all []*expression) {
	t.Helper()
	known := make(map[string]kind)
	for _, e := range all {
		known[e.id()] = e.kind
	}
	once := func(only kind, lists ...map[string][]string) {
		seen := make(map[string]bool)
		for _, list := range lists {
			for reason, ids := range list {
				for _, id := range ids {
					if _, ok := known[id]; !ok {
						t.Errorf("the list of exceptions has %s, which is no expression", id)
					}
					if only != "" && known[id] != only {
						t.Errorf("the list of those that find something on healthy instances has %s, which is no %s", id, only)
					}
					if seen[id] {
						t.Errorf("%s is listed more than once", id)
					}
					seen[id] = true
					if strings.TrimSpace(reason) == "" {
						t.Errorf("%s is listed without a reason", id)
					}
				}
			}
		}
	}
	once("", x.Empty, x.Stirred, x.Either)
	once(kindAlert, x.Healthy, x.Unscraped)
}
