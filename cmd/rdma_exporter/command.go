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
)

// selfPath is the program that runs, even if its file was replaced meanwhile by
// one that may not understand this one's settings.
const selfPath = "/proc/self/exe"

// commands tells how to start the children: this same program. Its methods are
// safe for concurrent use.
type commands struct {
	settings atomic.Pointer[settings]
	// profiles are the texts of the profiles of the simulated devices.
	profiles map[string][]byte
	// env is the environment of the children.
	env []string
}

// newCommands returns commands for children with these settings and, if their
// device is simulated, its profile.
func newCommands(s settings, profiles map[string][]byte) (*commands, error) {
	c := &commands{profiles: profiles, env: childEnv(os.Environ())}
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
	args := []string{string(kind)}
	if device == "" {
		s.Profiles = c.profiles
	} else {
		args, s.Profile = append(args, deviceFlag+device), c.profiles[device]
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
