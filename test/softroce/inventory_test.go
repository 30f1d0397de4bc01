//go:build vm

package softroce

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"rdma_exporter/test/running"
)

// holderFile is the program that holds objects.
var holderFile = os.Getenv("RDMA_HOLDER")

func hold(t testing.TB, wrap []string, args ...string) *running.Held {
	t.Helper()
	if holderFile == "" {
		t.Fatal("RDMA_HOLDER is not set: set it to the absolute path of the built test/holder")
	}
	all := slices.Concat(wrap, []string{holderFile, "--device", active}, args)
	return running.Hold(t, exec.Command(all[0], all[1:]...))
}

// background starts a program that is killed at the end of the test.
func background(t testing.TB, name string, args ...string) int {
	t.Helper()
	cmd := exec.Command(name, args...)
	running.Check(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd.Process.Pid
}

// tracked is one object as rdma -j resource show tells it.
type tracked struct {
	Type  string // of the table
	Name  string `json:"ifname"`
	PID   int    `json:"pid"`
	Comm  string `json:"comm"`
	QP    string `json:"type"`
	State string `json:"state"`
	CQE   int64  `json:"cqe"`
	Len   int64  `json:"mrlen"`
}

// resourceTypes are the tables of rdma resource.
func resourceTypes() []string { return []string{"qp", "cq", "mr", "pd", "srq", "ctx", "cm_id"} }

// table returns what rdma -j resource show tells of every object.
func table(t testing.TB) []tracked {
	t.Helper()
	var all []tracked
	for _, typ := range resourceTypes() {
		var objects []tracked
		if err := json.Unmarshal([]byte(running.Command(t, "rdma", "-j", "resource", "show", typ)), &objects); err != nil {
			t.Fatalf("rdma -j resource show %s: %v", typ, err)
		}
		for _, o := range objects {
			o.Type = typ
			all = append(all, o)
		}
	}
	return all
}

type counts map[string]float64

// count returns what the metrics of the inventory are to say of a device that
// has these objects.
func count(objects []tracked, device string) counts {
	c := make(counts)
	for _, typ := range resourceTypes() {
		c[typ+" user"], c[typ+" kernel"] = 0, 0
	}
	c["entries user"], c["entries kernel"], c["bytes user"], c["bytes kernel"] = 0, 0, 0, 0
	for _, o := range objects {
		if o.Name != device {
			continue
		}
		owner := "user"
		if o.PID == 0 && o.Comm != "" {
			owner = "kernel"
		}
		c[o.Type+" "+owner]++
		if o.Type == "qp" {
			c[fmt.Sprintf("qp type %s state %s", strings.ToLower(o.QP), strings.ToLower(o.State))]++
		}
		c["entries "+owner] += float64(o.CQE)
		c["bytes "+owner] += float64(o.Len)
		if owner == "user" {
			c[fmt.Sprintf("%s of %d %s", o.Type, o.PID, o.Comm)]++
		}
	}
	return c
}

func counted(m metrics, device string) counts {
	c := make(counts)
	for _, s := range m.find("rdma_resource_objects", "device", device) {
		c[label(s, "type")+" "+label(s, "owner")] = number(s)
	}
	for _, s := range m.find("rdma_resource_queue_pairs", "device", device) {
		c[fmt.Sprintf("qp type %s state %s", label(s, "qp_type"), label(s, "state"))] = number(s)
	}
	for _, s := range m.find("rdma_resource_cq_entries", "device", device) {
		c["entries "+label(s, "owner")] = number(s)
	}
	for _, s := range m.find("rdma_resource_mr_bytes", "device", device) {
		c["bytes "+label(s, "owner")] = number(s)
	}
	for _, s := range m.find("rdma_resource_owner_objects", "device", device) {
		c[fmt.Sprintf("%s of %s %s", label(s, "type"), label(s, "pid"), label(s, "comm"))] = number(s)
	}
	return c
}

// differences lists the figures that are not the same.
func differences(got, want counts) []string {
	var all []string
	for _, key := range slices.Sorted(maps.Keys(want)) {
		// Nothing is told of the kernel while it never had any.
		if g, ok := got[key]; !ok && (want[key] != 0 || !strings.HasSuffix(key, " kernel")) || g != want[key] {
			all = append(all, fmt.Sprintf("%s: %v, want %v", key, got[key], want[key]))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want[key]; !ok {
			all = append(all, fmt.Sprintf("%s: %v, want none", key, got[key]))
		}
	}
	return all
}

// inventory are flags for an exporter that inventories often, and probes a device only
// once.
func inventory() []string {
	return []string{"--inventory.interval=1s", "--probe.interval=1h"}
}

// finds makes sure that something is found of a device, or not.
func (m metrics) finds(t *testing.T, want bool, device, kind, severity string) {
	t.Helper()
	found := len(m.find("rdma_finding_first_seen_timestamp_seconds", "device", device, "finding", kind, "severity", severity)) > 0
	if found != want {
		t.Errorf("%s: the finding %s (%s) is there: %t, want %t", device, kind, severity, found, want)
	}
}

// inventories is the number of finished inventories of a device.
func (m metrics) inventories(device string) float64 {
	return m.sum("rdma_inventory_runs_total", "device", device)
}

// looked at waits until each device has been probed, no child of a probe is there,
// and an inventory that began after that has ended on each.
func (e *exporter) looked(devices ...string) metrics {
	e.t.Helper()
	if len(devices) == 0 {
		devices = []string{active, down}
	}
	e.until("the first runs", func(m metrics) bool {
		return !slices.ContainsFunc(devices, func(d string) bool { return !m.probed(d) })
	})
	since := float64(time.Now().UnixNano()) / 1e9
	return e.until("inventories", func(m metrics) bool {
		// It tells of the same inventory as what was found, which is counted a moment before.
		return !slices.ContainsFunc(devices, func(d string) bool {
			return m.sum("rdma_inventory_timestamp_seconds", "device", d) <= since
		})
	})
}

// What the inventory counts is what rdma resource shows at the same moment, while
// several programs hold objects: by device, type, owner and state.
func TestInventory(t *testing.T) {
	holder := hold(t, nil, "--qps", "4000", "--init", "500", "--rts", "200", "--error", "300",
		"--cqs", "7", "--cq-entries", "100", "--srqs", "3", "--mrs", "20", "--mr-bytes", "8192", "--pds", "5")
	// pingpong waits for a peer with its objects; of the two ends of send_lat, both
	// are stopped in the middle.
	pingpong := background(t, "ibv_rc_pingpong", "-d", active, "-g", "1")
	send := []string{"-n", "19", "ib_send_lat", "-d", active, "-x", "1", "-p", "18600", "-n", "100000000", "-F"}
	server := background(t, "nice", send...)
	await(t, "ib_send_lat to listen", func() bool {
		const port, listening = ":48A8 ", " 0A " // 18600
		return slices.ContainsFunc(strings.Split(running.Command(t, "cat", "/proc/net/tcp", "/proc/net/tcp6"), "\n"), func(line string) bool {
			return strings.Contains(line, port) && strings.Contains(line, listening)
		})
	})
	peer := background(t, "nice", append(send, "10.77.0.1")...)
	await(t, "all of them to hold objects", func() bool {
		seen := make(map[int]bool)
		for _, o := range table(t) {
			if o.Type == "qp" && (o.PID == pingpong || o.State == "RTS") {
				seen[o.PID] = true
			}
		}
		return seen[holder.PID()] && seen[pingpong] && seen[server] && seen[peer]
	})
	for _, pid := range []int{server, peer} {
		signal(t, pid, syscall.SIGSTOP)
	}

	e := start(t, options{flags: inventory()})
	m := e.looked()
	objects := table(t)
	if len(objects) < 4000 {
		t.Fatalf("rdma resource shows %d objects", len(objects))
	}
	for _, device := range []string{active, down} {
		want := count(objects, device)
		for _, d := range differences(counted(m, device), want) {
			t.Errorf("%s: %s", device, d)
		}
		t.Logf("%s: %d figures agree: %v", device, len(want), want)
		m.is(t, 1, "rdma_inventory_success", "device", device)
		if n := len(m.find("rdma_inventory_incomplete", "device", device)); n != 0 {
			t.Errorf("%d types of %s could not be looked at", n, device)
		}
		for _, limit := range []struct{ typ, limit string }{{"qp", "max_qp"}, {"cq", "max_cq"}, {"pd", "max_pd"}, {"mr", "max_mr"}, {"srq", "max_srq"}} {
			m.is(t, m.one(t, "rdma_device_limit", "device", device, "limit", limit.limit), "rdma_resource_limit", "device", device, "type", limit.typ)
		}
	}
	m.is(t, 300, "rdma_resource_queue_pairs", "device", active, "qp_type", "rc", "state", "err")
	m.is(t, 1, "rdma_inventory_pid_visibility")
	if n := m.sum("rdma_resource_orphaned_objects", "device", active, "type", "qp") + m.sum("rdma_probe_leaked_objects", "device", active, "type", "qp"); n != 0 {
		t.Errorf("%v orphaned or leaked queue pairs", n)
	}
	m.finds(t, true, active, "qp_error", "warning")
	// What the kernel pinned of the holder's memory is what /proc says.
	m.is(t, 1024*status(t, holder.PID(), "VmPin"), "rdma_owner_locked_bytes", "pid", strconv.Itoa(holder.PID()), "kind", "pinned")
	e.terminate()
}

// TestInventoryLeavesOutTheExporter makes sure that of a program's objects each inventory
// counts just those, while children of the exporter hold others on the same device.
func TestInventoryLeavesOutTheExporter(t *testing.T) {
	holder := hold(t, nil, "--qps", "1000", "--cqs", "7", "--srqs", "3", "--mrs", "20", "--pds", "5")
	want := make(map[string]float64)
	for _, o := range table(t) {
		if o.Name == active && o.PID == holder.PID() {
			want[o.Type]++
		}
	}
	e := start(t, options{flags: []string{"--inventory.interval=1s", "--probe.interval=1s", "--contract.interval=5s"}})
	overlaps, last := 0, 0.0
	m := e.until("inventories during runs", func(m metrics) bool {
		for typ, n := range want {
			for _, s := range m.find("rdma_resource_objects", "device", active, "type", typ, "owner", "user") {
				if number(s) != n {
					t.Errorf("%v objects of type %s, want %v", number(s), typ, n)
				}
			}
		}
		for _, s := range m.find("rdma_resource_owner_objects", "device", active) {
			if label(s, "comm") != "holder" {
				t.Errorf("%v objects of type %s are of %q", number(s), label(s, "type"), label(s, "comm"))
			}
		}
		ours := m.sum("rdma_resource_objects", "device", active, "owner", "exporter")
		if runs := m.inventories(active); runs != last {
			last = runs
			if ours > 0 {
				overlaps++
			}
		}
		return t.Failed() || overlaps >= 5
	})
	if n := m.sum("rdma_resource_orphaned_objects", "device", active); n != 0 {
		t.Errorf("%v objects are orphaned", n)
	}
	e.terminate()
}

// status returns a size from /proc/PID/status, in KiB.
func status(t testing.TB, pid int, field string) float64 {
	t.Helper()
	for line := range strings.Lines(running.Command(t, "cat", fmt.Sprintf("/proc/%d/status", pid))) {
		if value, ok := strings.CutPrefix(line, field+":"); ok {
			n := running.Must(strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 64))(t)
			return n
		}
	}
	t.Fatalf("process %d has no %s", pid, field)
	return 0
}

const (
	podUID      = "2f4a8e1c-93b7-4d0e-8a55-6c1d2e3f4a5b"
	containerID = "4c01db0b339cd8c1f4d8b5a6e7f8091a2b3c4d5e6f708192a3b4c5d6e7f80911"
)

// cgroupRoot returns where the cgroup file system is mounted, until the end of the test if
// it was not before.
func cgroupRoot(t *testing.T) string {
	t.Helper()
	const root = "/sys/fs/cgroup"
	if _, err := os.Stat(filepath.Join(root, "cgroup.controllers")); err != nil {
		running.Command(t, "mount", "-t", "cgroup2", "none", root)
		t.Cleanup(func() { running.Command(t, "umount", root) })
	}
	return root
}

// cgroup makes a cgroup, whose parents are made if need be, until the end of the test. It
// returns its directory.
func cgroup(t *testing.T, path string) string {
	t.Helper()
	folder := cgroupRoot(t)
	for name := range strings.SplitSeq(path, "/") {
		writeFile(t, filepath.Join(folder, "cgroup.subtree_control"), "+rdma")
		folder = filepath.Join(folder, name)
		if err := os.Mkdir(folder, 0o755); errors.Is(err, os.ErrExist) {
			continue
		} else if err != nil {
			t.Fatal(err)
		}
		created := folder
		t.Cleanup(func() {
			if err := os.Remove(created); err != nil {
				t.Error(err)
			}
		})
	}
	return folder
}

// podCgroup makes the cgroup of the container of a pod, with limits.
func podCgroup(t *testing.T) string {
	t.Helper()
	slice := "kubepods-burstable-pod" + strings.ReplaceAll(podUID, "-", "_") + ".slice"
	path := cgroup(t, filepath.Join("kubepods.slice", "kubepods-burstable.slice", slice, "cri-containerd-"+containerID+".scope"))
	limitCgroup(t, path, "hca_handle=10 hca_object=500")
	return path
}

// limitCgroup limits what a cgroup may have of the active device, until the end of the test.
// The kernel keeps the limits of a cgroup that is removed, and crashes over them
// (free_cg_rpool_locked) when the device is removed.
func limitCgroup(t *testing.T, folder, limits string) {
	t.Helper()
	file := filepath.Join(folder, "rdma.max")
	writeFile(t, file, active+" "+limits+"\n")
	t.Cleanup(func() { writeFile(t, file, active+" hca_handle=max hca_object=max\n") })
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	running.Check(t, os.WriteFile(path, []byte(text), 0o644))
}

// inCgroup is how a program is started in a cgroup.
func inCgroup(path string) []string {
	return []string{"sh", "-c", `echo $$ > "$0/cgroup.procs" && exec "$@"`, path}
}

// The owner's container and pod are told by its cgroup, and so is what the cgroup
// may use.
func TestInventoryContainer(t *testing.T) {
	path := podCgroup(t)
	// What is created counts for the cgroup that its creator is in.
	pid := hold(t, inCgroup(path), "--qps", "50").PID()
	e := start(t, options{flags: inventory()})
	m := e.looked(active)
	owner := []string{"container_id", containerID, "pod_uid", podUID}
	m.is(t, 50, "rdma_resource_owner_objects", append([]string{"device", active, "type", "qp", "pid", strconv.Itoa(pid), "comm", "holder"}, owner...)...)
	current := make(map[string]float64)
	for line := range strings.Lines(running.Command(t, "cat", filepath.Join(path, "rdma.current"))) {
		for _, field := range strings.Fields(line) {
			if name, value, ok := strings.Cut(field, "="); ok && strings.HasPrefix(line, active+" ") {
				current[name], _ = strconv.ParseFloat(value, 64)
			}
		}
	}
	for resource, limit := range map[string]float64{"hca_handle": 10, "hca_object": 500} {
		labels := append([]string{"device", active, "resource", resource}, owner...)
		if current[resource] == 0 {
			t.Errorf("the cgroup uses no %s: %v", resource, current)
		}
		m.is(t, current[resource], "rdma_cgroup_objects", labels...)
		m.is(t, limit, "rdma_cgroup_limit", labels...)
	}
	e.terminate()
}

// Objects whose owner is dead while somebody keeps its file open are orphaned, until
// they are gone.
func TestInventoryOrphans(t *testing.T) {
	config := filepath.Join(t.TempDir(), "config.yml")
	running.Check(t, os.WriteFile(config, []byte("findings: {orphan_age: 1s}\n"), 0o644))
	e := start(t, options{flags: append(inventory(), "--config.file="+config)})
	e.looked(active)
	holder := hold(t, nil, "--qps", "20", "--pass-fd")
	m := e.until("orphans", func(m metrics) bool {
		return m.sum("rdma_resource_orphaned_objects", "device", active, "type", "qp") == 20
	})
	m.is(t, 1, "rdma_inventory_pid_visibility")
	e.until("the finding", func(m metrics) bool {
		return len(m.find("rdma_finding_first_seen_timestamp_seconds", "device", active, "finding", "orphaned")) > 0
	})
	holder.Release()
	e.until("the orphans to be gone", func(m metrics) bool {
		return len(m.find("rdma_resource_orphaned_objects", "device", active, "type", "qp")) == 1 &&
			m.sum("rdma_resource_orphaned_objects", "device", active) == 0
	})
	e.terminate()
}

// What is left of a child of the exporter that has ended is found, told and watched
// until it is gone.
func TestInventoryLeaks(t *testing.T) {
	dir := t.TempDir()
	faults, kept := filepath.Join(dir, "faults"), filepath.Join(dir, "kept")
	// Another process keeps the device open that the child opened, and the child
	// crashes with all that it holds.
	for file, text := range map[string]string{kept: "", faults: "ibv_open_device keep while=" + kept + "\nibv_post_send crash\n"} {
		running.Check(t, os.WriteFile(file, []byte(text), 0o600))
	}
	e := start(t, options{
		wrap:  []string{"env", "LD_PRELOAD=" + faultsLibrary(t), "IBV_FAULTS=" + faults},
		flags: append(inventory(), "--device.include="+active),
	})
	// An inventory knows of the children that had ended when it was about to begin.
	e.looked(active)
	m := e.looked(active)
	m.is(t, 1, "rdma_probe_runs_total", "device", active, "outcome", "crashed")
	left := make(map[string]float64)
	for _, o := range table(t) {
		if o.Name == active && o.PID == 0 && o.Comm == "" {
			left[o.Type]++
		}
	}
	t.Logf("rdma resource shows %v that belong to nobody", left)
	if left["ctx"] != 1 || left["qp"] == 0 || left["pd"] == 0 || left["cq"] == 0 {
		t.Error("the child has left nothing: the test proves nothing")
	}
	for _, typ := range []string{"ctx", "pd", "cq", "qp", "mr", "srq"} {
		if n := m.sum("rdma_probe_leaked_objects", "device", active, "type", typ); n != left[typ] {
			t.Errorf("%v %s are left, want %v", n, typ, left[typ])
		}
	}
	m.finds(t, true, active, "leaked", "warning")
	m = e.looked(active)
	m.is(t, left["qp"], "rdma_probe_leaked_objects", "device", active, "type", "qp")
	running.Check(t, os.Remove(kept))
	m = e.until("nothing to be left", func(m metrics) bool { return m.sum("rdma_probe_leaked_objects") == 0 })
	m.is(t, 0, "rdma_probe_leaked_objects", "device", active, "type", "qp")
	e.terminate()
	for message, want := range map[string]int{"still holds objects of ended children": 1, "Objects of ended children are gone": 1} {
		if n := strings.Count(e.log.String(), message); n != want {
			t.Errorf("the log says %q %d times, want %d", message, n, want)
		}
	}
}
