package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"

	"rdma_exporter/internal/state"
	"rdma_exporter/internal/supervisor"
	"rdma_exporter/internal/wire"
	"rdma_exporter/verbs/simulated"
)

// selfPath is the program that runs, even if its file was replaced meanwhile by
// one that may not understand this one's settings.
const selfPath = "/proc/self/exe"

// commands tells how to start the children: this same program. Its methods are
// safe for concurrent use.
type commands struct {
	settings atomic.Pointer[settings]
	// simulated is nil unless the devices are.
	simulated atomic.Pointer[simulatedDevices]
	// env is the environment of the children.
	env []string
}

// simulatedDevices are the devices of a profile. They never change.
type simulatedDevices struct {
	names []string
	// profiles are that of each device and, without a name, that of all, in JSON.
	profiles map[string]json.RawMessage
}

// newCommands returns commands for children with these settings and, if their
// device is simulated, its profile, which is nil otherwise.
func newCommands(s settings, profile *simulated.Profile) (*commands, error) {
	c := &commands{env: childEnv(os.Environ())}
	if err := c.simulate(profile); err != nil {
		return nil, err
	}
	c.tell(s)
	// What changes from run to run is numbers and names, so that what can be
	// encoded once always can.
	if _, err := json.Marshal(s); err != nil {
		return nil, fmt.Errorf("encode the settings of the children: %w", err)
	}
	return c, nil
}

// tell gives the next children other settings.
func (c *commands) tell(s settings) { c.settings.Store(&s) }

// simulate gives the next children another profile of simulated devices. A nil profile
// changes nothing.
func (c *commands) simulate(profile *simulated.Profile) error {
	if profile == nil {
		return nil
	}
	d := &simulatedDevices{names: profile.Names(), profiles: make(map[string]json.RawMessage)}
	for _, name := range append(profile.Names(), "") {
		encoded, err := json.Marshal(profile.Only(name))
		if err != nil {
			return fmt.Errorf("encode the profile of the simulated devices for the children: %w", err)
		}
		d.profiles[name] = encoded
	}
	c.simulated.Store(d)
	return nil
}

// simulatedNames lists the devices of the profile that was loaded last.
func (c *commands) simulatedNames() ([]string, error) { return c.simulated.Load().names, nil }

// sizes identifies the sizes that the next children request.
func (c *commands) sizes() string { return c.settings.Load().Probe.Sizes() }

// asked returns the sizes that the next children ask for.
func (c *commands) asked() state.Probe { return c.settings.Load().Probe.Asked() }

// start returns how to start a child for a run of some kind on a device, or, without one,
// on all.
func (c *commands) start(kind state.Kind, device string, r wire.Request) supervisor.Command {
	s := *c.settings.Load()
	if d := c.simulated.Load(); d != nil {
		s.Profile = d.profiles[device]
	}
	args := []string{string(kind)}
	if device != "" {
		args = append(args, deviceFlag+device)
	}
	stdin, err := json.Marshal(wire.Input[settings]{Request: r, Settings: s})
	if err != nil {
		stdin = []byte(err.Error()) // which no child takes for what it is told
	}
	return supervisor.Command{Path: selfPath, Name: programName, Args: args, Env: c.env, Stdin: stdin}
}

// childEnv returns the environment of the children of a process that has env. A child
// does one thing after the other. Unless it is told so before it starts, Go's runtime
// makes ready to run on every processor of the host, and looks for its cgroup, which
// is a good part of what it costs to start a child.
func childEnv(env []string) []string {
	const processors = "GOMAXPROCS="
	if slices.ContainsFunc(env, func(e string) bool { return strings.HasPrefix(e, processors) }) {
		return env
	}
	return append(slices.Clone(env), processors+"1")
}
