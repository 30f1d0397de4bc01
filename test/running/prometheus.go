package running

import (
	"encoding/json"
	"fmt"
	"net/url"
	"path/filepath"
	"testing"

	"go.yaml.in/yaml/v3"
)

// Prometheus is a running Prometheus server.
type Prometheus struct {
	*Process
	// URL is where it listens, without a slash at the end.
	URL string
}

// StartPrometheus starts a Prometheus program with a configuration and further flags, and
// waits until it answers.
func StartPrometheus(t testing.TB, program string, config map[string]any, flags ...string) *Prometheus {
	t.Helper()
	text := Must(yaml.Marshal(config))(t)
	process := Launch(t, "Prometheus", program, append([]string{
		"--config.file=" + File(t, "prometheus.yml", string(text)),
		"--storage.tsdb.path=" + filepath.Join(t.TempDir(), "data"),
		"--web.listen-address=127.0.0.1:0",
		"--log.level=info",
	}, flags...)...)
	p := &Prometheus{Process: process, URL: "http://" + process.Listening(t)}
	Eventually(t, "Prometheus is ready", func() bool {
		p.MustRun(t)
		_, err := p.Get("/-/ready")
		return err == nil
	})
	return p
}

// Get returns what Prometheus serves at a path. The body comes with an error, too.
func (p *Prometheus) Get(path string) ([]byte, error) { return Get(nil, p.URL+path) }

// Ask decodes the data of a path of the API. A warning or a note is an error.
func (p *Prometheus) Ask(path string, values url.Values, data any) error {
	body, err := p.Get("/api/v1/" + path + "?" + values.Encode())
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
