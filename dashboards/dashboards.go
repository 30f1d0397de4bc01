// Package dashboards declares the Grafana dashboards of the exporter: the fleet, one
// device, and the resources of one host. The JSON files beside it, which are what one
// imports, follow from it; go test ./dashboards -update rewrites them.
package dashboards

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// All returns the dashboards.
func All() []Dashboard {
	return []Dashboard{fleet(), device(), resources()}
}

// JSON returns the dashboard as Grafana imports it.
func (d Dashboard) JSON() ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(d); err != nil {
		return nil, fmt.Errorf("encode the dashboard %s: %w", d.UID, err)
	}
	return out.Bytes(), nil
}
