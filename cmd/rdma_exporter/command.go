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

// selfPath is this program, even if its file has been replaced by one that does not understand
// this one's settings.
const selfPath = "/proc/self/exe"

// commands are the commands of children, which run this same program. Its methods are safe for
// concurrent use.
type commands struct {
	settings atomic.Pointer[settings]
	// simulated is nil unless the devices are.
	simulated atomic.Pointer[simulatedDevices]
	env       []string
}

// simulatedDevices are the devices of a profile. They never change.
type simulatedDevices struct {
	names []string
	// profiles are the profile of each device and, without a name, of all, in JSON.
	profiles map[string]json.RawMessage
}

// newCommands returns commands for children. The profile is nil if the devices are real.
func newCommands(s settings, profile *simulated.Profile) (*commands, error) {
	c := &commands{env: childEnv(os.Environ())}
	if err := c.simulate(profile); err != nil {
		return nil, err
	}
	c.configure(s)
	// Only numbers and names change from run to run, so start can encode them, too.
	if _, err := json.Marshal(s); err != nil {
		return nil, fmt.Errorf("encode the settings of the children: %w", err)
	}
	return c, nil
}

// configure sets the settings of the next children.
func (c *commands) configure(s settings) { c.settings.Store(&s) }

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

func (c *commands) simulatedNames() ([]string, error) { return c.simulated.Load().names, nil }

// sizes identifies the sizes that the next children request.
func (c *commands) sizes() string { return c.settings.Load().Probe.Sizes() }

// asked returns the sizes that the next children ask for.
func (c *commands) asked() state.Probe { return c.settings.Load().Probe.Asked() }

// start returns the command of a child for a run on a device. Without a device, it is for all.
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
		stdin = []byte(err.Error()) // No child accepts it.
	}
	return supervisor.Command{Path: selfPath, Name: programName, Args: args, Env: c.env, Stdin: stdin}
}

// childEnv returns the environment of the children of a process that has env. Without GOMAXPROCS,
// preparing for every processor is a good part of the cost of starting a child.
func childEnv(env []string) []string {
	const processors = "GOMAXPROCS="
	if slices.ContainsFunc(env, func(e string) bool { return strings.HasPrefix(e, processors) }) {
		return env
	}
	return append(slices.Clone(env), processors+"1")
}
