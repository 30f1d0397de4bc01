package check_test

import (
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// TestStarts: the real exporter takes the arguments and the files that the pods give it,
// and its health checks succeed.
func TestStarts(t *testing.T) {
	for _, v := range values {
		t.Run(v.name, func(t *testing.T) {
			objects := chartObjects(t, v.name)
			c := only[*appsv1.DaemonSet](t, objects).Spec.Template.Spec.Containers[0]
			files := make(map[string]string)
			for _, arg := range c.Args {
				name, file, _ := strings.Cut(arg, "=")
				switch name {
				case "--config.file":
					mounted := c.VolumeMounts[slices.IndexFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == file })]
					of := every[*corev1.ConfigMap](objects)
					configs := of[slices.IndexFunc(of, func(m *corev1.ConfigMap) bool { return m.Name == "fabric-exporter" })]
					files[file] = configs.Data[mounted.SubPath]
				case "--peer.file":
					files[file] = "[]" // mounted by the site
				case "--web.config.file":
					files[file] = webConfig
					files[path.Join(path.Dir(file), "tls.crt")], files[path.Join(path.Dir(file), "tls.key")] = certificate(t)
				}
			}
			runExporter(t, &c, files)
		})
	}
}

// webConfig is what a Secret may hold.
const webConfig = `
tls_server_config: {cert_file: tls.crt, key_file: tls.key}
basic_auth_users: {prometheus: $2a$10$b1xfXdmzL57EHyWETnkYQOnl18rSbws8V.ugnVxQhFboIg43CAoRy}
`

func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	private := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	about := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"rdma-exporter"}, NotAfter: time.Now().Add(time.Hour)}
	signed := must(x509.CreateCertificate(rand.Reader, about, about, &private.PublicKey, private))(t)
	encoded := must(x509.MarshalPKCS8PrivateKey(private))(t)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed})),
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded}))
}

// TestMetricsPath verifies that the schema accepts the paths that the exporter accepts.
func TestMetricsPath(t *testing.T) {
	t.Parallel()
	for _, path := range []string{
		"/rdma", "/a/b.c", "/-a", "/a/-/b", "/.a", "/a..b", "/a:", "/!$&'()*+,;=:@[]^_|~<>\"`", "/api/v1", "/api/v1/status/x", "/api/v1/paths", "/probe/x", "/probes",
		"/", "//", "a", "/a/", "/a//b", "/.", "/..", "/a/..", "/a/./b", "/-", "/-/healthy", "/-/x", "/api/v1/status", "/api/v2/status", "/api/v1/verdict",
		"/probe", "/api/v1/path", "/api/v1/path/devices",
		"/a b", "/a: b", "/a #b", "/a#b", "/a?b", "/a%20b", "/{a}", "/a\\b", "/ä", "/a\tb",
	} {
		objects, err := renderWith(t, map[string]any{
			"flags":   map[string]any{"web": map[string]any{"telemetry-path": path}},
			"monitor": map[string]any{"kind": "PodMonitor"},
		})
		if err != nil && !strings.Contains(err.Error(), "schema") {
			t.Errorf("%q is not refused by the schema: %v", path, err)
		} else if err == nil {
			if e := only[*monitoringv1.PodMonitor](t, decode(t, objects)).Spec.PodMetricsEndpoints[0]; e.Path != path {
				t.Errorf("%q: the monitor scrapes %q", path, e.Path)
			}
		}
		// The exporter checks its flags before it fails to listen.
		out, _ := exec.Command(exporter, "--provider=simulated", "--web.listen-address=127.0.0.1:99999", "--web.telemetry-path="+path).CombinedOutput()
		if refused := strings.Contains(string(out), "--web.telemetry-path: "); refused != (err != nil) {
			t.Errorf("%q: refused by the exporter %t, by the schema %t", path, refused, err != nil)
		}
	}
}

// defaultPort is the exporter's, and that which its command healthcheck asks.
const defaultPort = "10879"

// checkPort checks that the port that a container names, and that its probes ask, is the
// one that the exporter serves on.
func checkPort(t *testing.T, c *corev1.Container) {
	t.Helper()
	port := defaultPort
	local := true
	for i, arg := range slices.DeleteFunc(slices.Clone(c.Args), func(arg string) bool { return !strings.HasPrefix(arg, "--web.listen-address=") }) {
		host, p, err := net.SplitHostPort(strings.TrimPrefix(arg, "--web.listen-address="))
		if err != nil || i > 0 && p != port {
			t.Errorf("%q: %v, want the port %s", arg, err, port)
		}
		port, local = p, i > 0 && local || host == "" || host == "127.0.0.1"
	}
	if !local {
		t.Errorf("nothing listens where the probes ask: %q", c.Args)
	}
	if len(c.Ports) != 1 || strconv.Itoa(int(c.Ports[0].ContainerPort)) != port {
		t.Errorf("the ports are %v, served on is %s", c.Ports, port)
	}
	for _, probe := range probes(t, c) {
		asked := "http://127.0.0.1:" + defaultPort
		for _, arg := range probe {
			if url, found := strings.CutPrefix(arg, "--url="); found {
				asked = url
			}
		}
		if asked != "http://127.0.0.1:"+port {
			t.Errorf("%q asks %s, served on is the port %s", probe, asked, port)
		}
	}
}

// probes returns the commands of the probes of a container, which must have one that
// tells whether it is alive.
func probes(t *testing.T, c *corev1.Container) [][]string {
	t.Helper()
	if c.LivenessProbe == nil {
		t.Error("there is no liveness probe")
	}
	var commands [][]string
	for _, probe := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe} {
		if probe == nil {
			continue
		}
		if probe.Exec == nil || len(probe.Exec.Command) == 0 || probe.Exec.Command[0] != "/usr/bin/rdma_exporter" {
			t.Fatalf("the probe is %v", probe)
		}
		commands = append(commands, probe.Exec.Command)
	}
	return commands
}

// expanded returns arguments as the kubelet gives them to a process, on a node whose address is 127.0.0.2.
func expanded(t *testing.T, args []string) []string {
	t.Helper()
	all := make([]string, len(args))
	for i, arg := range args {
		arg = strings.ReplaceAll(arg, "[$(NODE_ADDRESS)]", "[127.0.0.2]")
		if strings.Contains(strings.ReplaceAll(arg, "$$", ""), "$(") {
			t.Errorf("%q has a variable", arg)
		}
		all[i] = strings.ReplaceAll(arg, "$$", "$")
	}
	return all
}

// runExporter runs the exporter with the arguments of a container, on simulated devices
// and a port of its own, until each of the container's probes has succeeded. files are
// what is mounted, by their paths.
func runExporter(t *testing.T, c *corev1.Container, files map[string]string) {
	t.Helper()
	checkPort(t, c)
	dir := t.TempDir()
	args := expanded(t, c.Args)
	for name, content := range files {
		file := filepath.Join(dir, name)
		check(t, os.MkdirAll(filepath.Dir(file), 0o700))
		check(t, os.WriteFile(file, []byte(content), 0o600))
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], "="+name, "="+file)
		}
	}
	// Any free port does, on loopback instead of all addresses.
	listens := false
	for i, arg := range args {
		if address, found := strings.CutPrefix(arg, "--web.listen-address="); found {
			host := address[:strings.LastIndex(address, ":")]
			args[i], listens = "--web.listen-address="+cmp.Or(host, "127.0.0.1")+":0", true
		}
	}
	if !listens {
		args = append(args, "--web.listen-address=127.0.0.1:0")
	}
	if !slices.Contains(args, "--provider=simulated") {
		args = append(args, "--provider=simulated")
	}

	log := must(os.Create(filepath.Join(dir, "log")))(t)
	defer log.Close()
	cmd := exec.Command(exporter, args...)
	cmd.Stdout, cmd.Stderr = log, log
	check(t, cmd.Start())
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		ended <- cmd.Wait()
		cancel()
	}()
	address := ""
	for ; address == "" && ctx.Err() == nil; time.Sleep(50 * time.Millisecond) {
		text, _ := os.ReadFile(log.Name())
		if m := listening.FindSubmatch(text); m != nil {
			address = string(m[1])
		}
	}
	for _, probe := range probes(t, c) {
		check := slices.DeleteFunc(slices.Clone(probe[1:]), func(arg string) bool { return strings.HasPrefix(arg, "--url=") })
		check = append(check, "--url=http://"+address)
		for {
			out, err := exec.CommandContext(ctx, exporter, check...).CombinedOutput()
			// Status 1 means not healthy yet, 2 a wrong command line.
			var failed *exec.ExitError
			if err == nil || !errors.As(err, &failed) || failed.ExitCode() != 1 {
				if err != nil {
					t.Errorf("%q: %v\n%s", check, err, out)
				}
				break
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
	_ = cmd.Process.Signal(syscall.SIGTERM)
	if err := <-ended; err != nil || address == "" || t.Failed() {
		text, _ := os.ReadFile(log.Name())
		t.Errorf("the exporter ended with %v:\n%s", err, text)
	}
}

// listening matches the address that the exporter logs, in either format.
var listening = regexp.MustCompile(`Listening on",? ?"?address"?[=:]"?(127\.0\.0\.1:[0-9]+)`)

// TestFlags: the schema knows each flag of the exporter but those that other values
// decide on, or that have no place in a pod.
func TestFlags(t *testing.T) {
	help, err := exec.Command(exporter, "--help").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, help)
	}
	var want []string
	for _, m := range regexp.MustCompile(`(?m)^ +(?:-\w, )?--(?:\[no-\])?([a-z][a-z.-]*)(?:=\S+)?(?: |$)`).FindAllStringSubmatch(string(help), -1) {
		switch m[1] {
		case "help", "help-long", "version":
			// They print something, and end.
		case "config.file", "maintenance.file", "state.dir", "web.config.file", "web.listen-address":
			// They follow from config, maintenance, state and web.
		case "web.systemd-socket":
			// There is no systemd in a container.
		case "path.sysfs":
			// The container's is right: the exporter reads its own network namespace.
		case "simulated.profile":
			// The built-in devices do for a try.
		default:
			want = append(want, m[1])
		}
	}

	type node struct {
		Properties map[string]node
		Ref        string `json:"$ref"`
	}
	var schema node
	check(t, json.Unmarshal([]byte(read(t, "deploy/helm/rdma-exporter/values.schema.json")), &schema))
	var got, ignored []string
	for name, group := range schema.Properties["flags"].Properties {
		if group.Properties == nil {
			got = append(got, name)
		}
		for member, m := range group.Properties {
			if m.Ref == "#/definitions/retired" {
				ignored = append(ignored, name+"."+member)
				continue
			}
			got = append(got, name+"."+member)
		}
	}
	slices.Sort(got)
	slices.Sort(ignored)
	if retired := slices.Sorted(maps.Keys(retiredFlags(t))); !slices.Equal(ignored, retired) {
		t.Errorf("the schema ignores the flags\n%v, and the exporter ignores\n%v", ignored, retired)
	}
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("the schema has the flags\n%v, and the exporter has\n%v", got, want)
	}

	// And the file that is rendered with everything sets each of them.
	c := only[*appsv1.DaemonSet](t, chartObjects(t, "everything")).Spec.Template.Spec.Containers[0]
	for _, name := range want {
		if !slices.ContainsFunc(c.Args, func(arg string) bool {
			return arg == "--"+name || arg == "--no-"+name || strings.HasPrefix(arg, "--"+name+"=")
		}) {
			t.Errorf("--%s is not among the arguments %q", name, c.Args)
		}
	}
}

// retiredFlags returns the flags that the chart ignores, with what holds instead.
func retiredFlags(t *testing.T) map[string]string {
	t.Helper()
	flags := make(map[string]string)
	for name, now := range parse(t, filepath.Join(chart, "files/retired-flags.yaml")) {
		flags[name] = fmt.Sprint(now)
	}
	return flags
}

// TestRetiredFlags: the chart says of each flag what the exporter's log says.
func TestRetiredFlags(t *testing.T) {
	args := []string{"--provider=simulated", "--web.listen-address=127.0.0.1:99999"}
	for name := range retiredFlags(t) {
		flag := "--" + name
		if !strings.HasPrefix(name, "collector.") && name != "web.enable-lifecycle" {
			flag += "=1"
		}
		args = append(args, flag)
	}
	out, _ := exec.Command(exporter, args...).CombinedOutput() // nobody can listen there
	for name, now := range retiredFlags(t) {
		if want := fmt.Sprintf("flag=--%s now=%q", name, now); strings.Count(string(out), want) != 1 {
			t.Errorf("the log has no single %s:\n%s", want, out)
		}
	}
}
