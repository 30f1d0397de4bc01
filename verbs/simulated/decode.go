package simulated

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"rdma_exporter/internal/input"
)

// LoadProfile reads a profile from a regular file. See [ParseProfile] for its errors.
func LoadProfile(path string) (*Profile, error) {
	data, err := input.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read profile of simulated devices: %w", err)
	}
	return parse(path, data)
}

// ParseProfile parses and validates a profile. Unknown keys are errors. An error has one
// line that names all problems.
func ParseProfile(data []byte) (*Profile, error) { return parse("profile", data) }

// parse parses the profile of a file.
func parse(file string, data []byte) (*Profile, error) {
	p, err := decode(data)
	if err == nil {
		err = p.Validate()
	}
	if err != nil {
		return nil, fmt.Errorf("%s:%w", file, err)
	}
	return p, nil
}

// decode returns the profile that a text describes, with all keys that it takes from the
// default profile.
func decode(data []byte) (*Profile, error) {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	dec.KnownFields(true)
	var p Profile
	switch err := dec.Decode(&p); {
	case errors.Is(err, io.EOF):
		return nil, errors.New(" the profile is empty; list devices, or write `devices: []` to simulate a host without any")
	case err != nil:
		return nil, decodeError(err)
	case p.Devices == nil:
		return nil, errors.New(" devices are missing; list them, or write `devices: []` to simulate a host without any")
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, errors.New(" the profile has more than one document; remove what follows the line ---")
	}
	var root yaml.Node
	if err := yaml.Unmarshal(data, &root); err != nil {
		return nil, decodeError(err)
	}
	var whole yaml.TypeError
	for _, err := range input.CheckWhole(&root, &p) {
		whole.Errors = append(whole.Errors, err.Error())
	}
	if len(whole.Errors) > 0 {
		return nil, decodeError(&whole)
	}
	// It was decoded strictly, so that decoding it once more cannot meet unknown keys.
	var nodes struct {
		Devices []yaml.Node `yaml:"devices"`
	}
	if err := root.Decode(&nodes); err != nil {
		return nil, decodeError(err)
	}
	for i := range p.Devices {
		d := &p.Devices[i]
		if d.Like == "" {
			continue
		}
		builtin := Default()
		base := slices.IndexFunc(builtin.Devices, func(b DeviceProfile) bool { return b.Name == d.Like })
		if base < 0 {
			return nil, fmt.Errorf("%d: devices[%d].like: unknown device %q; valid are %s",
				nodes.Devices[i].Line, i, d.Like, strings.Join(builtin.Names(), ", "))
		}
		*d = builtin.Devices[base]
		if err := nodes.Devices[i].Decode(d); err != nil {
			return nil, decodeError(err)
		}
		d.Like = ""
	}
	return &p, nil
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

// decodeError rewrites what the decoder says about Go types, in one line.
func decodeError(err error) error {
	var types *yaml.TypeError
	messages := []string{strings.TrimPrefix(err.Error(), "yaml: ")}
	if errors.As(err, &types) {
		messages = types.Errors
	}
	for i, m := range messages {
		m = strings.TrimPrefix(m, "line ")
		m = regexp.MustCompile(`field (.*) not found in type .*`).ReplaceAllString(m, `unknown key "$1"`)
		messages[i] = strings.ReplaceAll(m, "\n", " ")
	}
	return errors.New(strings.Join(messages, "; "))
}
