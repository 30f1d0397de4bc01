//go:build drill

package drill_test

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"rdma_exporter/test/running"
)

// device is a simulated one, as a profile describes it.
type device map[string]any

// newDevices returns healthy RoCE devices, with one port each.
func newDevices(count int) (all []device) {
	for i := range count {
		all = append(all, device{
			"name": fmt.Sprintf("mlx5_%d", i), "like": "sim_ib0",
			"node_guid":          fmt.Sprintf("5054:00ff:fe00:%04x", i+1),
			"completion_latency": map[string]any{"polled": "2us", "notified": "5us", "jitter": 0, "slow_vectors": map[int]string{}},
			"ports":              []any{port("active", 4096, true)},
		})
	}
	return all
}

// port returns a port of a RoCE device, with an IPv4 address for RoCE v2 or without.
func port(state string, mtu int, ipv4 bool) map[string]any {
	gids := []any{map[string]any{"index": 0, "gid": "fe80::5054:ff:fe00:1", "type": "RoCE v2"}}
	if ipv4 {
		gids = append(gids, map[string]any{"index": 1, "gid": "::ffff:192.0.2.1", "type": "RoCE v2"})
	}
	return map[string]any{"number": 1, "state": state, "link_layer": "Ethernet", "active_mtu": mtu, "gids": gids}
}

// scenario is a trouble.
type scenario struct {
	// name is what breaks, and cluster the label of its nodes.
	name, cluster string
	// alert is the one that is expected; empty if none is.
	alert string
	// nodes has for each exporter as how many nodes it is scraped. Nil is one exporter, as one.
	nodes []int
	// devices is how many each exporter has.
	devices int
	// config is the configuration file of each node.
	config string
	// contracts is true if contracts are checked.
	contracts bool
	// inventories is how often the kernel's tables are read.
	inventories time.Duration
	// flags are further ones of each exporter.
	flags []string
	// state returns the devices of a node some time after the break. Before, they are healthy.
	state func(node int, since time.Duration, healthy []device) []device
	// change, if there is any, changes what a node exposes some time after the break.
	change func(since time.Duration, exposition string) string
	// prepare and act, if there are any, are called before a node starts and while it is broken.
	prepare func(n *node)
	act     func(t testing.TB, n *node)
}

// count returns how many nodes there are.
func (s *scenario) count() (sum int) {
	for _, n := range s.nodes {
		sum += n
	}
	return sum
}

// node is a host of a cluster, or several that are alike.
type node struct {
	*scenario
	// number counts the exporters of a scenario from 0.
	number int
	dir    string
	// flags are those that an audit has as well, and serve all of the exporter.
	flags, serve []string
	exporter     *running.Process
	// address is where the exporter listens; target is where it is scraped.
	address, target string
	broken          atomic.Pointer[time.Time]
	profile         string
	// acted is true once act has done what it does once.
	acted bool
}

func (s *scenario) start(t testing.TB, number int) *node {
	t.Helper()
	n := &node{scenario: s, number: number, dir: t.TempDir()}
	n.write(t, "config.yaml", s.config)
	n.write(t, "profile.yaml", profile(newDevices(s.devices)))
	n.flags = append([]string{"--provider=simulated", "--simulated.profile=" + filepath.Join(n.dir, "profile.yaml"), "--config.file=" + filepath.Join(n.dir, "config.yaml")}, s.flags...)
	if s.prepare != nil {
		s.prepare(n)
	}
	// Only one trouble is about contracts, and those of all nodes at once keep the machine busy.
	contracts := "--contract.interval=0"
	if s.contracts {
		contracts = "--contract.interval=24h"
	}
	n.flags = running.Unhurried(n.flags...)
	n.serve = slices.Concat(n.serve, n.flags, []string{
		contracts, "--probe.interval=1m", "--hardware.interval=30s", "--inventory.interval=" + cmp.Or(s.inventories, 4*time.Minute).String(),
		"--notification.samples=5", "--notification.vectors=1", "--state.dir=" + n.dir,
	})
	n.launch(t)
	n.target = n.address
	if s.change != nil || slices.Max(s.nodes) > 1 {
		n.target = n.proxy(t)
	}
	return n
}

// launch starts the exporter of the node, or another one in its place.
func (n *node) launch(t testing.TB) {
	t.Helper()
	n.exporter = running.Launch(t, fmt.Sprintf("%s %d", n.cluster, n.number), binary,
		append(slices.Clone(n.serve), "--web.listen-address="+cmp.Or(n.address, "127.0.0.1:0"))...)
	n.address = n.exporter.Listening(t)
}

// proxy serves what the node exposes, as it is changed, for many nodes. It returns the address.
func (n *node) proxy(t testing.TB) string {
	t.Helper()
	type page struct {
		text string
		at   time.Time
	}
	var last atomic.Pointer[page]
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		p := last.Load()
		if p == nil || time.Since(p.at) > 5*time.Second {
			text, err := running.Get(nil, "http://"+n.address+"/metrics")
			if err != nil {
				http.Error(w, err.Error(), http.StatusBadGateway)
				return
			}
			p = &page{string(text), time.Now()}
			last.Store(p)
		}
		text := p.text
		if n.change != nil {
			text = n.change(n.since(), text)
		}
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		_, _ = io.WriteString(w, text)
	}))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

func profile(devices []device) string {
	text, err := yaml.Marshal(map[string]any{"devices": devices})
	if err != nil {
		panic(err) // part of the program, not input
	}
	return string(text)
}

// write writes a file of the node as others must see it: whole.
func (n *node) write(t testing.TB, name, text string) {
	t.Helper()
	path := filepath.Join(n.dir, name)
	running.Check(t, os.WriteFile(path+".new", []byte(text), 0o600))
	running.Check(t, os.Rename(path+".new", path))
}

// since is how long the node has been broken; negative if it is not.
func (n *node) since() time.Duration {
	broken := n.broken.Load()
	if broken == nil {
		return -1
	}
	return time.Since(*broken)
}

// become makes the node what it is to be some time after the break.
func (n *node) become(t testing.TB, broken time.Time) {
	t.Helper()
	n.broken.Store(&broken)
	if n.state != nil {
		text := profile(n.state(n.number, n.since(), newDevices(n.devices)))
		if text != n.profile {
			n.profile = text
			n.write(t, "profile.yaml", text)
			running.Check(t, n.exporter.Signal(syscall.SIGHUP))
		}
	}
	if n.act != nil {
		n.act(t, n)
	}
}

// audit returns the verdict of an audit of the node as it is now.
func (n *node) audit(t testing.TB) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	out, _ := exec.CommandContext(ctx, binary, append([]string{"audit", "--quick"}, n.flags...)...).CombinedOutput()
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return lines[len(lines)-1]
}
