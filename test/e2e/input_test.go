package e2e_test

import (
	"net"
	"strings"
	"testing"

	"rdma_exporter/test/running"
)

// What is wrong with the command line or a file that it names is refused at
// start, with what is wrong, where, and mostly what to do instead.
func TestBadInput(t *testing.T) {
	t.Parallel()
	const simulated = "--provider=simulated"
	for _, c := range []struct {
		name string
		// text is that of the file FILE, if the arguments name it.
		text string
		args []string
		// want is what standard error says.
		want []string
	}{
		{name: "unknown flag", args: []string{"--nope"}, want: []string{"unknown long flag '--nope'", "try --help"}},
		{name: "unknown command", args: []string{"prob"}, want: []string{`"prob"`, "try --help"}},
		{name: "argument too many", args: []string{"serve", "extra"}, want: []string{"unexpected extra"}},
		{name: "value missing at the end", args: []string{"--probe.interval"}, want: []string{"expected argument", "'--probe.interval'"}},
		{name: "value missing before a flag", args: []string{"--provider", "--probe.interval=1s"}, want: []string{"expected argument", "'--provider'"}},
		{name: "flag twice", args: []string{"--path.sysfs=/sys", "--path.sysfs=/sys"}, want: []string{"'path.sysfs' cannot be repeated"}},
		{name: "child without device", args: []string{"probe"}, want: []string{"'--device' not provided"}},
		{name: "contract without device", args: []string{"contract"}, want: []string{"'--device' not provided"}},
		{name: "provider", args: []string{"--provider=real"}, want: []string{"--provider: ", "libibverbs,simulated", "'real'"}},
		{name: "when", args: []string{"--probe.when=never"}, want: []string{"--probe.when: ", "always,idle", "'never'"}},
		{name: "when nothing", args: []string{"--probe.when="}, want: []string{"--probe.when: ", "always,idle"}},
		{name: "include", args: []string{"--device.include=mlx5_("}, want: []string{"--device.include: ", "missing closing )"}},
		{name: "exclude", args: []string{"--device.exclude=*"}, want: []string{"--device.exclude: ", "missing argument to repetition operator"}},
		{name: "log level", args: []string{"--log.level=loud"}, want: []string{"--log.level: ", "loud"}},
		{name: "log format", args: []string{"--log.format=xml"}, want: []string{"--log.format: ", "xml"}},
		{name: "duration without unit", args: []string{"--probe.interval=5"}, want: []string{"--probe.interval: ", "missing unit", `"5"`}},
		{name: "number", args: []string{"--probe.concurrency=two"}, want: []string{"--probe.concurrency: ", `"two"`}},
		{
			name: "sysfs",
			args: []string{"--path.sysfs=/no/such/folder"},
			want: []string{"--path.sysfs: ", "/no/such/folder", "no such file"},
		},

		{name: "interval zero", args: []string{simulated, "--probe.interval=0s"}, want: []string{"--probe.interval is 0s", "above 0s"}},
		{name: "interval negative", args: []string{simulated, "--probe.interval=-1s"}, want: []string{"--probe.interval is -1s", "above 0s"}},
		{name: "discovery zero", args: []string{simulated, "--discovery.interval=0s"}, want: []string{"--discovery.interval is 0s", "above 0s"}},
		{name: "timeout zero", args: []string{simulated, "--probe.timeout=0s"}, want: []string{"--probe.timeout is 0s", "above 0s"}},
		{name: "timeout negative", args: []string{simulated, "--probe.timeout=-1s"}, want: []string{"--probe.timeout is -1s", "above 0s"}},
		{
			name: "timeout too short",
			args: []string{simulated, "--probe.timeout=2s"},
			want: []string{"--probe.timeout 2s", "probe.destroy_timeout 2s", "make one longer or the other shorter"},
		},
		{
			name: "timeout too short without notification",
			args: []string{simulated, "--probe.timeout=2s", "--notification.samples=0"},
			want: []string{"--probe.timeout 2s leaves no time beside probe.destroy_timeout 2s: make one longer or the other shorter"},
		},
		{
			name: "timeout too short for notification",
			args: []string{simulated, "--notification.budget=6s", "--notification.deadline=1s"},
			want: []string{"--probe.timeout 10s", "probe.destroy_timeout 2s", "--notification.budget 6s", "10 times --notification.deadline 1s", "18s in all", "make one longer or the other shorter"},
		},
		{
			name: "contract run's timeout too short",
			args: []string{simulated, "--contract.timeout=2s"},
			want: []string{"--contract.timeout 2s", "probe.destroy_timeout 2s", "make one longer or the other shorter"},
		},
		{name: "contract run's timeout zero", args: []string{simulated, "--contract.timeout=0s"}, want: []string{"--contract.timeout is 0s", "above 0s"}},
		{name: "contract run's interval negative", args: []string{simulated, "--contract.interval=-1h"}, want: []string{"--contract.interval is -1h", "from 100ms", "0s for none"}},
		{name: "contract run's interval tiny", args: []string{simulated, "--contract.interval=1ms"}, want: []string{"--contract.interval is 1ms", "from 100ms", "0s for none"}},
		{name: "contract run's interval no duration", args: []string{simulated, "--contract.interval=hourly"}, want: []string{"--contract.interval: ", `"hourly"`}},
		{name: "samples negative", args: []string{simulated, "--notification.samples=-1"}, want: []string{"--notification.samples is -1", "from 0 to 10000"}},
		{name: "samples too many", args: []string{simulated, "--notification.samples=10001"}, want: []string{"--notification.samples is 10001", "from 0 to 10000"}},
		{name: "vectors zero", args: []string{simulated, "--notification.vectors=0"}, want: []string{"--notification.vectors is 0", "from 1 to 512"}},
		{name: "vectors no number", args: []string{simulated, "--notification.vectors=all"}, want: []string{"--notification.vectors: ", `"all"`}},
		{name: "vectors no list", args: []string{simulated, "--notification.vector-list=0,8-16"}, want: []string{"--notification.vector-list: ", `"8-16"`, "0,8,16"}},
		{name: "vectors of an empty list", args: []string{simulated, "--notification.vector-list="}, want: []string{"--notification.vector-list: ", "0,8,16"}},
		{name: "vector out of range", args: []string{simulated, "--notification.vector-list=0,65536"}, want: []string{"--notification.vector-list has 65536", "from 0 to 65535"}},
		{name: "vector below zero", args: []string{simulated, "--notification.vector-list=-1"}, want: []string{"--notification.vector-list has -1", "from 0 to 65535"}},
		{name: "deadline zero", args: []string{simulated, "--notification.deadline=0s"}, want: []string{"--notification.deadline is 0s", "from 10ms to 10s"}},
		{name: "budget too long", args: []string{simulated, "--notification.budget=1h"}, want: []string{"--notification.budget is 1h0m0s", "from 10ms to 1m0s"}},
		{name: "inventory without device", args: []string{"inventory"}, want: []string{"'--device' not provided"}},
		{name: "inventory's interval negative", args: []string{simulated, "--inventory.interval=-1s"}, want: []string{"--inventory.interval is -1s", "from 100ms", "0s for none"}},
		{name: "inventory's timeout zero", args: []string{simulated, "--inventory.timeout=0s"}, want: []string{"--inventory.timeout is 0s", "above 0s"}},
		{name: "objects negative", args: []string{simulated, "--inventory.max-objects=-1"}, want: []string{"--inventory.max-objects is -1", "from 0"}},
		{name: "objects no number", args: []string{simulated, "--inventory.max-objects=all"}, want: []string{"--inventory.max-objects: ", `"all"`}},
		{name: "owners negative", args: []string{simulated, "--inventory.owners=-1"}, want: []string{"--inventory.owners is -1", "from 0 to 100"}},
		{name: "owners too many", args: []string{simulated, "--inventory.owners=101"}, want: []string{"--inventory.owners is 101", "from 0 to 100"}},
		{name: "procfs", args: []string{"--path.procfs=/no/such/folder"}, want: []string{"--path.procfs: ", "/no/such/folder", "no such file"}},
		{name: "back-off negative", args: []string{simulated, "--probe.max-backoff=-1s"}, want: []string{"--probe.max-backoff is -1s", "above 0s"}},
		{name: "concurrency zero", args: []string{simulated, "--probe.concurrency=0"}, want: []string{"--probe.concurrency is 0", "from 1"}},
		{name: "concurrency negative", args: []string{simulated, "--probe.concurrency=-2"}, want: []string{"--probe.concurrency is -2", "from 1"}},
		{name: "jitter too much", args: []string{simulated, "--probe.jitter=2"}, want: []string{"--probe.jitter is 2", "from 0 to 1"}},
		{name: "jitter negative", args: []string{simulated, "--probe.jitter=-0.1"}, want: []string{"--probe.jitter is -0.1", "from 0 to 1"}},
		{name: "jitter no number", args: []string{simulated, "--probe.jitter=NaN"}, want: []string{"--probe.jitter is NaN", "from 0 to 1"}},
		{name: "requests", args: []string{simulated, "--web.max-requests=-1"}, want: []string{"--web.max-requests is -1", "from 0"}},
		{
			name: "all at once",
			args: []string{simulated, "--probe.interval=0s", "--probe.concurrency=0", "--web.max-requests=-1", "--contract.timeout=0s", "--notification.samples=-1", "--notification.vectors=0"},
			want: []string{
				"--probe.interval", "--probe.concurrency", "--web.max-requests", "--contract.timeout",
				"--notification.samples", "--notification.vectors",
			},
		},

		{name: "telemetry path relative", args: []string{simulated, "--web.telemetry-path=metrics"}, want: []string{"--web.telemetry-path: ", `"metrics"`, "begin with /"}},
		{name: "telemetry path of the page", args: []string{simulated, "--web.telemetry-path=/"}, want: []string{"--web.telemetry-path: ", `"/" is taken`}},
		{name: "telemetry path of health", args: []string{simulated, "--web.telemetry-path=/-/healthy"}, want: []string{"--web.telemetry-path: ", "is taken"}},
		{name: "telemetry path odd", args: []string{simulated, "--web.telemetry-path=/{x}"}, want: []string{"--web.telemetry-path: ", "/{x}"}},

		{name: "config missing", args: []string{simulated, "--config.file=nope.yaml"}, want: []string{"--config.file: ", "nope.yaml", "no such file"}},
		{name: "config a folder", args: []string{simulated, "--config.file=."}, want: []string{"--config.file: ", "is a directory"}},
		{name: "config syntax", text: "probe:\n  cq: [\n", args: []string{simulated, "--config.file=FILE"}, want: []string{"--config.file FILE: ", "line 2"}},
		{name: "config key", text: "probe:\n  cq:\n    small: {entires: 3}\n", args: []string{simulated, "--config.file=FILE"}, want: []string{"--config.file FILE: line 3: ", `no key "entires"`, "docs/configuration.md"}},
		{name: "config section", text: "probes: {}\n", args: []string{simulated, "--config.file=FILE"}, want: []string{"--config.file FILE: line 1: ", `no key "probes"`}},
		{name: "config key twice", text: "probe: {}\nprobe: {}\n", args: []string{simulated, "--config.file=FILE"}, want: []string{"--config.file FILE: line 2: ", `"probe" already defined at line 1`}},
		{name: "config word for number", text: "probe:\n  cq:\n    small: {entries: many}\n", args: []string{simulated, "--config.file=FILE"}, want: []string{"--config.file FILE: line 3: ", "`many` is no whole number"}},
		{name: "config duration without unit", text: "probe:\n  destroy_timeout: 5\n", args: []string{simulated, "--config.file=FILE"}, want: []string{"--config.file FILE: line 2: ", "`5` is no duration", "2s"}},
		{name: "config list for mapping", text: "probe:\n  cq: [1]\n", args: []string{simulated, "--config.file=FILE"}, want: []string{"--config.file FILE: line 2: ", "a list is where a mapping belongs"}},
		{name: "config two documents", text: "probe: {}\n---\nprobe: {}\n", args: []string{simulated, "--config.file=FILE"}, want: []string{"--config.file FILE: ", "more than one document", "remove"}},
		{
			name: "config sizes", text: "probe:\n  cq: {small: {entries: 0}, large: {entries: 999999999}}\n  srq: {medium: {scatter_gather_entries: -1}}\n  qp: {small: {inline_bytes: -1}}\n",
			args: []string{simulated, "--config.file=FILE"},
			want: []string{"--config.file FILE: ", "probe.cq.small.entries is 0: use a number from 1 to", "probe.cq.large.entries is 999999999", "probe.srq.medium.scatter_gather_entries is -1", "probe.qp.small.inline_bytes is -1: use a number from 0 to"},
		},
		{name: "config destroy timeout", text: "probe: {destroy_timeout: -1s}\n", args: []string{simulated, "--config.file=FILE"}, want: []string{"--config.file FILE: ", "probe.destroy_timeout is -1s: use a duration from 0s to"}},

		{
			name: "config thresholds", text: "findings:\n  near_limit: {warning: 80}\n  memlock_near_limit: {warning: 0.9, critical: 0.5}\n  orphan_age: -1s\n  qp_errors: 0\n",
			args: []string{simulated, "--config.file=FILE"},
			want: []string{"--config.file FILE: ", "findings.near_limit.warning is 80: use a number above 0", "findings.memlock_near_limit.warning is 0.9", "findings.orphan_age is -1s", "findings.qp_errors is 0"},
		},
		{name: "config threshold key", text: "findings:\n  near_limt: {}\n", args: []string{simulated, "--config.file=FILE"}, want: []string{"--config.file FILE: line 2: ", `no key "near_limt"`}},
		{name: "config threshold no number", text: "findings:\n  near_limit: {warning: 80%}\n", args: []string{simulated, "--config.file=FILE"}, want: []string{"--config.file FILE: line 2: ", "`80%` is no number"}},
		{name: "config threshold no whole number", text: "findings:\n  qp_errors: some\n", args: []string{simulated, "--config.file=FILE"}, want: []string{"--config.file FILE: line 2: ", "`some` is no whole number"}},
		{name: "config both sections", text: "probe: {destroy_timeout: -1s}\nfindings: {orphan_age: -1s}\n", args: []string{simulated, "--config.file=FILE"}, want: []string{"probe.destroy_timeout is -1s", "findings.orphan_age is -1s"}},

		{name: "profile without provider", text: "devices: []\n", args: []string{"--simulated.profile=FILE"}, want: []string{"--simulated.profile needs --provider=simulated"}},
		{name: "profile missing", args: []string{simulated, "--simulated.profile=nope.yaml"}, want: []string{"--simulated.profile: ", "nope.yaml", "no such file"}},
		{name: "profile empty", args: []string{simulated, "--simulated.profile=FILE"}, want: []string{"--simulated.profile: FILE: ", "is empty", "devices: []"}},
		{name: "profile key", text: "devices:\n  - name: a\n    like: sim_rxe0\n    fauls: []\n", args: []string{simulated, "--simulated.profile=FILE"}, want: []string{"--simulated.profile: FILE:4: ", `unknown key "fauls"`, "did you mean faults?"}},
		{name: "profile verb", text: "devices:\n  - name: a\n    like: sim_rxe0\n    faults: [{verb: ibv_creat_cq, errno: EIO}]\n", args: []string{simulated, "--simulated.profile=FILE"}, want: []string{"--simulated.profile: FILE:4: devices[0].faults[0].verb: ", `unknown verb "ibv_creat_cq"`, "did you mean ibv_create_cq?"}},
		{name: "profile errno", text: "devices:\n  - name: a\n    like: sim_rxe0\n    faults: [{verb: ibv_create_cq, errno: ENOMEN}]\n", args: []string{simulated, "--simulated.profile=FILE"}, want: []string{"--simulated.profile: FILE:4: devices[0].faults[0].errno: ", `"ENOMEN"`, "did you mean ENOMEM?"}},
		{name: "profile fault without effect", text: "devices:\n  - name: a\n    like: sim_rxe0\n    faults: [{verb: ibv_create_cq}]\n", args: []string{simulated, "--simulated.profile=FILE"}, want: []string{"--simulated.profile: FILE:4: devices[0].faults[0]: ", "does nothing", "give exactly one of"}},
		{name: "profile short of no size", text: "devices:\n  - name: a\n    like: sim_rxe0\n    faults: [{verb: ibv_alloc_pd, short: 1}]\n", args: []string{simulated, "--simulated.profile=FILE"}, want: []string{"--simulated.profile: FILE:4: devices[0].faults[0].short: ", "ibv_alloc_pd gives no size", "ibv_create_cq"}},
		{name: "profile name twice", text: "devices:\n  - {name: a, like: sim_rxe0}\n  - {name: a, like: sim_siw0}\n", args: []string{simulated, "--simulated.profile=FILE"}, want: []string{"--simulated.profile: FILE:3: devices[1].name: ", `"a"`, "name of its own"}},
		{name: "profile model", text: "devices:\n  - {name: a, like: sim_rxe1}\n", args: []string{simulated, "--simulated.profile=FILE"}, want: []string{"--simulated.profile: FILE:2: devices[0].like: ", `"sim_rxe1"`, "did you mean sim_rxe0?"}},

		{name: "web config missing", args: []string{simulated, "--web.config.file=nope.yaml"}, want: []string{"--web.config.file nope.yaml: ", "no such file"}},
		{name: "web config key", text: "tls_server: {}\n", args: []string{simulated, "--web.config.file=FILE"}, want: []string{"--web.config.file FILE: ", "line 1", "tls_server"}},
		{name: "web config certificate", text: "tls_server_config: {cert_file: nope.crt, key_file: nope.key}\n", args: []string{simulated, "--web.config.file=FILE"}, want: []string{"--web.config.file FILE: ", "nope.crt", "no such file"}},
		{name: "web config password", text: "basic_auth_users: {alice: secret}\n", args: []string{simulated, "--web.config.file=FILE"}, want: []string{"--web.config.file FILE: ", "bcrypt"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			path := running.File(t, "it.yaml", c.text)
			args := make([]string, len(c.args))
			for i, a := range c.args {
				args[i] = strings.ReplaceAll(a, "FILE", path)
			}
			// If it is not refused after all, it shall not take the usual port.
			if strings.HasPrefix(args[0], "-") {
				args = append([]string{"--web.listen-address=127.0.0.1:0"}, args...)
			}
			r := invoke(t, binary, t.TempDir(), args...)
			refused(t, r, 2, path, c.want)
			if n := strings.Count(r.stderr, programName+": error: "); n != 1 {
				t.Errorf("%d errors are announced, want 1:\n%s", n, r.stderr)
			}
		})
	}
}

// refused makes sure that the exporter ended with a status and said all of want.
func refused(t *testing.T, r result, status int, path string, want []string) {
	t.Helper()
	if r.status != status {
		t.Errorf("status is %d, want %d", r.status, status)
	}
	if r.stdout != "" {
		t.Errorf("standard output has %q", r.stdout)
	}
	for _, w := range want {
		if w = strings.ReplaceAll(w, "FILE", path); !strings.Contains(r.stderr, w) {
			t.Errorf("standard error does not say %q:\n%s", w, r.stderr)
		}
	}
	for _, never := range []string{"panic", "goroutine ", "supervisor", "unmarshal !!"} {
		if strings.Contains(r.stderr, never) {
			t.Errorf("standard error says %q:\n%s", never, r.stderr)
		}
	}
}

func TestBadAddress(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = taken.Close() })
	for _, c := range []struct{ name, address, want string }{
		{"occupied", taken.Addr().String(), "address already in use"},
		{"no port", "127.0.0.1", "missing port"},
		{"port too high", "127.0.0.1:65536", "invalid port"},
		{"not of this host", "192.0.2.1:0", "cannot assign requested address"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := invoke(t, binary, t.TempDir(), "--provider=simulated", "--web.listen-address="+c.address)
			_, port, _ := strings.Cut(c.address, ":")
			refused(t, r, 1, "", []string{c.want, port, "--web.listen-address"})
		})
	}
}
