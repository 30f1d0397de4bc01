package input_test

import (
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"rdma_exporter/internal/input"
	"rdma_exporter/test/running"
)

type inner struct {
	Entries int `yaml:"entries"`
}

type document struct {
	Count    int64           `yaml:"count"`
	Part     float64         `yaml:"part"`
	Time     time.Duration   `yaml:"time"`
	Word     string          `yaml:"word"`
	Named    map[string]int  `yaml:"named"`
	Numbered map[int]float64 `yaml:"numbered"`
	List     []*inner        `yaml:"list"`
	Small    inner           `yaml:"small"`
	inner    `yaml:",inline"`
}

func TestCheckWhole(t *testing.T) {
	for text, want := range map[string]string{
		"": "",
		"count: 7\npart: 1.5\ntime: 1.5s\nword: \"1.5\"\nnumbered: {1: 0.5}\n": "",
		"count: 0x10\nsmall: {entries: -3}\n":                                  "",
		"unknown: 1.5\nsmall: [1.5]\nlist: 1\n":                                "",
		"count: 1.0\n":                                                         "line 1: `1.0`",
		"part: 1\ncount: 1e3\n":                                                "line 2: `1e3`",
		"named: {a: 1, b: .5}\n":                                               "line 1: `.5`",
		"numbered: {1.5: 1}\n":                                                 "line 1: `1.5`",
		"list:\n- entries: 1\n- entries: 2.0\n":                                "line 3: `2.0`",
		"entries: 3.0\n":                                                       "line 1: `3.0`",
		"small: &a {entries: .inf}\n":                                          "line 1: `.inf`",
		"small:\n  <<: {entries: 2.5}\n":                                       "line 2: `2.5`",
		"small:\n  <<: [{entries: 2.5}]\n":                                     "line 2: `2.5`",
		"count: 1.5\nsmall: {entries: 2.5}\n":                                  "line 1: `1.5`, line 2: `2.5`",
	} {
		var root yaml.Node
		running.Check(t, yaml.Unmarshal([]byte(text), &root))
		var got []string
		for _, err := range input.CheckWhole(&root, new(document)) {
			where, found := strings.CutSuffix(err.Error(), " is not a whole number: leave out fraction and exponent")
			if !found {
				t.Error(err)
			}
			got = append(got, where)
		}
		if got := strings.Join(got, ", "); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
