//go:build prometheus

package prometheus_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"time"

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

// answer is what Prometheus wraps its answers in.
type answer struct {
	Status   string          `json:"status"`
	Data     json.RawMessage `json:"data"`
	Error    string          `json:"error"`
	Warnings []string        `json:"warnings"`
	Infos    []string        `json:"infos"`
}

// unwrap decodes the data of an answer. One with an error, a warning or a note is
// an error.
func unwrap(body []byte, data any) error {
	var a answer
	if err := json.Unmarshal(body, &a); err != nil {
		return fmt.Errorf("decode the answer of Prometheus: %w: %.300s", err, body)
	}
	switch {
	case a.Status != "success":
		return errors.New(a.Error)
	case len(a.Warnings) > 0:
		return fmt.Errorf("warnings %q", a.Warnings)
	case len(a.Infos) > 0:
		return fmt.Errorf("infos %q", a.Infos)
	}
	if err := json.Unmarshal(a.Data, data); err != nil {
		return fmt.Errorf("decode the data of Prometheus: %w: %.300s", err, a.Data)
	}
	return nil
}

// get asks for a path. The body comes with the error, too.
func (a *api) get(path string, values url.Values) ([]byte, error) {
	client := http.Client{Timeout: running.Patience}
	response, err := client.Get(a.url + path + "?" + values.Encode())
	if err != nil {
		return nil, fmt.Errorf("ask Prometheus: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("GET %s: %s", path, response.Status)
	}
	return body, err
}

// ask asks for a path of the API and decodes the data.
func (a *api) ask(path string, values url.Values, data any) error {
	body, err := a.get("/api/v1/"+path, values)
	if body == nil {
		return err
	}
	// The body of an error says more than the status.
	return unwrap(body, data)
}

func stamp(t time.Time) string {
	return strconv.FormatFloat(float64(t.UnixMilli())/1000, 'f', 3, 64)
}

// query evaluates an expression at one time.
func (a *api) query(expression string, at time.Time) ([]series, error) {
	var data result
	err := a.ask("query", url.Values{"query": {expression}, "time": {stamp(at)}}, &data)
	return data.series, err
}

// queryRange evaluates an expression over a range of time.
func (a *api) queryRange(expression string, r timeRange) ([]series, error) {
	var data result
	err := a.ask("query_range", url.Values{
		"query": {expression}, "start": {stamp(r.from)}, "end": {stamp(r.to)},
		"step": {strconv.FormatFloat(r.step.Seconds(), 'f', -1, 64)},
	}, &data)
	return data.series, err
}

// labelValues returns the values of a label, of the series that a selector selects
// unless it is empty.
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
			Name  string `json:"name"`
			Rules []struct {
				Name      string `json:"name"`
				Health    string `json:"health"`
				LastError string `json:"lastError"`
			} `json:"rules"`
		} `json:"groups"`
	}
	if err := a.ask("rules", nil, &data); err != nil {
		return false, err
	}
	all := true
	for _, group := range data.Groups {
		for _, rule := range group.Rules {
			switch rule.Health {
			case "ok":
			case "unknown":
				all = false
			default:
				return false, fmt.Errorf("rule %s of group %s: %s", rule.Name, group.Name, rule.LastError)
			}
		}
	}
	return all, nil
}

// alert is one that is pending or fires.
type alert struct {
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

func (a *api) alerts() ([]alert, error) {
	var data struct {
		Alerts []alert `json:"alerts"`
	}
	err := a.ask("alerts", nil, &data)
	return data.Alerts, err
}

// result is the data of a query.
type result struct{ series []series }

// UnmarshalJSON implements json.Unmarshaler for vectors, matrices and scalars.
func (r *result) UnmarshalJSON(data []byte) error {
	var outer struct {
		ResultType string          `json:"resultType"`
		Result     json.RawMessage `json:"result"`
	}
	if err := json.Unmarshal(data, &outer); err != nil {
		return err
	}
	switch outer.ResultType {
	case "scalar":
		var v sample
		if err := json.Unmarshal(outer.Result, &v); err != nil {
			return err
		}
		r.series = []series{{samples: []float64{float64(v)}}}
		return nil
	case "vector", "matrix":
	default:
		return fmt.Errorf("a result of type %q", outer.ResultType)
	}
	var all []struct {
		Metric map[string]string `json:"metric"`
		Value  *sample           `json:"value"`
		Values []sample          `json:"values"`
	}
	if err := json.Unmarshal(outer.Result, &all); err != nil {
		return err
	}
	for _, one := range all {
		s := series{labels: one.Metric}
		if one.Value != nil {
			one.Values = append(one.Values, *one.Value)
		}
		for _, v := range one.Values {
			s.samples = append(s.samples, float64(v))
		}
		r.series = append(r.series, s)
	}
	return nil
}

// sample is the value of a pair of time and value.
type sample float64

// UnmarshalJSON implements json.Unmarshaler.
func (s *sample) UnmarshalJSON(data []byte) error {
	var pair [2]any
	if err := json.Unmarshal(data, &pair); err != nil {
		return err
	}
	text, ok := pair[1].(string)
	if !ok {
		return fmt.Errorf("%s is no sample", data)
	}
	value, err := strconv.ParseFloat(text, 64)
	*s = sample(value)
	return err
}
