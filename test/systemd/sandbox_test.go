//go:build vm

package systemd

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"rdma_exporter/test/running"
)

// plain is the exporter as root, without any of the service's settings.
const plain = `[Service]
EnvironmentFile=/etc/default/rdma_exporter
ExecStart=/usr/bin/rdma_exporter $ARGS
LimitMEMLOCK=infinity
`

// In its sandbox the exporter finds out what it finds out as root without one.
func TestSandbox(t *testing.T) {
	write(t, units+"/plain.service", plain)
	configure(t, probing+" --inventory.interval=1s --contract.interval=1h '--device.exclude=no such device'")
	hold(t)
	look := func(t *testing.T) samples {
		done(t, active, down)
		await(t, "the hardware to be read", func() bool {
			read := scrape(t).of("rdma_hardware_success")
			maps.DeleteFunc(read, func(_ string, success float64) bool { return success != 1 })
			return len(read) == 2
		})
		await(t, "the contracts to be judged", func() bool {
			return len(scrape(t).of("rdma_contract_duration_seconds")) == 2
		})
		// What children of the exporter hold comes and goes while it is looked at.
		since := float64(time.Now().UnixNano()) / 1e9
		var s samples
		await(t, "inventories beside which nothing was done", func() bool {
			s = scrape(t)
			inventories := s.of("rdma_inventory_timestamp_seconds")
			maps.DeleteFunc(inventories, func(_ string, began float64) bool { return began <= since })
			// A child that just ended leaves objects without an owner for a moment.
			return len(inventories) == 2 && len(s.of("rdma_resource_orphaned_objects")) == 0
		})
		return s
	}
	var want, got samples
	t.Run("root", func(t *testing.T) {
		start(t, "plain.service")
		want = look(t)
	})
	t.Run("service", func(t *testing.T) {
		start(t, service)
		got = look(t)
		main := property(t, "MainPID")
		matches(t, "/proc/"+main+"/limits", `Max locked memory +unlimited +unlimited +bytes`)
		matches(t, "/proc/"+main+"/status", `CapInh:\t0+`, `CapPrm:\t0+`, `CapEff:\t0+`, `CapBnd:\t0+`, `CapAmb:\t0+`, `NoNewPrivs:\t1`, `Seccomp:\t2`, `Uid:\t6[1-5][0-9]{3}\t.*`)
		matches(t, "/proc/"+main+"/oom_score_adj", `500`)
		t.Logf("memory: %s bytes at most of %s; tasks: %s", strings.TrimSpace(read(t, "/sys/fs/cgroup/system.slice/"+service+"/memory.peak")),
			property(t, "MemoryMax"), property(t, "TasksCurrent"))
	})
	if t.Failed() {
		return
	}
	for _, s := range []samples{want, got} {
		for _, device := range []string{active, down} {
			s.ok(t, device)
		}
		for key, value := range map[string]float64{
			`rdma_probe_success{device="rxe0",probe="notification"}`: 1,
			`rdma_inventory_success{device="rxe0"}`:                  1,
			`rdma_inventory_success{device="rxe1"}`:                  1,
			`rdma_inventory_pid_visibility{}`:                        1,
			`rdma_resource_owner_objects{comm="holder",container_id="",device="rxe0",pod_uid="",slurm_job_id="",type="qp"}`: 3,
		} {
			if got, ok := s[key]; !ok || got != value {
				t.Errorf("%s is %v, want %v", key, got, value)
			}
		}
		if n := len(s.of("rdma_contract_verdicts", `device="rxe0"`)); n == 0 {
			t.Error("no contract was checked")
		}
	}
	// The service keeps a state, the plain program none: whether that can be written, and
	// when ports changed while other services of these tests ran.
	const writable = "rdma_exporter_state_writable"
	if value := got[writable+"{}"]; value != 1 {
		t.Errorf("%s is %v", writable, value)
	}
	kept := func(name string) bool { return name == writable || name == "rdma_port_state_change_timestamp_seconds" }
	if got, want := slices.DeleteFunc(got.names(), kept), slices.DeleteFunc(want.names(), kept); !slices.Equal(got, want) {
		t.Errorf("metrics:\n%v\nwant\n%v", got, want)
	}
	// Values of what does not depend on when it was looked at.
	holder := `comm="holder"`
	for _, c := range []struct {
		metric string
		labels []string
	}{
		{"rdma_probe_success", nil},
		{"rdma_device_info", nil},
		{"rdma_port_state_id", nil},
		{"rdma_probe_cq_entries_actual", nil},
		{"rdma_probe_srq_work_requests_actual", nil},
		{"rdma_probe_qp_work_requests_actual", nil},
		{"rdma_probe_qp_max_inline_bytes", nil},
		{"rdma_resource_limit", nil},
		{"rdma_resource_owner_objects", []string{holder}},
		{"rdma_owner_locked_bytes", []string{holder}},
		{"rdma_owner_locked_limit_bytes", []string{holder}},
	} {
		got, want := got.of(c.metric, c.labels...), want.of(c.metric, c.labels...)
		if len(want) == 0 || !maps.Equal(got, want) {
			t.Errorf("%s:\n%v\nwant\n%v", c.metric, got, want)
		}
	}
	// The same contracts were checked, and the same things skipped, except what needs CAP_NET_RAW.
	for _, metric := range []string{"rdma_contract_verdicts", "rdma_contract_violated", "rdma_contract_skipped", "rdma_probe_skipped"} {
		got, want := subjects(got.of(metric)), subjects(want.of(metric))
		if !slices.Equal(got, want) {
			t.Errorf("%s:\n%v\nwant\n%v", metric, got, want)
		}
	}
	if reasons := got.of("rdma_probe_skipped", `subject="raw_packet"`, `reason="not_permitted"`); len(reasons) != 2 {
		t.Errorf("raw packet QPs were skipped for %v", reasons)
	}
}

// subjects are samples without the reason that they give.
func subjects(s samples) []string {
	reason := regexp.MustCompile(`reason="[^"]*"`)
	var list []string
	for _, key := range s.keys() {
		list = append(list, reason.ReplaceAllString(key, ""))
	}
	slices.Sort(list)
	return list
}

func read(t testing.TB, file string) string {
	t.Helper()
	b := running.Must(os.ReadFile(file))(t)
	return string(b)
}

// matches makes sure that a file has lines of these forms.
func matches(t testing.TB, file string, lines ...string) {
	t.Helper()
	text := read(t, file)
	for _, line := range lines {
		if !regexp.MustCompile(`(?m)^` + line + `\s*$`).MatchString(text) {
			t.Errorf("%s has no line %q:\n%s", file, line, text)
		}
	}
}

// What each setting that is looser than it could be is for: this is what is missing
// with the tighter one, and nothing else. Those that have nothing to do with each
// other are tried together.
func TestTighter(t *testing.T) {
	hold(t)
	const (
		name    = `rdma_resource_owner_objects{comm="holder"`
		locked  = `rdma_owner_locked_bytes{comm="holder"` // a probe of our own may be seen
		objects = "rdma_resource_objects"
		probes  = "rdma_probe_success"
		began   = "process_start_time_seconds"
	)
	for _, c := range []struct {
		settings []string
		// missing are beginnings of samples that are there without the settings.
		missing []string
	}{
		{[]string{"ProtectProc=invisible", "ProcSubset=pid"}, []string{name, locked, began}},
		{[]string{"PrivateDevices=yes"}, []string{probes}},
		{[]string{"DeviceAllow=", "RestrictAddressFamilies=~AF_NETLINK"}, []string{probes, name, locked, objects}},
		{[]string{"SystemCallFilter=~setpriority"}, nil},
	} {
		t.Run(strings.Join(c.settings, " "), func(t *testing.T) {
			configure(t, quick, c.settings...)
			start(t, service)
			s := done(t, active)
			for _, prefix := range []string{name, locked, objects, probes, began} {
				there := slices.ContainsFunc(s.keys(), func(key string) bool { return strings.HasPrefix(key, prefix) })
				if want := !slices.Contains(c.missing, prefix); there != want {
					t.Errorf("%s is there: %v, want %v", prefix, there, want)
				}
			}
		})
	}
}
