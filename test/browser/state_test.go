//go:build browser

package browser

import (
	"os"
	"path/filepath"
	"testing"

	"rdma_exporter/internal/api/apitest"
	"rdma_exporter/internal/health"
	"rdma_exporter/test/running"
)

// scene is a state of a host in which a user opens the page.
type scene struct {
	name string
	// start serves it and returns the address of the page.
	start func(t *testing.T) (url string)
	// verdict is in the first window in each view. So is says, what is wrong and what to do,
	// except in the smallest view.
	verdict string
	says    []string
	// shows is somewhere on the page, and never is nowhere. Neither is calm, unless it is the verdict.
	shows, never []string
	// folded keeps the page folded, because it has too much to unfold.
	folded bool
}

// built is a state of the built exporter. It is reached once the page shows some texts, one of
// each run that the state needs.
func built(shows []string, flags ...string) func(*testing.T) string {
	return func(t *testing.T) string { return startExporter(t, shows, flags...) }
}

// made is a state that the simulator cannot produce.
func made(h *health.Host) func(*testing.T) string {
	return func(t *testing.T) string { return serve(t, h) }
}

const calm = "All is well"

// states returns the states that the page is looked at in.
func states() []scene {
	return []scene{
		{
			name: "healthy", verdict: calm,
			start: built([]string{"notify_identifies_cq"}, profile("healthy")...),
			says:  []string{"Simulated devices", "sim_well0", calm},
			never: []string{"critical finding", "NaN", "+Inf"},
		},
		{
			name: "stuck", verdict: "critical",
			start: made(assessed(host("stuck"))),
			says:  []string{"mlx5_0", "81433", "ibv_destroy_cq", "cat /proc/81433/stack"},
		},
		{
			name: "timeout", verdict: "critical",
			start: built([]string{"ibv_destroy_cq"}, append(profile("timeout"), "--probe.timeout=10s", "--notification.samples=0", "--contract.interval=0s")...),
			says:  []string{"sim_hung0", "ibv_destroy_cq", "dmesg"},
		},
		{
			name: "contract", verdict: "critical",
			start: built([]string{"Kept: 28"}, profile("contract")...),
			says:  []string{"sim_loose0", "cq_destroy_busy", "update the driver"},
		},
		{
			name: "deaf", verdict: "critical",
			start: built([]string{"notify_identifies_cq"}, profile("deaf")...),
			says:  []string{"sim_deaf0", "missed events", "/proc/interrupts"},
			shows: []string{"notify_any"},
		},
		{
			name: "leaks", verdict: "critical",
			start: built([]string{"--device.exclude=sim_leaky0"}, append(profile("leak"), "--contract.interval=0s", "--inventory.interval=1s", "--config.file="+filepath.Join("testdata", "impatient.yaml"))...),
			says:  []string{"sim_leaky0", "1 qp", "--device.exclude=sim_leaky0", "dmesg"},
			shows: []string{"fuser -v /dev/infiniband/uverbs*"},
		},
		{
			name: "leaks-real", verdict: "critical",
			start: made(assessed(host("leaks"))),
			says:  []string{"mlx5_0", "the device refused ibv_create_cq with ENOMEM", "rdma resource show cq dev mlx5_0"},
			shows: []string{"Left behind by ended children of the exporter", "--device.exclude=mlx5_0", "ibacm", "prlimit --memlock --pid 977", "max_qp", "Without a living owner"},
		},
		{
			name: "none-real", verdict: "No RDMA device was found",
			start: func(t *testing.T) string {
				sysfs := t.TempDir()
				running.Check(t, os.MkdirAll(filepath.Join(sysfs, "class", "infiniband"), 0o755))
				return startExporter(t, []string{"No RDMA device"}, "--path.sysfs="+sysfs)
			},
			says:  []string{"No RDMA device was found", "ls /sys/class/infiniband", "lspci"},
			never: []string{"Simulated devices"},
		},
		{
			name: "permission", verdict: "critical",
			start: built([]string{"EACCES"}, append(profile("permission"), "--contract.interval=0s")...),
			says:  []string{"sim_shut0", "ibv_open_device", "EACCES", "/dev/infiniband"},
		},
		{
			name: "memlock", verdict: "warning",
			start: built([]string{"ENOMEM"}, append(profile("memlock"), "--contract.interval=0s")...),
			says:  []string{"sim_tight0", "ibv_reg_mr", "ENOMEM", "ulimit -l"},
		},
		{
			name: "memlock-owner", verdict: "critical",
			start: made(assessed(pinning())),
			says:  []string{"mlx5_0", "ibacm", "98", "prlimit"},
		},
		{
			name: "slow-real", verdict: "critical",
			start: made(assessed(host("slow_vector"))),
			says:  []string{"mlx5_0", "missed events", "/proc/interrupts"},
			shows: []string{"Vector 3: median", "Vector 13: median", "slow"},
		},
		{
			name: "mixed", verdict: "not probed yet",
			start: made(assessed(host("simulated"))),
			says:  []string{"Simulated devices", "sim_new"},
		},
		{
			name: "starting", verdict: "have not been listed yet",
			start: made(assessed(nil)),
			says:  []string{"have not been listed yet", "Wait"},
		},
		{
			name: "before-first-run", verdict: "not probed yet",
			start: built([]string{"Not probed yet"}, append(profile("timeout"), "--probe.timeout=1h")...),
			says:  []string{"sim_hung0", "Not probed yet"},
		},
		{
			name: "not-listed", verdict: "could not be listed",
			start: made(assessed(host("discovery_failed"))),
			says:  []string{"could not be listed", "permission denied", "ls -l /sys/class/infiniband"},
			never: []string{"No RDMA device"},
		},
		{
			name: "fleet", verdict: "critical",
			folded: true,
			start:  made(assessed(apitest.Many(64, 64).Snapshot)),
			says:   []string{"3 of 64 devices need attention", "mlx5_07", "missed events", "cat /proc/81433/stack"},
			shows:  []string{"mlx5_42", "81433", "ibv_destroy_cq", "cat /proc/81433/stack", "mlx5_23", "notify_any"},
		},
		{
			name: "hostile", verdict: "critical",
			start: made(apitest.Hostile(hostileText).Evaluated()),
			says:  []string{"<script>window.hostile=1"},
		},
		{
			name: "hostile-firmware", verdict: calm,
			start: built([]string{"All is well", ">667<"}, append(profile("hostile"), "--contract.interval=0s")...),
			says:  []string{"sim_hostile0"},
			shows: []string{"<script>window.hostile=1</script><b id=x>", "666", "<b>\"'`", "667"},
		},
	}
}
