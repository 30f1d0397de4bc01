package check_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// TestRefused: what the schema does not know, or what would be harmful, is refused
// before anything reaches the cluster.
func TestRefused(t *testing.T) {
	for _, test := range []struct{ value, want string }{
		{"imagee.tag=1", "imagee"},
		{"image.tga=1", "tga"},
		{"image.digest=sha256:12", "digest"},
		{"devices.privileged=true", "privileged"},
		{"securityContext.privileged=true", "privileged"},
		{"securityContext.capabilities.add={SYS_ADMIN}", "capabilities"},
		{"securityContext.runAsUser=0", "runAsUser"},
		{"devices.resources={hca}", "resources"},
		{"hostIPC=true", "hostIPC"},
		{"hostPID=yes", "hostPID"},
		{"web.port=0", "port"},
		{"flags.probe.intervall=1m", "intervall"},
		{"flags.probe.interval=60", "interval"},
		{"flags.path.procfs=/host/proc", "path"},
		{"flags.web.config.file=/x", "config"},
		{"config.probe.cq.huge.entries=1", "huge"},
		{"config.findings.near_limit.warning=0", "warning"},
		{"config.accept[0].finding=port_down", "reason"},
		{"state=var/lib", "state"},
		{"maintenance=var/lib", "maintenance"},
		{"config.expect.device=mlx5_0,config.expect.port=1", "port"},
		{"config.expect[0].devices=many", "devices"},
		{"monitor.kind=Probe", "kind"},
		{"monitor.interval=30", "interval"},
		{"terminationGracePeriodSeconds=1", "terminationGracePeriodSeconds"},
		{"prometheusRule.runbookURL=wiki", "runbookURL"},
		{"config.docs_url=https://git.example", "docs_url"},
		{"prometheusRule.dashboardURL=https://grafana.example", "dashboardURL"},
		{"nativeHistograms=always", "nativeHistograms"},
		{"web.config.tlsSecret=certificate", "secret"},
		{"web.port=443,hostNetwork=true", "port"},
		{"flags.web.telemetry-path=/a: b", "telemetry-path"},
		{"fullnameOverride=9a", "fullnameOverride"},
		{"fullnameOverride=a.b", "fullnameOverride"},
		{"nameOverride=a.b", "nameOverride"},
		{"priorityClassName=a..b", "priorityClassName"},
		{"runtimeClassName=a..b", "runtimeClassName"},
		{"imagePullSecrets[0].name=a..b", "imagePullSecrets"},
		{"serviceAccount.name=a..b", "serviceAccount"},
		{"web.config.secret=a-.b", "secret"},
		{"web.config.secret=a,web.config.tlsSecret=a-.b", "tlsSecret"},
		{"dashboards.namespace=a.b", "namespace"},
		{"podLabels.a_/b=c", "podLabels"},
		{"podLabels.a=b c", "podLabels"},
		{"nodeSelector.a=-", "nodeSelector"},
		{"monitor.labels.a=-", "labels"},
		{"prometheusRule.labels.a=-", "labels"},
		{"dashboards.labels.a=-", "labels"},
		{"podAnnotations.a b=c", "podAnnotations"},
		{"serviceAccount.annotations.a b=c", "annotations"},
		{"resources.limits.memory=much", "memory"},
		{"livenessProbe.successThreshold=2", "successThreshold"},
		{"updateStrategy.rollingUpdate.maxSurge=1", "maxSurge"},
		{"updateStrategy.rollingUpdate.maxUnavailable=0", "maxUnavailable"},
		{"updateStrategy.rollingUpdate.maxUnavailable=0%", "maxUnavailable"},
		{"updateStrategy.rollingUpdate.maxUnavailable=101%", "maxUnavailable"},
		{"prometheusRule.disabled=RDMAPortDown", "disabled"},
		{"prometheusRule.overrides.RDMAPortDown.four=5m", "four"},
		{"prometheusRule.overrides.RDMAPortDown.for=5", "for"},
		{"prometheusRule.overrides.RDMAPortDown.severity=high", "severity"},
		{"prometheusRule.clusterLabel=k8s-cluster", "clusterLabel"},
		{"monitor.interval=1s1m", "interval"},
		{"monitor.scrapeTimeout=30", "scrapeTimeout"},
	} {
		t.Run(test.value, func(t *testing.T) {
			_, err := render(t, "--set", test.value)
			if err == nil {
				t.Fatal("it was taken")
			}
			if !strings.Contains(err.Error(), "schema") || !strings.Contains(err.Error(), test.want) {
				t.Errorf("the message is %v", err)
			}
		})
	}
}

// TestFails: what the schema cannot see is refused by the templates.
func TestFails(t *testing.T) {
	for _, test := range []struct{ release, values, want string }{
		{"r", "monitor.kind=PodMonitor,monitor.interval=5s", "scrapeTimeout 10s is longer than monitor.interval 5s"},
		{"r", "monitor.kind=PodMonitor,monitor.interval=1m30s,monitor.scrapeTimeout=90001ms", "scrapeTimeout"},
		{"r", "monitor.kind=PodMonitor,monitor.interval=1m30s,monitor.scrapeTimeout=90000ms", ""},
		{"r", "monitor.kind=PodMonitor,monitor.interval=5s,monitor.scrapeTimeout=null", ""},
		{"r", "monitor.kind=PodMonitor,monitor.interval=null", ""},
		{"r", "monitor.interval=5s", ""}, // There is no monitor.
		{"2024", "monitor.kind=ServiceMonitor", "fullnameOverride"},
		{"a.b", "monitor.kind=ServiceMonitor", "fullnameOverride"},
		{"a.b", "monitor.kind=ServiceMonitor,fullnameOverride=a-b", ""},
		{"r", "prometheusRule.enabled=true,prometheusRule.disabled={RDMAPortDownn}", "there is no alert RDMAPortDownn"},
		{"r", "prometheusRule.enabled=true,prometheusRule.overrides.RDMAPort.for=5m", "there is no alert RDMAPort:"},
		{"r", "prometheusRule.enabled=true,prometheusRule.disabled={RDMAPortDown},prometheusRule.overrides.RDMAPortDown.for=5m", "RDMAPortDown is both in disabled and in overrides"},
		{"r", "networkPolicy.from[0].podSelector.matchLabels.a=b", "networkPolicy.from protects nothing with hostNetwork: true"},
		{"r", "networkPolicy.from[0].podSelector.matchLabels.a=b,networkPolicy.enabled=false", ""},
		{"r", "networkPolicy.from[0].podSelector.matchLabels.a=b,hostNetwork=false", ""},
	} {
		t.Run(test.release+" "+test.values, func(t *testing.T) {
			out, err := helmTemplate(test.release, chart, "--set", test.values)
			switch {
			case test.want == "" && err != nil:
				t.Error(err)
			case test.want == "":
				decode(t, out)
			case err == nil:
				t.Error("it was taken")
			case !strings.Contains(err.Error(), test.want):
				t.Errorf("the message is %v", err)
			}
		})
	}
}

// TestNames: whatever the release, its namespace and the overrides are called, the names
// and labels that are made of them are valid.
func TestNames(t *testing.T) {
	for _, test := range []struct{ release, namespace, values string }{
		{"2024", "123", ""},
		{"1e3", "1e3", "nameOverride=e3,dashboards.namespace=123"},
		{"true", "n", "fullnameOverride=true,nameOverride=null"},
		{"a.b." + strings.Repeat("c", 35) + ".d", "ns", ""},
		{strings.Repeat("a", 38) + "--b", "ns", ""},
		{"r", "ns", "fullnameOverride=" + strings.Repeat("a", 38) + "--b"},
	} {
		t.Run(test.release+" "+test.namespace+" "+test.values, func(t *testing.T) {
			out, err := helmTemplate(test.release, chart, "--namespace", test.namespace, "--set-string", test.values,
				"--set", "monitor.kind=PodMonitor,prometheusRule.enabled=true,dashboards.enabled=true,config.findings.qp_errors=3")
			if err != nil {
				t.Fatal(err)
			}
			decode(t, out)
		})
	}
}

// TestKeysOfChart: labels and annotations that the user chooses do not take those that
// selectors go by, or make one twice.
func TestKeysOfChart(t *testing.T) {
	keys := map[string]string{
		"app.kubernetes.io/name": "x", "app.kubernetes.io/instance": "x", "app.kubernetes.io/version": "x",
		"app.kubernetes.io/managed-by": "x", "helm.sh/chart": "x", "checksum/config": "x",
		"kubectl.kubernetes.io/default-container": "x", "mine": "x",
	}
	values := parse(t, valuesFile("everything"))
	for _, name := range []string{"podLabels", "podAnnotations", "serviceAccount.annotations", "monitor.labels", "prometheusRule.labels", "dashboards.labels", "dashboards.annotations"} {
		values = with(values, name, keys)
	}
	objects := decode(t, renderedWith(t, values))
	ds := only[*appsv1.DaemonSet](t, objects)
	if pods := ds.Spec.Template; !matches(ds.Spec.Selector.MatchLabels, pods.Labels) || pods.Labels["mine"] != "x" ||
		pods.Annotations["checksum/config"] == "x" || pods.Annotations["mine"] != "x" {
		t.Errorf("the pods have the labels %v and the annotations %v", pods.Labels, pods.Annotations)
	}
	for _, o := range objects {
		labels := o.GetLabels()
		if labels["app.kubernetes.io/name"] == "x" || labels["helm.sh/chart"] == "x" {
			t.Errorf("%s has the labels %v", o.GetName(), labels)
		}
		switch o.(type) {
		case *monitoringv1.PodMonitor, *monitoringv1.PrometheusRule:
			if labels["mine"] != "x" {
				t.Errorf("%s has the labels %v", o.GetName(), labels)
			}
		}
	}
}

// TestNull: a value or a group of them that is taken away with null, as Helm has it, is
// either missing to the schema or not needed.
func TestNull(t *testing.T) {
	t.Parallel()
	names := leaves("", parse(t, filepath.Join(chart, "values.yaml")))
	maps.Copy(names, leaves("", parse(t, valuesFile("everything"))))
	for name := range maps.Clone(names) {
		for i, c := range name {
			if c == '.' {
				names[name[:i]] = true
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, err := render(t, "--values", valuesFile("everything"), "--set", name+"=null")
			if err == nil {
				decode(t, out)
			} else if !strings.Contains(err.Error(), "schema") {
				t.Error(err)
			}
		})
	}
}

// TestOddStrings: a string that YAML, or a template, would take for something else is
// either refused by the schema or gets into the objects as it is.
func TestOddStrings(t *testing.T) {
	t.Parallel()
	everything := parse(t, valuesFile("everything"))
	place := regexp.MustCompile(`(?m)^ *- at '([^']*)'`)
	for _, odd := range []string{"true", "12", "1e3", "null", "~", "", " ", "a: b", "a #b", "# a", "- a", `a"b`, "a\nb", "[a", "{{ a }}", "$(HOME)", "$$(HOME)", "%s"} {
		t.Run(odd, func(t *testing.T) {
			t.Parallel()
			keep := make(map[string]bool)
			_, err := renderWith(t, oddly("", everything, odd, keep).(map[string]any))
			if err == nil || !strings.Contains(err.Error(), "schema") {
				t.Fatalf("the schema refuses nothing, not even the kind of monitor: %v", err)
			}
			for _, m := range place.FindAllStringSubmatch(err.Error(), -1) {
				keep[m[1]] = true
			}
			objects := decode(t, renderedWith(t, oddly("", everything, odd, keep).(map[string]any)))
			t.Logf("refused: %v", slices.Sorted(maps.Keys(keep)))
			if got := only[*appsv1.DaemonSet](t, objects).Spec.Template.Annotations["example.com/team"]; got != odd {
				t.Errorf("the annotation is %q", got)
			}
			if e := only[*monitoringv1.PodMonitor](t, objects).Spec.PodMetricsEndpoints[0]; !keep["/flags/web/telemetry-path"] && e.Path != odd {
				t.Errorf("the path is %q", e.Path)
			}
			args := only[*appsv1.DaemonSet](t, objects).Spec.Template.Spec.Containers[0].Args
			if want := "--device.include=" + odd; !keep["/flags/device/include"] && !slices.Contains(expanded(t, args), want) {
				t.Errorf("%q is not among the arguments %q", want, args)
			}
		})
	}
}

// oddly returns the value with another one instead of each string in it, but for those
// whose places, as the schema names them, are to be kept.
func oddly(place string, value any, odd string, keep map[string]bool) any {
	switch value := value.(type) {
	case map[string]any:
		all := make(map[string]any)
		for name, member := range value {
			all[name] = oddly(place+"/"+strings.ReplaceAll(name, "/", "~1"), member, odd, keep)
		}
		return all
	case []any:
		var all []any
		for i, member := range value {
			all = append(all, oddly(fmt.Sprintf("%s/%d", place, i), member, odd, keep))
		}
		return all
	case string:
		if !keep[place] {
			return odd
		}
	}
	return value
}

// TestConfigKeys: the whole configuration file, as the documentation has it, is taken,
// and gets into the pods as it is.
func TestConfigKeys(t *testing.T) {
	_, rest, _ := strings.Cut(read(t, "docs/reference/configuration.md"), "This is the whole file, with the defaults:")
	_, rest, _ = strings.Cut(rest, "```yaml\n")
	whole, _, found := strings.Cut(rest, "```")
	if !found {
		t.Fatal("docs/reference/configuration.md has no whole configuration file")
	}
	file := filepath.Join(t.TempDir(), "values.yaml")
	check(t, os.WriteFile(file, []byte("config:\n  "+strings.ReplaceAll(whole, "\n", "\n  ")), 0o600))
	var got, want any
	config := only[*corev1.ConfigMap](t, decode(t, rendered(t, "--values", file)))
	check(t, yaml.UnmarshalStrict([]byte(config.Data["config.yml"]), &got))
	check(t, yaml.UnmarshalStrict([]byte(whole), &want))
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the file is\n%s\ninstead of\n%s", config.Data["config.yml"], whole)
	}
}

// TestValuesUsed: each value makes a difference. The file with everything sets each to
// something else than the default; each is taken back, one at a time, and what is
// rendered has to change.
func TestValuesUsed(t *testing.T) {
	defaults := parse(t, filepath.Join(chart, "values.yaml"))
	everything := parse(t, valuesFile("everything"))
	// What that file leaves as it is, since with it others would have no effect.
	other := map[string]any{
		"hostPID":                false,
		"serviceAccount.create":  false,
		"networkPolicy.enabled":  false,
		"prometheusRule.enabled": false,
		"monitor.kind":           "ServiceMonitor",
		"updateStrategy.type":    "OnDelete",
		"web.config.secret":      "another", // which tlsSecret needs
	}
	// What has an effect only with other values.
	given := map[string]map[string]any{
		"image.tag":    {"image.digest": ""},
		"nameOverride": {"fullnameOverride": ""},
		"hostNetwork":  {"networkPolicy.from": []any{}},
		"web.address":  {"networkPolicy.from": []any{}, "hostNetwork": true},
	}

	names := leaves("", defaults)
	maps.Copy(names, leaves("", everything))
	before := renderedWith(t, everything)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		base, than := everything, before
		for by, value := range given[name] {
			base = with(base, by, value)
		}
		if given[name] != nil {
			than = renderedWith(t, base)
		}
		value, found := other[name]
		if !found {
			value = at(defaults, name)
		}
		if fmt.Sprint(value) == fmt.Sprint(at(base, name)) {
			t.Errorf("%s is %v in ci/everything.yaml, which is the default: give it another value there", name, value)
			continue
		}
		if set, isText := at(base, name).(string); isText && !strings.Contains(than, set) {
			t.Errorf("%s is %s, which is nowhere in the output", name, set)
		}
		if renderedWith(t, with(base, name, value)) == than {
			t.Errorf("with %s %v instead of %v the output is the same", name, value, at(base, name))
		}
	}
}

func renderWith(t *testing.T, values map[string]any) (string, error) {
	t.Helper()
	var args []string
	for name, value := range values {
		encoded := must(json.Marshal(value))(t)
		args = append(args, "--set-json", name+"="+string(encoded))
	}
	return render(t, args...)
}

func renderedWith(t *testing.T, values map[string]any) string {
	t.Helper()
	out := must(renderWith(t, values))(t)
	return out
}

func parse(t *testing.T, file string) map[string]any {
	t.Helper()
	content := must(os.ReadFile(file))(t)
	var all map[string]any
	check(t, yaml.UnmarshalStrict(content, &all))
	return all
}

// leaves returns the paths of all values. A map with keys that the user chooses counts
// as one value, and so do flags and configuration file, of which TestFlags and
// TestStarts look at each.
func leaves(prefix string, values map[string]any) map[string]bool {
	all := make(map[string]bool)
	for key, value := range values {
		name := strings.TrimPrefix(prefix+"."+key, ".")
		members, isMap := value.(map[string]any)
		switch key {
		case "affinity", "annotations", "basicAuth", "flags", "labels", "limits", "nodeSelector", "overrides", "podAnnotations", "podLabels", "requests", "rollingUpdate", "seLinuxOptions", "tlsConfig":
			isMap = false
		}
		// The web configuration is in web.config, and the exporter's in config.
		if !isMap || name == "config" {
			all[name] = true
			continue
		}
		maps.Copy(all, leaves(name, members))
	}
	return all
}

// at returns the value at a path, nil if there is none.
func at(values map[string]any, name string) any {
	key, rest, deeper := strings.Cut(name, ".")
	if !deeper {
		return values[key]
	}
	members, _ := values[key].(map[string]any)
	return at(members, rest)
}

// with returns the values with another one at a path, or with none if it is nil.
func with(values map[string]any, name string, value any) map[string]any {
	all := maps.Clone(values)
	if all == nil {
		all = make(map[string]any)
	}
	key, rest, deeper := strings.Cut(name, ".")
	switch {
	case deeper:
		members, _ := all[key].(map[string]any)
		all[key] = with(members, rest, value)
	case value == nil:
		delete(all, key)
	default:
		all[key] = value
	}
	return all
}

// TestReleaseSize: Helm keeps a release, which is the chart and what it rendered, in a
// Secret, and a Secret has 1 MiB at most.
func TestReleaseSize(t *testing.T) {
	var release bytes.Buffer
	packed := gzip.NewWriter(&release)
	_, _ = packed.Write([]byte(rendered(t, "--values", valuesFile("everything"))))
	err := filepath.WalkDir(unpacked(t), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		// Files are in it as JSON does bytes.
		_, err = fmt.Fprintf(packed, "%s", encode(content))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	check(t, packed.Close())
	size := len(encode(release.Bytes()))
	t.Logf("some %d KiB", size>>10)
	if size > 900<<10 {
		t.Errorf("a release has some %d KiB: it will not fit into a Secret", size>>10)
	}
}

func encode(b []byte) string { return base64.StdEncoding.EncodeToString(b) }
