package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	"rdma_exporter/report"
	"rdma_exporter/supervisor"
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

	mu sync.Mutex
	// vectors is the completion vector with which the next run on a device begins
	// to measure, by device.
	vectors map[string]int
}

const (
	// maxRemembered is the most devices whose vectors are remembered: more than a
	// host has at any time, so that only those which are no more are forgotten.
	maxRemembered = 4096
	// maxFirstVector is where the vectors begin again, before an int overflows.
	maxFirstVector = 1 << 30
)

// newCommands returns commands for children with these settings and, if their
// device is simulated, its profile.
func newCommands(s settings, profiles map[string][]byte) (*commands, error) {
	c := &commands{settings: s, profiles: profiles, env: childEnv(os.Environ()), vectors: make(map[string]int)}
	// What changes from run to run is numbers and names, so that what can be
	// encoded once always can.
	if _, err := json.Marshal(s); err != nil {
		return nil, fmt.Errorf("encode the settings of the children: %w", err)
	}
	return c, nil
}

// probe returns how to start the next child that probes a device.
func (c *commands) probe(device string) supervisor.Command {
	s := c.settings
	s.Probe.Notification.FirstVector = c.nextVector(device)
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
func maxFill(info *report.Device) int64 {
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

// nextVector returns the first completion vector that a run measures.
// Runs that follow on each other measure vectors that do; the probe knows how many
// there are, and takes it modulo that.
func (c *commands) nextVector(device string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	first, known := c.vectors[device]
	if !known && len(c.vectors) >= maxRemembered {
		clear(c.vectors) // those that are still there begin again
	}
	c.vectors[device] = (first + c.settings.Probe.Notification.Vectors) % maxFirstVector
	return first
}
