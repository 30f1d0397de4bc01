//go:build prometheus

package prometheus_test

import (
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"strconv"
	"time"

	"github.com/prometheus/common/model"

	"rdma_exporter/test/running"
)

// api asks a running Prometheus.
type api struct {
	*running.Prometheus
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

func stamp(t time.Time) string { return strconv.FormatFloat(float64(t.UnixMilli())/1000, 'f', 3, 64) }

func (a *api) query(expression string, at time.Time) ([]series, error) {
	return a.series("query", url.Values{"query": {expression}, "time": {stamp(at)}})
}

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
	if err := a.Ask(path, values, &data); err != nil {
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
	err := a.Ask("label/"+url.PathEscape(label)+"/values", parameters, &values)
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
	if err := a.Ask("rules", nil, &data); err != nil {
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
