//go:build vm

package softroce

import (
	"fmt"
	"math/bits"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"rdma_exporter/test/running"
)

// Numbers of capabilities, as in <linux/capability.h>.
const (
	capNetAdmin  = 12
	capNetRaw    = 13
	capIPCLock   = 14
	capSysPtrace = 19
	capSysAdmin  = 21
	capLast      = 40
)

const (
	nobodyID = 65534
	// readersGroup may open what is for a group.
	readersGroup = 4711
	// memlockUsual is the limit on locked memory where none is told, in bytes.
	memlockUsual = 8 << 20
	// outsideQPs and insideQPs are how many queue pairs are held by the program on the
	// host, and by the one that shares the exporter's pid namespace.
	outsideQPs = 50
	insideQPs  = 30
)

// A situation is what an exporter is started in.
type situation struct {
	group, name string
	wrap        []string
	// exclusive tells that each device is kept to one network namespace.
	exclusive bool
	// contracts tells that the contracts are judged, too, which takes longer.
	contracts bool
	// rights are what the exporter must be seen to have.
	rights rights
}

// rights are what the kernel says that a process has.
type rights struct {
	uid int
	// capabilities is the effective set.
	capabilities uint64
	// memlock is RLIMIT_MEMLOCK in bytes; −1 for no limit.
	memlock int64
	// filtered tells that system calls are filtered.
	filtered bool
}

func set(caps ...int) uint64 {
	var all uint64
	for _, c := range caps {
		all |= 1 << c
	}
	return all
}

// nobodys are the rights of user nobody with these capabilities.
func nobodys(caps ...int) rights {
	return rights{uid: nobodyID, capabilities: set(caps...), memlock: memlockUsual}
}

// as runs the command that follows it with these rights, and in these groups.
func as(r rights, groups ...int) []string {
	limit := "unlimited"
	if r.memlock >= 0 {
		limit = strconv.FormatInt(r.memlock, 10)
	}
	args := []string{"prlimit", "--memlock=" + limit + ":" + limit, "setpriv", "--reuid=" + strconv.Itoa(r.uid), "--regid=" + strconv.Itoa(r.uid), "--no-new-privs"}
	if len(groups) == 0 {
		args = append(args, "--clear-groups")
	} else {
		args = append(args, fmt.Sprintf("--groups=%d", groups[0]))
	}
	if bits.OnesCount64(r.capabilities) > capLast {
		return args
	}
	caps := "-all"
	for c := range capLast + 1 {
		if r.capabilities&(1<<c) != 0 {
			caps += ",+" + capName(c)
		}
	}
	return append(args, "--bounding-set="+caps, "--inh-caps="+caps, "--ambient-caps="+caps)
}

func capName(c int) string {
	switch c {
	case capNetAdmin:
		return "net_admin"
	case capNetRaw:
		return "net_raw"
	case capIPCLock:
		return "ipc_lock"
	case capSysPtrace:
		return "sys_ptrace"
	case capSysAdmin:
		return "sys_admin"
	default:
		return strconv.Itoa(c)
	}
}

// in runs the command that follows it after a script of the shell, in namespaces of
// its own that flags of unshare(1) name.
func in(namespaces, script string) []string {
	run := []string{"sh", "-euc", script + "\n" + `exec "$@"`, "sh"}
	if namespaces == "" {
		return run
	}
	return append(append([]string{"unshare"}, strings.Fields(namespaces)...), run...)
}

// A privilegedHost is a machine on which a program of root holds objects in the
// cgroup of a pod.
type privilegedHost struct {
	exporter string // a file that anybody can run
	config   string
	cgroups  string
	devices  string // the hierarchy of the device controller
	ready    string // a folder for the signs of the programs inside
}

// newPrivilegedHost makes one of this machine until the end of the test.
func newPrivilegedHost(t *testing.T) *privilegedHost {
	t.Helper()
	before := resources(t)
	t.Cleanup(func() { awaitResources(t, before) })
	h := &privilegedHost{exporter: publicBinary(t), cgroups: cgroupRoot(t), devices: t.TempDir(), ready: t.TempDir()}
	running.Command(t, "mount", "-t", "cgroup", "-o", "devices", "none", h.devices)
	t.Cleanup(func() { running.Command(t, "umount", h.devices) })

	// Sizes that cost little, since only what may be done is tried.
	h.config = filepath.Join(filepath.Dir(h.exporter), "config.yml")
	writeFile(t, h.config, `probe:
  cq: {medium: {entries: 16}, large: {entries: 16}}
  srq: {medium: {work_requests: 16}, large: {work_requests: 16}}
  qp:
    medium: {send_work_requests: 16, recv_work_requests: 16}
    large: {send_work_requests: 16, recv_work_requests: 16}
`)
	hold(t, inCgroup(podCgroup(t)), "--qps", strconv.Itoa(outsideQPs), "--mrs", "1", "--mr-bytes", "65536")
	return h
}

// situations lists them in the order of the documentation.
func (h *privilegedHost) situations(t *testing.T) []situation {
	t.Helper()
	nobody := nobodys()
	root := rights{capabilities: 1<<(capLast+1) - 1, memlock: memlockUsual}
	own, noContext, fewObjects := cgroup(t, "own"), cgroup(t, "nocontext"), cgroup(t, "fewobjects")
	limitCgroup(t, noContext, "hca_handle=0")
	limitCgroup(t, fewObjects, "hca_object=3")
	refused := filepath.Join(h.devices, "refused")
	running.Check(t, os.Mkdir(refused, 0o755))
	t.Cleanup(func() { _ = os.Remove(refused) })
	writeFile(t, filepath.Join(refused, "devices.deny"), "a")
	// What is no device of verbs every container has.
	writeFile(t, filepath.Join(refused, "devices.allow"), "c 1:* rwm")

	with := func(group, name string, r rights, before ...[]string) situation {
		return situation{group: group, name: name, rights: r, wrap: slices.Concat(slices.Concat(before...), as(r))}
	}
	memlock := func(r rights, bytes int64) rights {
		r.memlock = bytes
		return r
	}
	enter := func(folder string) []string { return in("", `echo $$ > "`+folder+`/cgroup.procs"`) }
	mount := func(script string) []string { return in("--mount", script) }
	nodes := func(script string) []string {
		return mount("mount -t tmpfs none /mnt\ncp -a /dev/infiniband/. /mnt\nmount --bind /mnt /dev/infiniband\n" + script)
	}
	freshSysfs := "ip link set lo up\nmount -t sysfs none /sys"

	var all []situation
	add := func(contracts bool, s situation) {
		s.contracts = contracts
		all = append(all, s)
	}

	const users = "User and capabilities"
	add(true, with(users, "uid 65534, no capability", nobody))
	add(false, with(users, "the same with `CAP_NET_RAW`", nobodys(capNetRaw)))
	add(false, with(users, "the same with `CAP_NET_ADMIN` and `CAP_SYS_ADMIN`", nobodys(capNetAdmin, capSysAdmin)))
	add(false, with(users, "the same with `CAP_SYS_PTRACE`", nobodys(capSysPtrace)))
	add(false, with(users, "uid 0, every capability", root))

	const memory = "Locked memory (`RLIMIT_MEMLOCK`)"
	add(true, with(memory, "0", memlock(nobody, 0)))
	add(false, with(memory, "0, with `CAP_IPC_LOCK`", memlock(nobodys(capIPCLock), 0)))
	add(false, with(memory, "64 KiB", memlock(nobody, 64<<10)))
	add(false, with(memory, "unlimited", memlock(nobody, -1)))

	const nodesGroup = "Device nodes (`/dev/infiniband/uverbs*`)"
	add(false, situation{
		group: nodesGroup, name: "mode 0660, of a group that it is in", rights: nobody,
		wrap: slices.Concat(nodes(fmt.Sprintf("chmod 0660 /dev/infiniband/uverbs*\nchgrp %d /dev/infiniband/uverbs*", readersGroup)), as(nobody, readersGroup)),
	})
	add(true, with(nodesGroup, "mode 0600, of root", nobody, nodes("chmod 0600 /dev/infiniband/uverbs*")))
	add(false, with(nodesGroup, "not there", nobody, nodes("rm /dev/infiniband/uverbs*")))
	add(false, with(nodesGroup, "there, and refused by the device cgroup", nobody, in("", `echo $$ > "`+refused+`/cgroup.procs"`)))

	const processes = "Processes"
	add(false, with(processes, "a pid namespace of its own", nobody, in("--pid --fork --mount-proc", ":")))
	add(false, with(processes, "a pid namespace that it shares with one of two owners", nobody, in("--pid --fork --mount-proc", `
sleep 1h | "`+holderFile+`" --device `+active+` --qps `+strconv.Itoa(insideQPs)+` > "`+h.ready+`/inside" &
until grep -q ready "`+h.ready+`/inside"; do sleep 0.1; done`)))
	add(false, with(processes, "`/proc` with `hidepid=invisible`", nobody, mount("mount -t proc -o hidepid=invisible proc /proc")))
	add(false, situation{
		group: processes, name: "the same, in the group that `gid=` names", rights: nobody,
		wrap: slices.Concat(mount(fmt.Sprintf("mount -t proc -o hidepid=invisible,gid=%d proc /proc", readersGroup)), as(nobody, readersGroup)),
	})
	add(false, with(processes, "the same, with `CAP_SYS_PTRACE`", nobodys(capSysPtrace), mount("mount -t proc -o hidepid=invisible proc /proc")))
	add(false, with(processes, "`/proc` with `subset=pid`", nobody, mount("mount -t proc -o subset=pid proc /proc")))

	const networks = "Network and RDMA namespaces"
	add(true, with(networks, "devices shared; a network namespace of its own, with its `/sys`", nobody, in("--net --mount", freshSysfs+"\nmount -t cgroup2 none "+h.cgroups)))
	exclusive := func(name string, before ...[]string) {
		s := with(networks, name, nobody, before...)
		s.exclusive = true
		add(false, s)
	}
	exclusive("devices exclusive; the network namespace of the device")
	exclusive("devices exclusive; a network namespace of its own, with its `/sys`", in("--net --mount", freshSysfs))
	exclusive("devices exclusive; a network namespace of its own, with the host's `/sys`", in("--net", "ip link set lo up"))

	const files = "`/sys`"
	add(false, with(files, "read-only", nobody, mount("mount -o remount,bind,ro /sys")))
	add(false, with(files, "empty", nobody, mount("mount -t tmpfs none /sys")))

	const confinement = "User namespaces and system calls"
	inside := nobody
	inside.capabilities = root.capabilities
	add(false, situation{
		group: confinement, name: "a user namespace of its own, root therein", rights: inside,
		wrap: slices.Concat(as(nobody), []string{"unshare", "--user", "--map-root-user"}),
	})
	add(true, situation{
		group: confinement, name: "a rootless container: user, pid, mount, network, IPC, UTS and cgroup namespaces of its own", rights: inside,
		wrap: slices.Concat(as(nobody), in("--user --map-root-user --pid --fork --mount --mount-proc --net --ipc --uts --cgroup", freshSysfs)),
	})
	filtered := nobody
	filtered.filtered = true
	add(true, with(confinement, "the system calls refused that containers are refused by default", filtered, refuseSystemCalls(byContainers)))

	const cgroups = "Control groups"
	add(false, with(cgroups, "`/sys/fs/cgroup` not mounted", nobody, mount("umount "+h.cgroups)))
	add(false, with(cgroups, "a cgroup namespace of its own, with its `/sys/fs/cgroup`", nobody, enter(own), in("--cgroup --mount", "umount "+h.cgroups+"\nmount -t cgroup2 none "+h.cgroups)))
	add(false, with(cgroups, "`rdma.max` of its cgroup: `hca_handle=0`", nobody, enter(noContext)))
	add(false, with(cgroups, "`rdma.max` of its cgroup: `hca_object=3`", nobody, enter(fewObjects)))
	return all
}
