package simulated

import (
	"bytes"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"rdma_exporter/internal/input"
)

// LoadProfile reads a profile from a regular file, as ParseProfile does.
func LoadProfile(path string) (*Profile, error) {
	data, err := input.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read profile of simulated devices: %w", err)
	}
	return ParseProfile(path, data)
}

// ParseProfile parses and validates a profile. Unknown keys are errors. An error has one
// line that names the file and all problems.
func ParseProfile(file string, data []byte) (*Profile, error) {
	p, err := decode(data)
	if err == nil {
		err = p.Validate()
	}
	if err != nil {
		// What the decoder says about Go types is rewritten, in one line.
		text := strings.ReplaceAll(strings.TrimPrefix(err.Error(), "yaml: "), "unmarshal errors:\n  ", "")
		text = regexp.MustCompile(`field (.*) not found in type \S*`).ReplaceAllString(text, `unknown key "$1"`)
		return nil, fmt.Errorf("%s: %s", file, strings.ReplaceAll(text, "\n ", ";"))
	}
	return p, nil
}

func decode(data []byte) (*Profile, error) {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	dec.KnownFields(true)
	var p Profile
	if err := dec.Decode(&p); err != nil && len(bytes.TrimSpace(data)) > 0 {
		return nil, err
	}
	if p.Devices == nil {
		return nil, errors.New("devices are missing; list them, or write `devices: []` to simulate a host without any")
	}
	var root yaml.Node
	if dec.Decode(&root) == nil {
		return nil, errors.New("the profile has more than one document; remove what follows the line ---")
	}
	if err := yaml.Unmarshal(data, &root); err != nil {
		return nil, err
	}
	if err := errors.Join(input.CheckWhole(&root, &p)...); err != nil {
		return nil, err
	}
	// Unknown keys were refused above.
	var nodes struct {
		Devices []yaml.Node `yaml:"devices"`
	}
	if err := root.Decode(&nodes); err != nil {
		return nil, err
	}
	for i := range p.Devices {
		d := &p.Devices[i]
		if d.Like == "" {
			continue
		}
		builtin := Default()
		base := slices.IndexFunc(builtin.Devices, func(b DeviceProfile) bool { return b.Name == d.Like })
		if base < 0 {
			return nil, fmt.Errorf("devices[%d].like: unknown device %q; valid are %s", i, d.Like, strings.Join(builtin.Names(), ", "))
		}
		*d = builtin.Devices[base]
		if err := nodes.Devices[i].Decode(d); err != nil {
			return nil, err
		}
		d.Like = ""
	}
	return &p, nil
}

// MarshalJSON implements json.Marshaler. JSON cannot hold text that is not UTF-8, gob can.
func (p Profile) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).Encode(p); err != nil {
		return nil, err
	}
	return json.Marshal(b.Bytes())
}

// UnmarshalJSON implements json.Unmarshaler.
func (p *Profile) UnmarshalJSON(b []byte) error {
	var encoded []byte
	if err := json.Unmarshal(b, &encoded); err != nil {
		return err
	}
	return gob.NewDecoder(bytes.NewReader(encoded)).Decode(p)
}

// replaced is a map that YAML replaces. Without it, keys are added to those that are there.
type replaced[K comparable, V any] map[K]V

// UnmarshalYAML implements yaml.Unmarshaler.
func (m *replaced[K, V]) UnmarshalYAML(n *yaml.Node) error {
	plain := make(map[K]V)
	err := n.Decode(&plain)
	*m = plain
	return err
}
