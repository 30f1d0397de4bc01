// Package simulatedtest makes profiles of simulated devices for tests: many devices, and
// faults that depend on the arguments of a call.
package simulatedtest

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"rdma_exporter/verbs"
	"rdma_exporter/verbs/simulated"
)

// Scaled returns the YAML of a profile with n devices that are like the built-in ones. The
// first have their names, and later ones add a number: sim_rxe0, sim_rxe0_1, sim_rxe0_2.
// Each device has the keys as well.
func Scaled(n int, keys ...string) string {
	text := "devices:\n"
	devices := simulated.Default().Devices
	for i := range n {
		d := devices[i%len(devices)]
		name, round := d.Name, i/len(devices)
		if round > 0 {
			name = fmt.Sprintf("%s_%d", d.Name, round)
		}
		guid := fmt.Sprintf("%s:%04x", d.NodeGUID[:len("5054:00ff:fe00")], i+1)
		text += "  - {" + strings.Join(append([]string{"name: " + name, "like: " + d.Name, "node_guid: " + guid}, keys...), ", ") + "}\n"
	}
	return text
}

// Parse parses a profile whose faults may have a condition `when`, as condition describes.
// The profile is for providers in this process: child processes do not get conditions.
func Parse(text []byte) (*simulated.Profile, error) {
	var root map[string]any
	if err := yaml.Unmarshal(text, &root); err != nil {
		return nil, err
	}
	conditions := make(map[[2]int]condition)
	devices, _ := root["devices"].([]any)
	for i, d := range devices {
		device, _ := d.(map[string]any)
		faults, _ := device["faults"].([]any)
		for j, f := range faults {
			fault, _ := f.(map[string]any)
			encoded, err := yaml.Marshal(fault["when"])
			if err != nil {
				return nil, err
			}
			var c condition
			if err := yaml.Unmarshal(encoded, &c); err != nil {
				return nil, err
			}
			conditions[[2]int{i, j}] = c
			delete(fault, "when")
		}
	}
	text, err := yaml.Marshal(root)
	if err != nil {
		return nil, err
	}
	p, err := simulated.ParseProfile("profile", text)
	if err != nil {
		return nil, err
	}
	for at, c := range conditions {
		p.Devices[at[0]].Faults[at[1]].When = c.holds
	}
	return p, nil
}

// condition says which calls count. Each key that is there must hold.
type condition struct {
	QPTypes []string       `yaml:"qp_types"`
	States  []string       `yaml:"states"`
	To      []string       `yaml:"to"`
	Ports   []int          `yaml:"ports"`
	GIDs    []int          `yaml:"gids"`
	Above   map[string]int `yaml:"above"`
}

func (c condition) holds(call simulated.Call) bool {
	state := func(list []string, s verbs.QPState) bool { return list == nil || slices.Contains(list, s.String()) }
	for size, n := range c.Above {
		if is := map[string]int{"max_inline_data": call.Inline, "length": call.Length}[size]; is <= n {
			return false
		}
	}
	return (c.QPTypes == nil || slices.Contains(c.QPTypes, call.QPType.String())) &&
		state(c.States, call.State) && state(c.To, call.To) &&
		(c.Ports == nil || slices.Contains(c.Ports, call.Port)) &&
		(c.GIDs == nil || slices.Contains(c.GIDs, call.GID))
}
