package docs_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"rdma_exporter/test/running"
)

// TestConfigurations verifies with promtool that Prometheus accepts the configurations of
// docs/reference/scaling.md.
func TestConfigurations(t *testing.T) {
	text := running.Must(os.ReadFile(filepath.Join(root, "docs/reference/scaling.md")))(t)
	dir := t.TempDir()
	rules, err := filepath.Abs(filepath.Join(root, "alerts"))
	if err == nil {
		err = os.Symlink(rules, filepath.Join(dir, "rdma_exporter"))
	}
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	if len(blocks) < 4 {
		t.Errorf("only %d configurations were found", len(blocks))
	}
	for i, block := range blocks {
		args := []string{"check", "config", "--lint-fatal"}
		if strings.Contains(block[1], "--enable-feature=agent") {
			args = append(args, "--agent")
		}
		path := filepath.Join(dir, fmt.Sprintf("block%d.yml", i))
		running.Check(t, os.WriteFile(path, []byte(block[1]), 0o600))
		if out, err := exec.CommandContext(t.Context(), running.FindPrometheus(t, "promtool"), append(args, path)...).CombinedOutput(); err != nil {
			t.Errorf("promtool: %v\n%s\n%s", err, out, block[1])
		}
	}
}
