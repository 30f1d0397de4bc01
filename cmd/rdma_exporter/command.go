package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	"rdma_exporter/internal/state"
	"rdma_exporter/internal/supervisor"
)

// selfPath is the program that runs, even if its file was replaced meanwhile by
// one that may not understand this one's settings.
const selfPath = "/proc/self/exe"

// commands tells how to start the children: this same program. Its methods are
// safe for concurrent use.
type commands struct {
	settings settings
	// profiles are the texts of the profiles of the simulated devices.
	profiles map[string][]byte
	// env is the environment of the children.
	env []string
}

// newCommands returns commands for children with these settings and, if their
// device is simulated, its profile.
func newCommands(s settings, profiles map[string][]byte) (*commands, error) {
	c := &commands{settings: s, profiles: profiles, env: childEnv(os.Environ())}
	// What changes from run to run is numbers and names, so that what can be
	// encoded once always can.
	if _, err := json.Marshal(s); err != nil {
		return nil, fmt.Errorf("encode the settings of the children: %w", err)
	}
	return c, nil
}

// probe returns how to start a child that probes a device.
func (c *commands) probe(device string, task supervisor.Probing) supervisor.Command {
	s := c.settings
	s.Facts, s.Turn = task.Facts, task.Turn
	return c.child(commandProbe, device, s)
}

// contract returns how to start a child that judges the contracts of a device
// that are not judged yet.
func (c *commands) contract(device string, leave supervisor.LeaveOut) supervisor.Command {
	s := c.settings
	s.Judged, s.WithoutCompletions = leave.Judged, leave.Completions
	return c.child(commandContract, device, s)
}

// inventory returns how to start a child that takes stock of a device.
func (c *commands) inventory(device string, task supervisor.Stocktaking) supervisor.Command {
	s := c.settings
	s.Inventory.Look, s.Inventory.MaxFill = task.Look, maxFill(task.Info)
	return c.child(commandInventory, device, s)
}

// maxFill returns the most completions that one side of a queue pair can have
// outstanding; 0 if the device did not say.
func maxFill(info *state.Device) int64 {
	if info == nil {
		return 0
	}
	var most int64
	for _, l := range info.Limits {
		if l.Name == "max_qp_wr" || l.Name == "max_srq_wr" {
			most = max(most, l.Value)
		}
	}
	return most
}

func (c *commands) child(command, device string, s settings) supervisor.Command {
	s.Profile = c.profiles[device]
	stdin, err := json.Marshal(s)
	if err != nil {
		stdin = []byte(err.Error()) // which no child takes for settings
	}
	return supervisor.Command{Path: selfPath, Name: programName, Args: []string{command, "--device=" + device}, Env: c.env, Stdin: stdin}
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
