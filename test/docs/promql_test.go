package docs_test

import (
	"encoding/json"
	"os/exec"
	"testing"

	"rdma_exporter/test/running"
)

// series is a series that is asked about, with its values in promtool's notation.
type series struct {
	Series string `json:"series"`
	Values string `json:"values"`
}

// asked is a query, when it is asked, and what it has to answer.
type asked struct {
	Expr     string   `json:"expr"`
	EvalTime string   `json:"eval_time"`
	Samples  []sample `json:"exp_samples"`
}

// sample is a series that is expected.
type sample struct {
	Labels string  `json:"labels"`
	Value  float64 `json:"value"`
}

// ask has promtool ask queries of series with a value a minute, and compare the answers.
func ask(t *testing.T, file string, input []series, queries []asked) {
	t.Helper()
	// YAML takes JSON.
	text, err := json.Marshal(map[string]any{
		"rule_files": []string{}, "evaluation_interval": "1m",
		"tests": []map[string]any{{"interval": "1m", "input_series": input, "promql_expr_test": queries}},
	})
	if err != nil {
		t.Fatal(err)
	}
	path := running.File(t, file, string(text))
	if out, err := exec.CommandContext(t.Context(), running.FindPrometheus(t, "promtool"), "test", "rules", path).CombinedOutput(); err != nil {
		t.Errorf("promtool test rules: %v\n%s", err, out)
	}
}
