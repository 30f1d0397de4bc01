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
	// profiles are that of each simulated device and, without a name, that of all.
	profiles map[string]json.RawMessage
	// env is the environment of the children.
	env []string
}

// newCommands returns commands for children with these settings and, if their
// device is simulated, its profile, which is nil otherwise.
func newCommands(s settings, profile *simulated.Profile) (*commands, error) {
	c := &commands{profiles: make(map[string]json.RawMessage), env: childEnv(os.Environ())}
	if profile != nil {
		for _, name := range append(profile.Names(), "") {
			encoded, err := json.Marshal(profile.Only(name))
			if err != nil {
				return nil, fmt.Errorf("encode the profile of the simulated devices for the children: %w", err)
			}
			c.profiles[name] = encoded
		}
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

// asked returns the sizes that the next children ask for.
func (c *commands) asked() state.Probe { return c.settings.Load().Probe.Asked() }

// start returns how to start a child for a run of some kind on a device, or, without one,
// on all.
func (c *commands) start(kind state.Kind, device string, r wire.Request) supervisor.Command {
	s := *c.settings.Load()
	s.Profile = c.profiles[device]
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
