// Package dashboards declares the Grafana dashboards of the exporter: the fleet, one device, the resources of one
// host, and paths between hosts. The JSON files next to it are generated from it by go test ./dashboards -update; users import them.
package dashboards

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// grafanaBoard is a dashboard in the schema of Grafana 10.4, which later versions migrate on import. The newer schema
// needs Grafana 12.
type grafanaBoard = dashboard.Dashboard //nolint:staticcheck // Deprecated in favour of that.

// All returns the dashboards as Grafana imports them, by uid.
func All() (map[string][]byte, error) {
	files := make(map[string][]byte)
	for _, d := range []grafanaBoard{fleet(), device(), resources(), paths()} {
		text, err := json.Marshal(d)
		var plain any // The types of the SDK escape < and >, which makes expressions unreadable.
		if err == nil {
			err = json.Unmarshal(text, &plain)
		}
		if err != nil {
			return nil, fmt.Errorf("encode the dashboard %s: %w", *d.Uid, err)
		}
		var out bytes.Buffer
		encoder := json.NewEncoder(&out)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		if err := encoder.Encode(plain); err != nil {
			return nil, fmt.Errorf("encode the dashboard %s: %w", *d.Uid, err)
		}
		files[*d.Uid] = out.Bytes()
	}
	return files, nil
}
