package main

import (
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"sync/atomic"

	"rdma_exporter/internal/child"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/wire"
)

// selfPath is this program, even if its file has been replaced by one that does not understand
// this one's settings.
const selfPath = "/proc/self/exe"

// commands are the commands of children, which run this same program. Its methods are safe for
// concurrent use.
type commands struct {
	// settings are those of the next children.
	settings atomic.Pointer[settings]
	env      []string
}

func newCommands(s settings) *commands {
	c := &commands{env: childEnv(os.Environ())}
	c.settings.Store(&s)
	return c
}

func (c *commands) simulatedNames() ([]string, error) { return c.settings.Load().parsed.Names(), nil }

// sizes identifies the sizes that the next children request.
func (c *commands) sizes() string { return c.settings.Load().Probe.Sizes() }

// asked returns the sizes that the next children ask for.
func (c *commands) asked() state.Probe { return c.settings.Load().Probe.Asked() }

// start returns the command of a child for a run on a device. Without a device, it is for all.
func (c *commands) start(kind state.Kind, device string, r wire.Request) child.Command {
	s := *c.settings.Load()
	var err error
	if s.parsed != nil {
		s.Profile, err = json.Marshal(s.parsed.Only(device))
	}
	args := []string{string(kind)}
	if device != "" {
		args = append(args, deviceFlag+device)
	}
	stdin, inputErr := json.Marshal(wire.Input[settings]{Request: r, Settings: s})
	if err = errors.Join(err, inputErr); err != nil {
		stdin = []byte(err.Error()) // No child accepts it.
	}
	return child.Command{Path: selfPath, Name: programName, Args: args, Env: c.env, Stdin: stdin}
}

const processors = "GOMAXPROCS="

// passed returns beginnings of the environment variables that children get: those that rdma-core's
// providers, the dynamic linker, the C library and Go's runtime read. Vendors' libraries run in
// children, so secrets of the exporter's environment stay out of these.
func passed() []string {
	return []string{
		"BNXT_", "CXGB4_", "EFA_", "HNS_", "HUGE_", "IBV_", "IONIC_", "IRDMA_", "MANA_", "MLX_", "MLX4_", "MLX5_", "QELR_", "RDMAV_", "SYSFS_PATH=", "T5_", "VERBS_",
		"GLIBC_TUNABLES=", "LD_", "MALLOC_",
		"GOCOVERDIR=", "GODEBUG=", "GOGC=", "GOMEMLIMIT=", "GOTRACEBACK=", processors,
	}
}

// childEnv returns the environment of the children of a process that has env. Without GOMAXPROCS,
// preparing for every processor is a good part of the cost of starting a child.
func childEnv(env []string) []string {
	// The last of two values counts.
	kept, beginnings := []string{processors + "1"}, passed()
	for _, e := range env {
		if slices.ContainsFunc(beginnings, func(p string) bool { return strings.HasPrefix(e, p) }) {
			kept = append(kept, e)
		}
	}
	return kept
}
