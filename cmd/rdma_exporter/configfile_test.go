package main

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"rdma_exporter/internal/health"
	"rdma_exporter/internal/path"
	"rdma_exporter/internal/probe"
	"rdma_exporter/test/running"
)

// TestDocumented makes sure that each configuration file of the pages loads, and that the
// one that is called whole has every key, with its default.
func TestDocumented(t *testing.T) {
	var keys []string
	for f := range reflect.TypeFor[fileConfig]().Fields() {
		keys = append(keys, f.Tag.Get("yaml"))
	}
	var pages []string
	for _, pattern := range []string{"../../README.md", "../../docs/*.md", "../../docs/reference/*.md"} {
		found := running.Must(filepath.Glob(pattern))(t)
		pages = append(pages, found...)
	}
	files := 0
	for _, page := range pages {
		text := running.Must(os.ReadFile(page))(t)
		for _, m := range regexp.MustCompile("(?s)([^\n]*)\n*```yaml\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
			if key, _, _ := strings.Cut(m[2], ":"); !slices.Contains(keys, key) {
				continue
			}
			files++
			name := filepath.Join(t.TempDir(), "config.yaml")
			running.Check(t, os.WriteFile(name, []byte(m[2]), 0o600))
			o := newOptions()
			o.configFile = name
			if err := o.loadConfig(); err != nil {
				t.Errorf("%s: %v\n%s", page, err, m[2])
			}
			if strings.HasPrefix(m[1], "This is the whole file, with the defaults:") {
				var given fileConfig
				_ = yaml.Unmarshal([]byte(m[2]), &given)
				got, _ := yaml.Marshal(given)
				want, _ := yaml.Marshal(fileConfig{Probe: probe.DefaultConfig(), Findings: health.Default(), Path: path.DefaultConfig()})
				if string(got) != string(want) {
					t.Errorf("%s: the whole file sets\n%s, and the defaults are\n%s", page, got, want)
				}
			}
		}
	}
	if files < 3 {
		t.Errorf("only %d configuration files were found", files)
	}
}

// TestExpectRefused verifies that what is expected is never ignored.
func TestExpectRefused(t *testing.T) {
	for _, tc := range []struct{ config, want string }{
		{"expect:\n", "expect is empty"},
		{"expect: []\n", "expect is empty"},
		{"expect: {}\n", "expect expects nothing"},
		{"expect: {memlock: unlimited}\n", "--no-collector.owners"},
		{"expect: {rate: 400G}\n", "--hardware.interval"},
		{"expect: {devices: 8}\n", ""},
	} {
		o := newOptions()
		o.configFile = filepath.Join(t.TempDir(), "config.yaml")
		o.inventory.NoOwners, o.schedule.Hardware.Interval = true, 0
		running.Check(t, os.WriteFile(o.configFile, []byte(tc.config), 0o600))
		if err := o.loadConfig(); tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%q: got %v, want %q", tc.config, err, tc.want)
		}
	}
}
