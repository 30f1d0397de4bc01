package collector_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	hw "rdma_exporter/internal/hardware"
	"rdma_exporter/internal/hardware/hardwaretest"
	"rdma_exporter/internal/state"
	"rdma_exporter/test/golden"
	"rdma_exporter/test/running"
)

// TestTrees compares the series of ports of each tree with a golden file. A tree also names metrics
// that must be absent, and why: absent/DEVICE/METRIC, or of one port absent/DEVICE/METRIC of port N.
func TestTrees(t *testing.T) {
	t.Parallel()
	page := running.Must(os.ReadFile("../docs/reference/metrics.md"))(t)
	for _, name := range hardwaretest.Names(t) {
		root := hardwaretest.Tree(t, name)
		netlink := rdma(filepath.Join(root, "rdma"))
		s := scene{snapshot: &state.Snapshot{Provider: "libibverbs", Ready: true}}
		for _, device := range hardwaretest.Devices(t, root) {
			h := hw.Read(t.Context(), hw.Options{
				Sysfs: filepath.Join(root, "sys"), Procfs: filepath.Join(root, "proc"), Device: device,
				Statistics: netlink, Netdevs: netlink, Ethtool: hardwaretest.Ethtool(t, root),
			})
			if h.Failure != "" {
				t.Errorf("%s: %s", name, h.Failure)
			}
			s.snapshot.Devices = append(s.snapshot.Devices, state.DeviceState{Name: device, Present: true, Hardware: &state.HardwareState{Latest: &h}})
		}
		var got strings.Builder
		for line := range strings.Lines(expose(t, pedantic(t, s.leanly().collector()))) {
			if strings.HasPrefix(line, "rdma_port_") {
				got.WriteString(line)
			}
		}
		golden.Check(t, filepath.Join("testdata/trees", name+".prom"), got.String())
		files := running.Must(filepath.Glob(filepath.Join(root, "absent/*/*")))(t)
		for _, file := range files {
			metric, port, onePort := strings.Cut(filepath.Base(file), " of port ")
			series := fmt.Sprintf("%s{device=%q,", metric, filepath.Base(filepath.Dir(file)))
			if onePort {
				series += fmt.Sprintf("port=%q", port)
			}
			if !bytes.Contains(page, []byte("| `"+metric+"` |")) {
				t.Errorf("%s: there is no metric %s", name, metric)
			}
			if strings.Contains(got.String(), series) {
				why, _ := os.ReadFile(file)
				t.Errorf("%s: %s… must be absent: %s", name, series, why)
			}
		}
	}
}

// rdma answers requests of RDMA netlink from a tree's files: DEVICE/PORT/statistic/NAME has a
// number, and DEVICE/PORT/netdev a name.
type rdma string

// Statistics implements hardware.Statistics.
func (r rdma) Statistics(_ context.Context, device string, port int) (all []state.Counter, err error) {
	names, err := filepath.Glob(filepath.Join(string(r), device, strconv.Itoa(port), "statistic/*"))
	for _, name := range names {
		content, err1 := os.ReadFile(name)
		value, err2 := strconv.ParseUint(strings.TrimSpace(string(content)), 10, 64)
		err = errors.Join(err, err1, err2)
		all = append(all, state.Counter{Name: filepath.Base(name), Value: value})
	}
	return all, err
}

// Netdev implements hardware.Netdevs.
func (r rdma) Netdev(_ context.Context, device string, port int) (string, error) {
	name, err := os.ReadFile(filepath.Join(string(r), device, strconv.Itoa(port), "netdev"))
	return strings.TrimSpace(string(name)), err
}
