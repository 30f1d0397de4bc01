//go:build prometheus

package prometheus_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"rdma_exporter/test/running"
)

// recorder is a test that notes failures and goes on.
type recorder struct {
	testing.TB
	mu       sync.Mutex
	failures []string
}

func (r *recorder) Helper() {}

func (r *recorder) Errorf(format string, args ...any) { r.Error(fmt.Sprintf(format, args...)) }

func (r *recorder) Error(args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failures = append(r.failures, fmt.Sprint(args...))
}

func (r *recorder) Logf(string, ...any) {}

func (r *recorder) Failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.failures) > 0
}

// A stand is one dashboard and one file of rules, small and without fault, and what
// Prometheus answers to their expressions.
type stand struct {
	panel, target, annotation map[string]any
	variable                  map[string]any
	link                      string
	rules                     string
	answers                   map[string]string
	exceptions                exceptions
}

func newStand() *stand {
	good := `[{"metric":{"__name__":"a","instance":"bad:1","device":"rxe0"},"value":[1,"2"]}]`
	return &stand{
		panel:      map[string]any{"type": "timeseries", "title": "Panel"},
		target:     map[string]any{"refId": "A", "expr": `rate(a{device=~"$device"}[$__rate_interval])`, "legendFormat": "{{device}}"},
		annotation: map[string]any{"name": "Note", "expr": "changes(a[$__interval])", "titleFormat": "{{device}}"},
		variable:   map[string]any{"name": "device", "type": "query", "query": map[string]any{"query": "label_values(a, device)"}, "multi": true},
		link:       "/d/sample?var-device=${__field.labels.device}",
		rules:      "groups: [{name: x, rules: [{record: b, expr: sum(a)}, {alert: Bad, expr: a > 1}]}]",
		answers: map[string]string{
			`rate(a{device=~"(rxe0|rxe\\.1)"}[8s])`: good,
			`rate(a{device=~"rxe0"}[8s])`:           good,
			"changes(a[10s])":                       good,
			"sum(a)":                                good,
			"b":                                     good,
			"a > 1":                                 good,
			"up":                                    `[{"metric":{"instance":"good:1"},"value":[1,"1"]}]`,
			"timestamp(up)":                         `[{"metric":{"instance":"good:1"},"value":[1,"9999999999"]}]`,
			"label/device/values":                   `["rxe0","rxe.1"]`,
		},
	}
}

// table makes the panel a table with a transformation.
func (s *stand) table(id string, options map[string]any) {
	s.panel["type"] = "table"
	s.panel["transformations"] = []any{map[string]any{"id": id, "options": options}}
}

// prove proves what is on the stand and returns what fails.
func (s *stand) prove(t *testing.T) (*proof, []string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path := strings.TrimPrefix(r.URL.Path, "/api/v1/")
		result, known := s.answers[path]
		body := fmt.Sprintf(`{"status":"success","data":%s}`, result)
		if path == "query" || path == "query_range" {
			kind := map[string]string{"query": "vector", "query_range": "matrix"}[path]
			result, known = s.answers[r.URL.Query().Get("query")]
			body = fmt.Sprintf(`{"status":"success","data":{"resultType":%q,"result":%s}}`, kind, result)
		}
		switch {
		case strings.HasPrefix(result, "{"):
			body = result
		case !known:
			w.WriteHeader(http.StatusBadRequest)
			body = `{"status":"error","error":"the sample has no answer"}`
		}
		fmt.Fprint(w, body)
	}))
	defer server.Close()

	s.panel["targets"] = []any{s.target}
	s.panel["fieldConfig"] = map[string]any{"defaults": map[string]any{"links": []any{map[string]any{"url": s.link}}}}
	text, err := json.Marshal(map[string]any{
		"uid": "sample", "panels": []any{s.panel},
		"templating": map[string]any{"list": []any{s.variable}}, "annotations": map[string]any{"list": []any{s.annotation}},
	})
	if err != nil {
		t.Fatal(err)
	}
	d := &dashboard{file: "sample.json"}
	if err := json.Unmarshal(text, d); err != nil {
		t.Fatal(err)
	}

	r := &recorder{TB: t}
	p := newProof(r, []*dashboard{d}, []ruleFile{{name: "rules.yaml", text: []byte(s.rules)}})
	p.api = &api{Process: &running.Process{}, url: server.URL, scrapes: 2 * time.Second}
	p.exceptions, p.troubled, p.healthy = s.exceptions, []string{"bad:1"}, []string{"good:1"}
	p.patience = time.Millisecond
	if !r.Failed() {
		p.prove(r)
	}
	return p, r.failures
}

// What is without fault passes, and nothing of it is left out.
func TestHarnessPasses(t *testing.T) {
	t.Parallel()
	p, failures := newStand().prove(t)
	for _, failure := range failures {
		t.Error(failure)
	}
	var ids []string
	for _, e := range p.expressions {
		ids = append(ids, e.id())
	}
	want := "sample.json/device sample.json/Note sample.json/Panel/A rules.yaml/b rules.yaml/b/recorded rules.yaml/Bad"
	if got := strings.Join(ids, " "); got != want {
		t.Errorf("the expressions are\n%s, want\n%s", got, want)
	}
}

// What is listed as being with or without data may be either.
func TestHarnessLetsPass(t *testing.T) {
	t.Parallel()
	for _, answer := range []string{"[]", newStand().answers["b"]} {
		s := newStand()
		s.answers["sum(a)"] = answer
		s.exceptions.Either = map[string][]string{"why": {"rules.yaml/b"}}
		if _, failures := s.prove(t); len(failures) > 0 {
			t.Errorf("with %s: %q", answer, failures)
		}
	}
}

// What an alert finds on a healthy instance, and what Prometheus is asked then if scrapes
// may have failed.
const (
	badAndGood = `[{"metric":{"instance":"bad:1"},"value":[1,"2"]},{"metric":{"instance":"good:1"},"value":[1,"2"]}]`
	alwaysUp   = `min_over_time(up{instance="good:1"}[1h]) == 1`
)

// Scrapes that failed excuse an alert that is listed.
func TestHarnessLetsPassUnscraped(t *testing.T) {
	t.Parallel()
	s := newStand()
	s.exceptions.Unscraped = map[string][]string{"why": {"rules.yaml/Bad"}}
	s.answers["a > 1"], s.answers[alwaysUp] = badAndGood, "[]"
	if _, failures := s.prove(t); len(failures) > 0 {
		t.Errorf("%q", failures)
	}
}

// Each fault is found, and told in words that lead to it.
func TestHarnessFails(t *testing.T) {
	t.Parallel()
	const rate, nothing = `rate(a{device=~"(rxe0|rxe\\.1)"}[8s])`, "[]"
	for name, c := range map[string]struct {
		change func(*stand)
		want   string
	}{
		"no data": {
			func(s *stand) { s.answers[rate], s.answers[`rate(a{device=~"rxe0"}[8s])`] = nothing, nothing },
			"sample.json/Panel/A returns nothing",
		},
		"no number": {
			func(s *stand) { s.answers["sum(a)"] = `[{"metric":{},"value":[1,"NaN"]}]` },
			"rules.yaml/b returns nothing",
		},
		"no values": {
			func(s *stand) {
				s.answers["label/device/values"] = nothing
				s.answers[`rate(a{device=~"()"}[8s])`] = s.answers[rate]
			},
			"sample.json/device returns nothing",
		},
		"data of what is listed": {
			func(s *stand) { s.exceptions.Empty = map[string][]string{"why": {"rules.yaml/b"}} },
			"rules.yaml/b returns data, although it is listed as empty because: why",
		},
		"listed and not there": {
			func(s *stand) { s.exceptions.Empty = map[string][]string{"why": {"rules.yaml/c"}} },
			"has rules.yaml/c, which is no expression",
		},
		"listed twice": {
			func(s *stand) {
				s.exceptions.Empty = map[string][]string{"why": {"rules.yaml/b"}, "as well": {"rules.yaml/b"}}
			},
			"rules.yaml/b is listed more than once",
		},
		"listed without a reason": {
			func(s *stand) { s.exceptions.Either = map[string][]string{" ": {"rules.yaml/b"}} },
			"rules.yaml/b is listed without a reason",
		},
		"error of what need not have data": {
			func(s *stand) {
				s.exceptions.Either = map[string][]string{"why": {"rules.yaml/b"}}
				delete(s.answers, "sum(a)")
			},
			"rules.yaml/b: the sample has no answer",
		},
		"error": {
			func(s *stand) { delete(s.answers, rate) },
			"sample.json/Panel/A: the sample has no answer",
		},
		"error of one choice": {
			func(s *stand) { delete(s.answers, `rate(a{device=~"rxe0"}[8s])`) },
			"sample.json/Panel/A: the sample has no answer",
		},
		"warning": {
			func(s *stand) { s.answers["b"] = `{"status":"success","data":{},"warnings":["slow"]}` },
			`rules.yaml/b/recorded: warnings ["slow"]`,
		},
		"info": {
			func(s *stand) { s.answers["b"] = `{"status":"success","data":{},"infos":["no counter"]}` },
			`rules.yaml/b/recorded: infos ["no counter"]`,
		},
		"variable that is not there": {
			func(s *stand) { s.target["expr"] = "a{b=~\"$missing\"}" },
			"sample.json/Panel/A: no variable is called missing",
		},
		"fixed data source": {
			func(s *stand) { s.target["datasource"] = map[string]any{"uid": "P1809"} },
			`panel "Panel" asks "P1809"`,
		},
		"panel without a target": {
			func(s *stand) { s.panel["type"], s.target["expr"] = "stat", "" },
			`panel "Panel" asks "" for ""`,
		},
		"label of a legend": {
			func(s *stand) { s.target["legendFormat"] = "{{port}}" },
			`sample.json/Panel/A shows {{port}}, but its series have only ["__name__" "device" "instance"]`,
		},
		"label of an annotation": {
			func(s *stand) { s.annotation["textFormat"] = "{{port}}" },
			`sample.json/Note shows {{port}}`,
		},
		"dashboard of a link": {
			func(s *stand) { s.link = "/d/other" },
			"sample.json/Panel: link /d/other: no dashboard has the UID other",
		},
		"variable of a link": {
			func(s *stand) { s.link = "/d/sample?var-port=1" },
			"that dashboard has no variable port",
		},
		"label of a link": {
			func(s *stand) { s.link = "/d/sample?var-device=${__field.labels.port}" },
			"no series has the label port",
		},
		"column of a link": {
			func(s *stand) { s.link = "/d/sample?var-device=${__data.fields.Port}" },
			"no row has the field Port",
		},
		"column that is renamed": {
			func(s *stand) {
				s.table(organise, map[string]any{"renameByName": map[string]any{"port": "Port"}})
			},
			"sample.json/Panel renames the column port",
		},
		"column that is kept": {
			func(s *stand) {
				s.table("filterFieldsByName", map[string]any{"include": map[string]any{"names": []string{"device", "port"}}})
			},
			"sample.json/Panel keeps the column port",
		},
		"column of a link that is left out": {
			func(s *stand) {
				s.table("filterFieldsByName", map[string]any{"include": map[string]any{"names": []string{"instance"}}})
				s.link = "/d/sample?var-device=${__data.fields.device}"
			},
			`no row has the field device, only ["instance"]`,
		},
		"value of the only query": {
			func(s *stand) {
				s.table(organise, map[string]any{"renameByName": map[string]any{"Value #A": "rate"}})
			},
			"sample.json/Panel renames the column Value #A",
		},
		"transformation": {
			func(s *stand) { s.table("joinByLabels", nil) },
			"nobody taught the test the transformation joinByLabels",
		},
		"alert on a healthy instance": {
			func(s *stand) {
				s.answers["a > 1"] = badAndGood
			},
			"rules.yaml/Bad finds something on a healthy instance: map[instance:good:1]",
		},
		"alert on healthy instances alone": {
			func(s *stand) { s.answers["a > 1"] = `[{"metric":{"instance":"good:1"},"value":[1,"2"]}]` },
			"rules.yaml/Bad returns nothing",
		},
		"exception of a healthy instance": {
			func(s *stand) { s.exceptions.Healthy = map[string][]string{"why": {"rules.yaml/Bad"}} },
			"rules.yaml/Bad finds nothing on healthy instances",
		},
		"alert on a healthy instance whose scrapes succeeded": {
			func(s *stand) {
				s.exceptions.Unscraped = map[string][]string{"why": {"rules.yaml/Bad"}}
				s.answers["a > 1"] = badAndGood
				s.answers[alwaysUp] = s.answers["up"]
			},
			"rules.yaml/Bad finds something on a healthy instance: map[instance:good:1]",
		},
		"file without expressions": {
			func(s *stand) { s.rules = "groups: []" },
			"rules.yaml has no expression",
		},
		"two of a name": {
			func(s *stand) {
				s.rules = "groups: [{name: x, rules: [{alert: Bad, expr: b}, {alert: Bad, expr: a > 1}]}]"
			},
			"two expressions are called rules.yaml/Bad",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStand()
			c.change(s)
			_, failures := s.prove(t)
			if text := strings.Join(failures, "\n"); !strings.Contains(text, c.want) {
				t.Errorf("the failures are\n%s, want\n%s", text, c.want)
			}
		})
	}
}

// Prometheus may complain of what a stall brings about, if it counted one.
func TestEvaluatedAgain(t *testing.T) {
	t.Parallel()
	const again = `level=warn component="rule manager" file=/tmp/a.yaml group=fleet name=a:b index=0 msg="Error on ingesting results from rule evaluation with different value but same timestamp" numDropped=5`
	for _, c := range []struct {
		line, missed string
		want         bool
	}{
		{again, `{rule_group="/tmp/a.yaml;fleet"} 3`, true},
		{again, `{rule_group="/tmp/a.yaml;fleet"} 0`, false},
		{again, `{rule_group="/tmp/a.yaml;other"} 3`, false},
		{`level=warn group=fleet msg="Evaluating rule failed"`, `{rule_group="/tmp/a.yaml;fleet"} 3`, false},
	} {
		metrics := "a 1\nprometheus_rule_group_iterations_missed_total" + c.missed + "\nb 1\n"
		if got := evaluatedAgain(c.line, metrics); got != c.want {
			t.Errorf("%s, with %s: %t, want %t", c.line, c.missed, got, c.want)
		}
	}
}
