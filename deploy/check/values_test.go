package check_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

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
		{"flags.probe.jitter=2", "jitter"},
		{"flags.path.procfs=/host/proc", "path"},
		{"flags.web.config.file=/x", "config"},
		{"config.probe.cq.huge.entries=1", "huge"},
		{"config.audit.near_limit.warning=0", "warning"},
		{"monitor.kind=Probe", "kind"},
		{"monitor.interval=30", "interval"},
		{"terminationGracePeriodSeconds=1", "terminationGracePeriodSeconds"},
		{"prometheusRule.runbookURL=wiki", "runbookURL"},
		{"web.config.tlsSecret=certificate", "secret"},
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

// TestConfigKeys: the whole configuration file, as the documentation has it, is taken,
// and gets into the pods as it is.
func TestConfigKeys(t *testing.T) {
	_, rest, _ := strings.Cut(read(t, "docs/configuration.md"), "This is the whole file, with the defaults:")
	_, rest, _ = strings.Cut(rest, "```yaml\n")
	whole, _, found := strings.Cut(rest, "```")
	if !found {
		t.Fatal("docs/configuration.md has no whole configuration file")
	}
	file := filepath.Join(t.TempDir(), "values.yaml")
	if err := os.WriteFile(file, []byte("config:\n  "+strings.ReplaceAll(whole, "\n", "\n  ")), 0o600); err != nil {
		t.Fatal(err)
	}
	var got, want any
	config := only[*corev1.ConfigMap](t, decode(t, rendered(t, "--values", file)))
	if err := yaml.UnmarshalStrict([]byte(config.Data["config.yml"]), &got); err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict([]byte(whole), &want); err != nil {
		t.Fatal(err)
	}
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
		"hostNetwork":            true,
		"serviceAccount.create":  false,
		"networkPolicy.enabled":  false,
		"prometheusRule.enabled": false,
		"monitor.kind":           "ServiceMonitor",
		"updateStrategy.type":    "OnDelete",
		"web.config.secret":      "another", // which tlsSecret needs
	}
	// What is overruled by another value, which is taken back for both.
	overruled := map[string]string{"image.tag": "image.digest", "nameOverride": "fullnameOverride"}

	output := func(values map[string]any) string {
		content, err := yaml.Marshal(values)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "values.yaml")
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return rendered(t, "--values", file)
	}
	names := leaves("", defaults)
	maps.Copy(names, leaves("", everything))
	before := output(everything)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		base, than := everything, before
		if by := overruled[name]; by != "" {
			base = with(base, by, at(defaults, by))
			than = output(base)
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
		if output(with(base, name, value)) == than {
			t.Errorf("with %s %v instead of %v the output is the same", name, value, at(base, name))
		}
	}
}

// parse parses a file of values.
func parse(t *testing.T, file string) map[string]any {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]any
	if err := yaml.UnmarshalStrict(content, &all); err != nil {
		t.Fatal(err)
	}
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
		case "affinity", "annotations", "basicAuth", "flags", "labels", "limits", "nodeSelector", "podAnnotations", "podLabels", "requests", "rollingUpdate", "seLinuxOptions", "tlsConfig":
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
	err := filepath.WalkDir(chart, func(path string, entry fs.DirEntry, err error) error {
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
	if err := packed.Close(); err != nil {
		t.Fatal(err)
	}
	size := len(encode(release.Bytes()))
	t.Logf("some %d KiB", size>>10)
	if size > 900<<10 {
		t.Errorf("a release has some %d KiB: it will not fit into a Secret", size>>10)
	}
}

func encode(b []byte) string { return base64.StdEncoding.EncodeToString(b) }
