package check_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/yaml"
)

// values are the files that the chart is rendered with, and the number of objects by kind.
var values = []struct {
	name string
	want map[string]int
}{
	{"defaults", map[string]int{"DaemonSet": 1, "ServiceAccount": 1}},
	{"host-network", map[string]int{"DaemonSet": 1, "PodMonitor": 1, "ServiceAccount": 1}},
	{"secured", map[string]int{"DaemonSet": 1, "PodMonitor": 1, "ServiceAccount": 1}},
	{"service-monitor", map[string]int{"ConfigMap": 4, "DaemonSet": 1, "PrometheusRule": 3, "Service": 1, "ServiceAccount": 1, "ServiceMonitor": 1}},
	{"restricted", map[string]int{"DaemonSet": 1, "NetworkPolicy": 1, "ServiceAccount": 1}},
	{"everything", map[string]int{"AlertmanagerConfig": 1, "ConfigMap": 5, "DaemonSet": 1, "NetworkPolicy": 1, "PodMonitor": 1, "PrometheusRule": 2, "ServiceAccount": 1}},
}

func valuesFile(name string) string { return filepath.Join(chart, "ci", name+".yaml") }

// chartObjects renders the chart with one of the files and decodes what comes out.
func chartObjects(t *testing.T, name string, args ...string) []object {
	t.Helper()
	return decode(t, rendered(t, append([]string{"--values", valuesFile(name)}, args...)...))
}

func TestLint(t *testing.T) {
	for _, v := range values {
		t.Run(v.name, func(t *testing.T) {
			if err := helmLint(chart, "--values", valuesFile(v.name)); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestDecode verifies the objects of each values file.
func TestDecode(t *testing.T) {
	if files, err := filepath.Glob(valuesFile("*")); err != nil || len(files) != len(values) {
		t.Errorf("the values files are %v, want %d (%v)", files, len(values), err)
	}
	for _, v := range values {
		t.Run(v.name, func(t *testing.T) {
			objects := chartObjects(t, v.name)
			got := kinds(objects)
			t.Logf("decoded: %v", got)
			if !maps.Equal(got, v.want) {
				t.Errorf("the objects are %v, want %v", got, v.want)
			}
			names := make(map[string]bool)
			for _, o := range objects {
				name := o.GetObjectKind().GroupVersionKind().Kind + " " + o.GetNamespace() + "/" + o.GetName()
				if names[name] {
					t.Errorf("%s is there twice", name)
				}
				names[name] = true
				if o.GetNamespace() != "monitoring" && (v.name != "everything" || o.GetNamespace() != "grafana") {
					t.Errorf("%s is not in the namespace of the release", name)
				}
				if !strings.HasPrefix(o.GetLabels()["helm.sh/chart"], "rdma-exporter-") {
					t.Errorf("%s has the labels %v", name, o.GetLabels())
				}
			}
		})
	}
}

// TestDaemonSet verifies that the pods are harmless with all values.
func TestDaemonSet(t *testing.T) {
	for _, v := range values {
		t.Run(v.name, func(t *testing.T) {
			ds := only[*appsv1.DaemonSet](t, chartObjects(t, v.name))
			checkHarmless(t, &ds.Spec.Template.Spec, "rdma-exporter")
			for key, want := range ds.Spec.Selector.MatchLabels {
				if got := ds.Spec.Template.Labels[key]; got != want {
					t.Errorf("the label %s of the pods is %q, selected is %q", key, got, want)
				}
			}
			if got := ds.Spec.Template.Spec.Containers; len(got) != 1 || len(ds.Spec.Template.Spec.InitContainers) != 0 {
				t.Errorf("%d containers, and %d init containers", len(got), len(ds.Spec.Template.Spec.InitContainers))
			}
		})
	}
}

// checkHarmless checks what TestPodSecurityLevel leaves: the root file system, the user, the
// token, and that the only host paths are those of devices and state.
func checkHarmless(t *testing.T, pod *corev1.PodSpec, container string) {
	t.Helper()
	all := slices.Concat(pod.Containers, pod.InitContainers)
	i := slices.IndexFunc(all, func(c corev1.Container) bool { return c.Name == container })
	if i < 0 {
		t.Fatalf("no container %s", container)
	}
	c := all[i]

	if pod.SecurityContext == nil || c.SecurityContext == nil || c.SecurityContext.Capabilities == nil ||
		c.SecurityContext.ReadOnlyRootFilesystem == nil || pod.AutomountServiceAccountToken == nil {
		t.Fatal("a security context is missing")
	}
	user := pod.SecurityContext.RunAsUser
	if c.SecurityContext.RunAsUser != nil {
		user = c.SecurityContext.RunAsUser
	}
	for what, holds := range map[string]bool{
		"has a read-only root file system": *c.SecurityContext.ReadOnlyRootFilesystem,
		"adds no capability":               len(c.SecurityContext.Capabilities.Add) == 0,
		"runs as another user than root":   user != nil && *user > 0,
		"has no token":                     !*pod.AutomountServiceAccountToken,
		"requests memory and CPU":          !c.Resources.Requests.Memory().IsZero() && !c.Resources.Requests.Cpu().IsZero() && !c.Resources.Limits.Memory().IsZero(),
	} {
		if !holds {
			t.Errorf("the container does not hold: it %s", what)
		}
	}
	for _, volume := range pod.Volumes {
		// What is kept over a restart, and until when there is maintenance, are in folders of the host if the values
		// name them.
		if volume.HostPath != nil && volume.HostPath.Path != "/dev/infiniband" && volume.Name != "state" && volume.Name != "maintenance" {
			t.Errorf("the volume %s is %s of the host", volume.Name, volume.HostPath.Path)
		}
		if volume.HostPath == nil && volume.ConfigMap == nil && volume.Projected == nil {
			t.Errorf("the volume %s is of an unexpected kind", volume.Name)
		}
	}
}

// TestHostNetwork: by default the pods are in the host's network namespace, which shows the counters and links of
// RoCE ports, and listen on as few of its addresses as Prometheus and the health checks need.
func TestHostNetwork(t *testing.T) {
	const everywhere = "--web.listen-address=:10879"
	node := []string{"--web.listen-address=127.0.0.1:10879", "--web.listen-address=[$(NODE_ADDRESS)]:10879"}
	for _, test := range []struct {
		set    string
		host   bool
		dns    corev1.DNSPolicy
		listen []string
	}{
		{"", true, corev1.DNSClusterFirstWithHostNet, node},
		{"web.address=all", true, corev1.DNSClusterFirstWithHostNet, []string{everywhere}},
		{"hostNetwork=false", false, corev1.DNSClusterFirst, []string{everywhere}},
	} {
		t.Run(test.set, func(t *testing.T) {
			pod := only[*appsv1.DaemonSet](t, chartObjects(t, "defaults", "--set", test.set)).Spec.Template.Spec
			if pod.HostNetwork != test.host || pod.DNSPolicy != test.dns {
				t.Errorf("hostNetwork is %t and dnsPolicy %s", pod.HostNetwork, pod.DNSPolicy)
			}
			c := pod.Containers[0]
			listen := slices.DeleteFunc(slices.Clone(c.Args), func(arg string) bool { return !strings.HasPrefix(arg, "--web.listen-address=") })
			if !slices.Equal(listen, test.listen) {
				t.Errorf("the arguments are %q, want %q", listen, test.listen)
			}
			i := slices.IndexFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == "NODE_ADDRESS" })
			if (i >= 0) != (len(test.listen) > 1) || i >= 0 && c.Env[i].ValueFrom.FieldRef.FieldPath != "status.hostIP" {
				t.Errorf("the environment is %v", c.Env)
			}
		})
	}
}

// TestDeviceResources: each resource is asked for once, beside the limits given.
func TestDeviceResources(t *testing.T) {
	limits := only[*appsv1.DaemonSet](t, chartObjects(t, "host-network")).Spec.Template.Spec.Containers[0].Resources.Limits
	if len(limits) != 3 {
		t.Errorf("the limits are %v", limits)
	}
	for _, name := range []corev1.ResourceName{"rdma/hca_shared_devices_a", "rdma/hca_shared_devices_b"} {
		if n := limits[name]; n.Value() != 1 {
			t.Errorf("of %s %s are asked for", name, n.String())
		}
	}
}

// TestMaintenance: the pods read the folder of the node, and cannot write it.
func TestMaintenance(t *testing.T) {
	pod := only[*appsv1.DaemonSet](t, chartObjects(t, "defaults", "--set", "maintenance=/var/lib/maintenance")).Spec.Template.Spec
	c := pod.Containers[0]
	if len(c.VolumeMounts) != 1 || !c.VolumeMounts[0].ReadOnly || pod.Volumes[0].HostPath.Path != "/var/lib/maintenance" {
		t.Fatalf("the mounts are %v, the volumes %v", c.VolumeMounts, pod.Volumes)
	}
	if want := "--maintenance.file=" + c.VolumeMounts[0].MountPath + "/maintenance"; !slices.Contains(c.Args, want) {
		t.Errorf("%s is not among the arguments %q", want, c.Args)
	}
}

// TestSecrets: the web configuration is mounted, with the files beside it, and readable
// by the group of the process alone.
func TestSecrets(t *testing.T) {
	pod := only[*appsv1.DaemonSet](t, chartObjects(t, "secured")).Spec.Template.Spec
	if len(pod.Volumes) != 1 || pod.Volumes[0].Projected == nil || len(pod.Volumes[0].Projected.Sources) != 2 {
		t.Fatalf("the volumes are %v", pod.Volumes)
	}
	if mode := pod.Volumes[0].Projected.DefaultMode; mode == nil || *mode != 0o440 {
		t.Errorf("the mode of the files is %v", mode)
	}
	if pod.SecurityContext.FSGroup == nil || *pod.SecurityContext.FSGroup != *pod.SecurityContext.RunAsGroup {
		t.Error("the files are not of the group of the process")
	}
	c := pod.Containers[0]
	if len(c.VolumeMounts) != 1 || !c.VolumeMounts[0].ReadOnly {
		t.Errorf("the mounts are %v", c.VolumeMounts)
	}
	if want := "--web.config.file=" + c.VolumeMounts[0].MountPath + "/web-config.yml"; !slices.Contains(c.Args, want) {
		t.Errorf("%s is not among the arguments %q", want, c.Args)
	}
	// Behind a password, whether it is ready cannot be known.
	if command := c.ReadinessProbe.Exec.Command; slices.Contains(command, "--ready") {
		t.Errorf("the readiness probe runs %q", command)
	}
}

// TestNetworkPolicy: only the port is open, and nothing goes out.
func TestNetworkPolicy(t *testing.T) {
	for name, from := range map[string]int{"defaults": 0, "restricted": 1} {
		t.Run(name, func(t *testing.T) {
			objects := chartObjects(t, name, "--set", "hostNetwork=false")
			policy := only[*networkingv1.NetworkPolicy](t, objects)
			if len(policy.Spec.PolicyTypes) != 2 || len(policy.Spec.Egress) != 0 || len(policy.Spec.Ingress) != 1 {
				t.Fatalf("the policy is %+v", policy.Spec)
			}
			in := policy.Spec.Ingress[0]
			if len(in.Ports) != 1 || in.Ports[0].Port.StrVal != "metrics" || len(in.From) != from {
				t.Errorf("let in is %+v", in)
			}
			pods := only[*appsv1.DaemonSet](t, objects).Spec.Selector.MatchLabels
			if got := policy.Spec.PodSelector.MatchLabels; len(got) == 0 || !maps.Equal(got, pods) {
				t.Errorf("the policy is for pods with %v, the pods are those with %v", got, pods)
			}
		})
	}
}

// TestMonitors: both kinds find the pods, and give them the job and instance that rules
// and dashboards go by.
func TestMonitors(t *testing.T) {
	for _, test := range []struct{ name, job, path, scheme string }{
		{"host-network", "rdma_exporter", "/metrics", "http"},
		{"secured", "rdma_exporter", "/metrics", "https"},
		{"service-monitor", "rdma_exporter", "/metrics", "http"},
		{"everything", "rdma/cluster-1", "/rdma", "https"},
	} {
		t.Run(test.name, func(t *testing.T) {
			objects := chartObjects(t, test.name)
			pods := only[*appsv1.DaemonSet](t, objects).Spec.Template
			var selects map[string]string
			var port, path, scheme string
			var relabelings []monitoringv1.RelabelConfig
			if monitors := every[*monitoringv1.PodMonitor](objects); len(monitors) == 1 {
				e := monitors[0].Spec.PodMetricsEndpoints[0]
				selects, port, path, scheme, relabelings = monitors[0].Spec.Selector.MatchLabels, *e.Port, e.Path, e.Scheme.String(), e.RelabelConfigs
				if !matches(selects, pods.Labels) {
					t.Errorf("pods with the labels %v are not selected by %v", pods.Labels, selects)
				}
			} else {
				monitor, service := only[*monitoringv1.ServiceMonitor](t, objects), only[*corev1.Service](t, objects)
				e := monitor.Spec.Endpoints[0]
				selects, port, path, scheme, relabelings = monitor.Spec.Selector.MatchLabels, e.Port, e.Path, e.Scheme.String(), e.RelabelConfigs
				if !matches(selects, service.Labels) || !matches(service.Spec.Selector, pods.Labels) {
					t.Errorf("%v does not lead to %v, or %v not to %v", selects, service.Labels, service.Spec.Selector, pods.Labels)
				}
				if service.Spec.ClusterIP != "None" || !service.Spec.PublishNotReadyAddresses || service.Spec.Ports[0].Name != port {
					t.Errorf("the service is %+v", service.Spec)
				}
			}
			if port != pods.Spec.Containers[0].Ports[0].Name || path != test.path || scheme != test.scheme {
				t.Errorf("scraped is the port %s, %s, by %s", port, path, scheme)
			}
			if r := find(relabelings, "instance"); r == nil || len(r.SourceLabels) != 1 || r.SourceLabels[0] != "__meta_kubernetes_pod_node_name" {
				t.Errorf("the label instance is made by %+v", r)
			}
			if r := find(relabelings, "job"); r == nil || r.Replacement == nil || *r.Replacement != test.job {
				t.Errorf("the label job is made by %+v", r)
			}
		})
	}
}

// matches reports whether a selector is not empty and selects the labels.
func matches(selector, labels map[string]string) bool {
	for key, value := range selector {
		if labels[key] != value {
			return false
		}
	}
	return len(selector) > 0
}

// find returns the relabeling that makes a label, or nil.
func find(all []monitoringv1.RelabelConfig, label string) *monitoringv1.RelabelConfig {
	i := slices.IndexFunc(all, func(r monitoringv1.RelabelConfig) bool { return r.TargetLabel == label })
	if i < 0 {
		return nil
	}
	return &all[i]
}

// TestConfigRestarts: a changed configuration file changes the pods, so that they start
// anew; another value that the pods do not depend on does not.
func TestConfigRestarts(t *testing.T) {
	annotations := func(args ...string) map[string]string {
		return only[*appsv1.DaemonSet](t, chartObjects(t, "everything", args...)).Spec.Template.Annotations
	}
	before := annotations()
	if maps.Equal(before, annotations("--set", "config.findings.qp_errors=3")) {
		t.Error("the annotations of the pods are the same with another configuration file")
	}
	if !maps.Equal(before, annotations("--set", "monitor.interval=2m")) {
		t.Error("the annotations of the pods differ with another interval of the monitor")
	}
}

// TestVersions: chart, image and sidecar are of the version of the repository.
func TestVersions(t *testing.T) {
	version := strings.TrimSpace(read(t, "VERSION"))
	about := read(t, "deploy/helm/rdma-exporter/Chart.yaml")
	for _, line := range []string{"\nversion: " + version + "\n", "\nappVersion: " + version + "\n"} {
		if !strings.Contains(about, line) {
			t.Errorf("Chart.yaml lacks the line %q", strings.TrimSpace(line))
		}
	}
	if image := "image: rdma_exporter:" + version + "\n"; !strings.Contains(read(t, "deploy/kubernetes/sidecar.yaml"), image) {
		t.Errorf("sidecar.yaml lacks %q", image)
	}
	if image := only[*appsv1.DaemonSet](t, chartObjects(t, "defaults")).Spec.Template.Spec.Containers[0].Image; image != "rdma_exporter:"+version {
		t.Errorf("the image is %s", image)
	}
}

// TestNotes: what helm says after an install names what is missing. It prints the notes
// with a cluster alone, so a copy of the chart has them in an object.
func TestNotes(t *testing.T) {
	dir := unpacked(t)
	template := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: notes}\ndata:\n  notes: |\n" +
		`    {{- include (print .Template.BasePath "/NOTES.txt") . | nindent 4 }}` + "\n"
	check(t, os.WriteFile(filepath.Join(dir, "templates", "notes.yaml"), []byte(template), 0o600))
	const (
		noDevice = "NO DEVICE CAN BE OPENED"
		level    = "Pod Security level privileged"
		open     = "anyone who reaches the address of a node"
		wide     = "anyone who reaches any address of a node"
		unknown  = "Nothing tells Prometheus"
		scheme   = "scraped by http"
		blind    = "counters and links of ports are missing"
		ignored  = "flags.probe.jitter is ignored: always 0.1."
	)
	for _, test := range []struct {
		name, set string
		want      []string
	}{
		{"defaults", "", []string{noDevice, level, unknown, open}},
		{"defaults", "hostNetwork=false", []string{noDevice, level, unknown, blind}},
		{"host-network", "", []string{level, wide}},
		{"secured", "", []string{level}},
		{"secured", "monitor.scheme=http", []string{level, scheme}},
		{"service-monitor", "", []string{level, open}},
		{"restricted", "", []string{unknown, blind}},
		{"everything", "", []string{level, blind}},
		{"everything", "flags.probe.jitter=0.2", []string{level, ignored, blind}},
	} {
		t.Run(test.name+" "+test.set, func(t *testing.T) {
			out := must(helmTemplate("rdma-exporter", dir, "--show-only", "templates/notes.yaml", "--values", valuesFile(test.name), "--set", test.set))(t)
			for _, words := range []string{noDevice, level, open, wide, unknown, scheme, blind, ignored} {
				if got, want := strings.Contains(out, words), slices.Contains(test.want, words); got != want {
					t.Errorf("%q is in the notes: %t, want %t:\n%s", words, got, want, out)
				}
			}
		})
	}
}

// TestDocsURL: the documentation is where the runbook is, unless the configuration file
// says otherwise. Without either there is no file.
func TestDocsURL(t *testing.T) {
	for _, test := range []struct{ set, want string }{
		{"prometheusRule.runbookURL=", ""},
		{"prometheusRule.runbookURL=https://git.example/", "docs_url: https://git.example/\n"},
		{"prometheusRule.runbookURL=https://git.example/,config.docs_url=https://wiki.example/", "docs_url: https://wiki.example/\n"},
		{"prometheusRule.runbookURL=https://git.example/,config.docs_url=", "docs_url: \"\"\n"},
		{"config.docs_url=https://wiki.example/", "docs_url: https://wiki.example/\n"},
		{"prometheusRule.runbookURL=https://git.example/,config.findings.qp_errors=3", "docs_url: https://git.example/\nfindings:\n  qp_errors: 3\n"},
	} {
		t.Run(test.set, func(t *testing.T) {
			objects := chartObjects(t, "defaults", "--set", test.set)
			pod := only[*appsv1.DaemonSet](t, objects).Spec.Template.Spec
			named := slices.Contains(pod.Containers[0].Args, "--config.file=/etc/rdma_exporter/config.yml")
			mounted := slices.ContainsFunc(pod.Volumes, func(v corev1.Volume) bool { return v.ConfigMap != nil })
			got := ""
			for _, m := range every[*corev1.ConfigMap](objects) {
				got += m.Data["config.yml"]
			}
			if there := test.want != ""; got != test.want || named != there || mounted != there {
				t.Errorf("the file is %q, named %t, mounted %t; want %q", got, named, mounted, test.want)
			}
		})
	}
}

// TestDocsURLPattern: the schema takes the URLs that the exporter takes.
func TestDocsURLPattern(t *testing.T) {
	var schema struct {
		Definitions struct {
			DocsURL struct {
				Pattern string `json:"pattern"`
			} `json:"docsURL"`
		} `json:"definitions"`
	}
	check(t, yaml.Unmarshal([]byte(read(t, "deploy/helm/rdma-exporter/values.schema.json")), &schema))
	if pattern := schema.Definitions.DocsURL.Pattern; pattern == "" || !strings.Contains(read(t, "cmd/rdma_exporter/configfile.go"), "`"+pattern+"`") {
		t.Errorf("the exporter has another pattern than %q", pattern)
	}
}
