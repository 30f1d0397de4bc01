//go:build prometheus

package prometheus_test

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/prometheus/common/model"

	"rdma_exporter/test/running"
)

// api asks a running Prometheus.
type api struct {
	*running.Process
	// url is where it listens, without a slash at the end.
	url string
	// scrapes is how often it scrapes.
	scrapes time.Duration
}

// series is one of those that a query returned.
type series struct {
	labels  map[string]string
	samples []float64
}

// hasNumber reports whether any sample is one; a panel shows none that is not.
func (s series) hasNumber() bool {
	for _, sample := range s.samples {
		if !math.IsNaN(sample) {
			return true
		}
	}
	return false
}

// get returns what Prometheus serves at a path. The body comes with an error, too.
func (a *api) get(path string) ([]byte, error) {
	client := http.Client{Timeout: running.Patience}
	response, err := client.Get(a.url + path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("GET %s: %s", path, response.Status)
	}
	return body, err
}

// ask decodes the data of a path of the API. A warning or a note is an error.
func (a *api) ask(path string, values url.Values, data any) error {
	body, err := a.get("/api/v1/" + path + "?" + values.Encode())
	if body == nil {
		return err
	}
	var answer struct {
		Status, Error   string
		Data            json.RawMessage
		Warnings, Infos []string
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return fmt.Errorf("decode the answer of Prometheus: %w: %.300s", err, body)
	}
	if answer.Status != "success" || len(answer.Warnings)+len(answer.Infos) > 0 {
		return fmt.Errorf("%s, warnings %q, infos %q", answer.Error, answer.Warnings, answer.Infos)
	}
	return json.Unmarshal(answer.Data, data)
}

func stamp(t time.Time) string { return strconv.FormatFloat(float64(t.UnixMilli())/1000, 'f', 3, 64) }

// query evaluates an expression at one time.
func (a *api) query(expression string, at time.Time) ([]series, error) {
	return a.series("query", url.Values{"query": {expression}, "time": {stamp(at)}})
}

// queryRange evaluates an expression over a range of time.
func (a *api) queryRange(expression string, r timeRange) ([]series, error) {
	return a.series("query_range", url.Values{
		"query": {expression}, "start": {stamp(r.from)}, "end": {stamp(r.to)}, "step": {fmt.Sprint(r.step.Seconds())},
	})
}

func (a *api) series(path string, values url.Values) ([]series, error) {
	var data struct {
		ResultType string
		Result     json.RawMessage
	}
	if err := a.ask(path, values, &data); err != nil {
		return nil, err
	}
	var (
		scalar model.Scalar
		vector model.Vector
		matrix model.Matrix
		err    error
		all    []series
	)
	switch data.ResultType {
	case "scalar":
		err = json.Unmarshal(data.Result, &scalar)
		all = append(all, series{samples: []float64{float64(scalar.Value)}})
	case "vector":
		err = json.Unmarshal(data.Result, &vector)
	case "matrix":
		err = json.Unmarshal(data.Result, &matrix)
	default:
		err = fmt.Errorf("a result of type %q", data.ResultType)
	}
	for _, s := range vector {
		one := series{labels: labels(s.Metric)}
		if s.Histogram == nil {
			one.samples = []float64{float64(s.Value)}
		}
		all = append(all, one)
	}
	for _, s := range matrix {
		one := series{labels: labels(s.Metric)}
		for _, v := range s.Values {
			one.samples = append(one.samples, float64(v.Value))
		}
		all = append(all, one)
	}
	return all, err
}

func labels(m model.Metric) map[string]string {
	all := make(map[string]string)
	for name, value := range m {
		all[string(name)] = string(value)
	}
	return all
}

// labelValues returns the values of a label of the selected series, or of all series if
// the selector is empty.
func (a *api) labelValues(label, selector string, r timeRange) ([]string, error) {
	parameters := url.Values{"start": {stamp(r.from)}, "end": {stamp(r.to)}}
	if selector != "" {
		parameters.Set("match[]", selector)
	}
	var values []string
	err := a.ask("label/"+url.PathEscape(label)+"/values", parameters, &values)
	return values, err
}

// rulesEvaluated reports whether each rule was evaluated. A failed one is an error.
func (a *api) rulesEvaluated() (bool, error) {
	var data struct {
		Groups []struct {
			Name  string
			Rules []struct{ Name, Health, LastError string }
		}
	}
	if err := a.ask("rules", nil, &data); err != nil {
		return false, err
	}
	all := true
	for _, group := range data.Groups {
		for _, rule := range group.Rules {
			if rule.Health != "ok" && rule.Health != "unknown" {
				return false, fmt.Errorf("rule %s of group %s: %s", rule.Name, group.Name, rule.LastError)
			}
			all = all && rule.Health == "ok"
		}
	}
	return all, nil
}
