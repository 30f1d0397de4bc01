package e2e_test

import (
	"net"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"rdma_exporter/test/running"
)

// What is wrong with the command line or a file that it names is refused at
// start, in one line, with what is wrong, where, and mostly what to do instead. A row is
// enough for each; FILE, FIFO, FOLDER and LARGE in its arguments are paths of what they say.
func TestBadInput(t *testing.T) {
	t.Parallel()
	const simulated = "--provider=simulated"
	folder := t.TempDir()
	fifo := filepath.Join(folder, "pipe")
	running.Check(t, unix.Mkfifo(fifo, 0o600))
	large := running.File(t, "large.yaml", strings.Repeat("#", 1<<20+1))
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
		{name: "flag twice", args: []string{"--path.sysfs=/sys", "--path.sysfs=/sys"}, want: []string{"'path.sysfs' cannot be repeated"}},
		{name: "provider", args: []string{"--provider=real"}, want: []string{"--provider: ", "libibverbs,simulated", "'real'"}},
		{name: "when", args: []string{"--probe.when=never"}, want: []string{"--probe.when: ", "always,idle", "'never'"}},
		{name: "include", args: []string{"--device.include=mlx5_("}, want: []string{"--device.include: ", "missing closing )"}},
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
		{name: "timeout zero", args: []string{simulated, "--probe.timeout=0s"}, want: []string{"--probe.timeout is 0s", "above 0s"}},
		{
			name: "timeout too short",
			args: []string{simulated, "--probe.timeout=2s"},
			want: []string{"--probe.timeout 2s", "probe.destroy_timeout 2s", "make one longer or the other shorter"},
		},
		{
			name: "contract run's timeout too short",
			args: []string{simulated, "--contract.timeout=2s"},
			want: []string{"--contract.timeout 2s", "probe.destroy_timeout 2s", "make one longer or the other shorter"},
		},
		{name: "contract run's timeout zero", args: []string{simulated, "--contract.timeout=0s"}, want: []string{"--contract.timeout is 0s", "above 0s"}},
		{name: "contract run's interval negative", args: []string{simulated, "--contract.interval=-1h"}, want: []string{"--contract.interval is -1h", "from 100ms", "0s for none"}},
		{name: "samples too many", args: []string{simulated, "--notification.samples=10001"}, want: []string{"--notification.samples is 10001", "from 0 to 10000"}},
		{name: "vectors zero", args: []string{simulated, "--notification.vectors=0"}, want: []string{"--notification.vectors is 0", "from 1 to 512"}},
		{name: "inventory's interval negative", args: []string{simulated, "--inventory.interval=-1s"}, want: []string{"--inventory.interval is -1s", "from 100ms", "0s for none"}},
		{name: "hardware's interval negative", args: []string{simulated, "--hardware.interval=-1s"}, want: []string{"--hardware.interval is -1s", "from 100ms", "0s for none"}},
		{name: "inventory's timeout zero", args: []string{simulated, "--inventory.timeout=0s"}, want: []string{"--inventory.timeout is 0s", "above 0s"}},
		{name: "concurrency zero", args: []string{simulated, "--probe.concurrency=0"}, want: []string{"--probe.concurrency is 0", "from 1"}},
		{
			name: "all at once",
			args: []string{simulated, "--probe.interval=0s", "--probe.concurrency=0", "--contract.timeout=0s", "--notification.samples=-1", "--notification.vectors=0"},
			want: []string{
				"--probe.interval", "--probe.concurrency", "--contract.timeout",
				"--notification.samples", "--notification.vectors",
			},
		},

		{name: "telemetry path relative", args: []string{simulated, "--web.telemetry-path=metrics"}, want: []string{"--web.telemetry-path: ", `"metrics"`, "begin with /"}},
		{name: "telemetry path of the page", args: []string{simulated, "--web.telemetry-path=/"}, want: []string{"--web.telemetry-path: ", `"/" is taken`}},

		{name: "config missing", args: []string{simulated, "--config.file=nope.yaml"}, want: []string{"--config.file: ", "nope.yaml", "no such file"}},
		{name: "config a folder", args: []string{simulated, "--config.file=."}, want: []string{"--config.file: ", "is a directory"}},
		{name: "config syntax", text: "probe:\n  cq: [\n", args: []string{simulated, "--config.file=FILE"}, want: []string{"--config.file FILE: ", "line 2"}},
		{name: "config key", text: "probe:\n  cq:\n    small: {entires: 3}\n", args: []string{simulated, "--config.file=FILE"}, want: []string{"--config.file FILE: line 3: ", `no key "entires"`, "docs/reference/configuration.md"}},
		{name: "config key twice", text: "probe: {}\nprobe: {}\n", args: []string{simulated, "--config.file=FILE"}, want: []string{"--config.file FILE: line 2: ", `"probe" already defined at line 1`}},
		{name: "config word for number", text: "probe:\n  cq:\n    small: {entries: many}\n", args: []string{simulated, "--config.file=FILE"}, want: []string{"--config.file FILE: line 3: ", "found `many`, expected a whole number"}},
		{name: "config duration without unit", text: "probe:\n  destroy_timeout: 5\n", args: []string{simulated, "--config.file=FILE"}, want: []string{"--config.file FILE: line 2: ", "found `5`, expected a duration", "2s"}},
		{name: "config two documents", text: "probe: {}\n---\nprobe: {}\n", args: []string{simulated, "--config.file=FILE"}, want: []string{"--config.file FILE: ", "more than one document", "remove"}},
		{
			name: "config sizes", text: "probe:\n  cq: {small: {entries: 0}, large: {entries: 999999999}}\n  srq: {medium: {scatter_gather_entries: -1}}\n  qp: {small: {inline_bytes: -1}}\n",
			args: []string{simulated, "--config.file=FILE"},
			want: []string{"--config.file FILE: ", "probe.cq.small.entries is 0: use a number from 1 to", "probe.cq.large.entries is 999999999", "probe.srq.medium.scatter_gather_entries is -1", "probe.qp.small.inline_bytes is -1: use a number from 0 to"},
		},

		{
			name: "config thresholds", text: "findings:\n  near_limit: {warning: 80}\n  memlock_near_limit: {warning: 0.9, critical: 0.5}\n  orphan_age: -1s\n  qp_errors: 0\n  port_flapping: {downs: 33}\n",
			args: []string{simulated, "--config.file=FILE"},
			want: []string{"--config.file FILE: ", "findings.near_limit.warning is 80: use a number above 0", "findings.memlock_near_limit.warning is 0.9", "findings.orphan_age is -1s", "findings.qp_errors is 0", "findings.port_flapping.downs is 33"},
		},
		{
			name: "config accept values",
			text: "accept:\n  - {finding: port_dwn, device: 'mlx5_(', until: soon}\n  - {finding: contract_violated, contract: notify_nobody, reason: x}\n",
			args: []string{simulated, "--config.file=FILE"},
			want: []string{"--config.file FILE: accept[0].finding is \"port_dwn\"", "accept[0].device is \"mlx5_(\"", "accept[0].reason is missing", "accept[0].until is \"soon\"", "accept[1].contract is \"notify_nobody\""},
		},
		{name: "config documents", text: "docs_url: docs/\n", args: []string{simulated, "--config.file=FILE"}, want: []string{`--config.file FILE: docs_url is "docs/": use an http or https URL`}},
		{name: "config both sections", text: "probe: {destroy_timeout: -1s}\nfindings: {orphan_age: -1s}\n", args: []string{simulated, "--config.file=FILE"}, want: []string{"probe.destroy_timeout is -1s", "findings.orphan_age is -1s"}},
		{name: "config threshold no whole number", text: "findings:\n  qp_errors: some\n", args: []string{simulated, "--config.file=FILE"}, want: []string{"--config.file FILE: line 2: ", "`some`", "a whole number"}},

		{name: "profile without provider", text: "devices: []\n", args: []string{"--simulated.profile=FILE"}, want: []string{"--simulated.profile needs --provider=simulated"}},
		{name: "profile key", text: "devices:\n  - name: a\n    like: sim_rxe0\n    fauls: []\n", args: []string{simulated, "--simulated.profile=FILE"}, want: []string{"--simulated.profile: FILE: line 4: ", `unknown key "fauls"`}},

		{name: "web config missing", args: []string{simulated, "--web.config.file=nope.yaml"}, want: []string{"--web.config.file nope.yaml: ", "no such file"}},
		{name: "web config key", text: "tls_server: {}\n", args: []string{simulated, "--web.config.file=FILE"}, want: []string{"--web.config.file FILE: ", "line 1", "tls_server"}},
		{name: "web config certificate", text: "tls_server_config: {cert_file: nope.crt, key_file: nope.key}\n", args: []string{simulated, "--web.config.file=FILE"}, want: []string{"--web.config.file FILE: ", "nope.crt", "no such file"}},
		{name: "web config password", text: "basic_auth_users: {alice: secret}\n", args: []string{simulated, "--web.config.file=FILE"}, want: []string{"--web.config.file FILE: ", "bcrypt"}},
		{name: "config fraction", text: "probe:\n  cq:\n    small: {entries: 1.5}\n", args: []string{simulated, "--config.file=FILE"}, want: []string{"--config.file FILE: line 3: ", "`1.5` is not a whole number"}},
		{name: "web config fraction", text: "rate_limit: {burst: 1.5, interval: 1s}\n", args: []string{simulated, "--web.config.file=FILE"}, want: []string{"--web.config.file FILE: ", "line 1", "1.5"}},

		// What is no file is not read, and nobody is waited for.
		{name: "config a pipe", args: []string{simulated, "--config.file=FIFO"}, want: []string{"--config.file: ", "FIFO is a named pipe", "name a regular file"}},
		{name: "web config a pipe", args: []string{simulated, "--web.config.file=FIFO"}, want: []string{"--web.config.file FIFO: ", "is a named pipe", "name a regular file"}},
		{name: "web config a folder", args: []string{simulated, "--web.config.file=FOLDER"}, want: []string{"--web.config.file FOLDER: ", "is a directory", "name a file"}},
		{name: "profile a pipe", args: []string{simulated, "--simulated.profile=FIFO"}, want: []string{"--simulated.profile: ", "FIFO is a named pipe"}},
		{name: "profile too large", args: []string{simulated, "--simulated.profile=LARGE"}, want: []string{"--simulated.profile: ", "LARGE has more than 1 MiB"}},
		{name: "audit's config a pipe", args: []string{"audit", simulated, "--config.file=FIFO"}, want: []string{"--config.file: ", "FIFO is a named pipe"}},

		{name: "web config empty", args: []string{simulated, "--web.config.file=FILE"}, want: []string{"--web.config.file FILE: ", "it is empty", "drop --web.config.file"}},
		{name: "address empty", args: []string{simulated, "--web.listen-address="}, want: []string{`--web.listen-address is "": missing port`, "use another HOST:PORT"}},
		{name: "address of another host", args: []string{simulated, "--web.listen-address=192.0.2.1:0"}, want: []string{`--web.listen-address is "192.0.2.1:0": `, "cannot assign requested address", "use another HOST:PORT"}},
		{name: "address in a list", args: []string{simulated, "--web.listen-address=127.0.0.1:0", "--web.listen-address="}, want: []string{`--web.listen-address is "": missing port`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			path := running.File(t, "it.yaml", c.text)
			paths := strings.NewReplacer("FILE", path, "FIFO", fifo, "FOLDER", folder, "LARGE", large)
			replaced := func(words []string) []string {
				all := make([]string, len(words))
				for i, w := range words {
					all[i] = paths.Replace(w)
				}
				return all
			}
			args := replaced(c.args)
			// If it is not refused after all, it shall not take the usual port.
			if strings.HasPrefix(args[0], "-") {
				args = append([]string{"--web.listen-address=127.0.0.1:0"}, args...)
			}
			r := invoke(t, binary, t.TempDir(), args...)
			refused(t, r, 2, path, replaced(c.want))
			if n := strings.Count(r.stderr, "\n"); n != 1 {
				t.Errorf("the error has %d lines, want 1:\n%s", n, r.stderr)
			}
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
	for _, never := range []string{"panic", "goroutine ", "supervisor", "strconv", "unmarshal !!int", "Starting"} {
		if strings.Contains(r.stderr, never) {
			t.Errorf("standard error says %q:\n%s", never, r.stderr)
		}
	}
}

// An address that another program has is its own case: what mends it is no other command
// line, but that the other program ends.
func TestAddressInUse(t *testing.T) {
	t.Parallel()
	taken := running.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { _ = taken.Close() })
	r := invoke(t, binary, t.TempDir(), "--provider=simulated", "--web.listen-address="+taken.Addr().String())
	refused(t, r, 1, "", []string{"--web.listen-address is \"" + taken.Addr().String() + "\": ", "address already in use", "use another HOST:PORT"})
}

// Whatever a start waits for, SIGTERM ends it.
func TestStopWhileStarting(t *testing.T) {
	t.Parallel()
	s := newSecured(t)
	running.Check(t, unix.Mkfifo(filepath.Join(s.dir, "pipe.pem"), 0o600))
	file := s.write(t, "web.yaml", "tls_server_config: {cert_file: pipe.pem, key_file: key.pem}\n")
	p := running.Launch(t, "the exporter", binary, "--provider=simulated", "--web.listen-address=127.0.0.1:0", "--web.config.file="+file)
	// It writes nothing until the certificate is read. Who opens the pipe for writing finds
	// that somebody waits for it.
	running.Eventually(t, "the exporter reads the certificate", func() bool {
		fd, err := unix.Open(filepath.Join(s.dir, "pipe.pem"), unix.O_WRONLY|unix.O_NONBLOCK, 0)
		if err != nil {
			p.MustRun(t)
			return false
		}
		t.Cleanup(func() { _ = unix.Close(fd) })
		return true
	})
	p.Stop(t)
	if err := p.Err(); err != nil || strings.Contains(p.Log.String(), "Listening") {
		t.Errorf("%v\n%s", err, p.Log.String())
	}
}

// Flags whose default is a whole number take nothing else, whichever they are.
func TestWholeNumberFlags(t *testing.T) {
	t.Parallel()
	flag := regexp.MustCompile(`(?m)^ +--([a-z.-]+)=([0-9]+|N)(?: |$)`)
	for _, command := range []string{"serve", "audit"} {
		found := flag.FindAllStringSubmatch(invoke(t, binary, t.TempDir(), command, "--help").stdout, -1)
		if len(found) < 3 {
			t.Errorf("%s: the help has only %q", command, found)
		}
		for _, f := range found {
			number := strings.ReplaceAll(f[2], "N", "8") // without a default
			for _, value := range []string{number + ".5", number + ".0", "1e1", "99999999999999999999"} {
				r := invoke(t, binary, t.TempDir(), command, "--provider=simulated", "--"+f[1]+"="+value)
				refused(t, r, 2, "", []string{"--" + f[1] + ": ", `"` + value + `"`})
			}
		}
	}
}
