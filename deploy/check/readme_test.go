package check_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the table of the chart's README")

const tableHead = "<!-- What follows is written by make generate, from values.yaml. -->\n"

// TestReadme holds the chart's README to its values.
func TestReadme(t *testing.T) {
	const name = "deploy/helm/rdma-exporter/README.md"
	text := read(t, name)
	head, table, found := strings.Cut(text, tableHead)
	if !found {
		t.Fatalf("%s lacks the line %q", name, tableHead)
	}
	want := "\n" + valuesTable(t)
	if *update {
		check(t, os.WriteFile(filepath.Join(root, name), []byte(head+tableHead+want), 0o644))
		return
	}
	if table != want {
		t.Errorf("%s is not of these values; run: make generate", name)
	}
}

// A key of values.yaml, which has no lists on several lines but in values that are told as a
// whole.
var valueLine = regexp.MustCompile(`^( *)([A-Za-z]+):`)

// valuesTable returns a row for each value with a comment "# --", and for each other one
// that is no group of values.
func valuesTable(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("| value | default | |\n|---|---|---|\n")
	var (
		path  []string // of the value
		told  = -1     // how deep the value is that was told as a whole
		words []string // of the comment before it
	)
	values := parse(t, filepath.Join(chart, "values.yaml"))
	for line := range strings.Lines(read(t, "deploy/helm/rdma-exporter/values.yaml")) {
		comment, isComment := strings.CutPrefix(strings.TrimSpace(line), "# ")
		if first, begins := strings.CutPrefix(comment, "-- "); isComment && begins {
			words = []string{first}
			continue
		} else if isComment && words != nil {
			words = append(words, comment)
			continue
		}
		key := valueLine.FindStringSubmatch(line)
		if key == nil {
			words = nil
			continue
		}
		depth := len(key[1]) / 2
		if told >= 0 && depth > told {
			continue
		}
		told = -1
		path = append(path[:min(depth, len(path))], key[2])
		value := at(values, strings.Join(path, "."))
		_, isGroup := value.(map[string]any)
		if words == nil && isGroup {
			continue
		}
		if isGroup {
			told = depth
		}
		standard := must(json.Marshal(value))(t)
		fmt.Fprintf(&b, "| `%s` | `%s` | %s |\n", strings.Join(path, "."), standard, strings.ReplaceAll(strings.Join(words, " "), "|", `\|`))
		words = nil
	}
	return b.String()
}
