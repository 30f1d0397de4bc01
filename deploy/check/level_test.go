package check_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

// TestPodSecurityLevel verifies which Pod Security levels admit the pods, with the code of
// the API server. The reasons are complete: the pods keep all other rules of each level.
func TestPodSecurityLevel(t *testing.T) {
	evaluator := must(policy.NewEvaluator(policy.DefaultChecks(), nil))(t)
	refused := func(level api.LevelVersion, meta *metav1.ObjectMeta, spec *corev1.PodSpec) string {
		result := policy.AggregateCheckResults(evaluator.EvaluatePod(level, meta, spec))
		if result.Allowed {
			return ""
		}
		return result.ForbiddenDetail()
	}
	// The oldest version that the chart supports, and the newest.
	versions := []api.Version{api.MajorMinorVersion(1, 25), api.LatestVersion()}
	pods := func(name string, args ...string) *corev1.PodTemplateSpec {
		return &only[*appsv1.DaemonSet](t, chartObjects(t, name, args...)).Spec.Template
	}
	sidecar := only[*corev1.Pod](t, decode(t, read(t, "deploy/kubernetes/sidecar.yaml")))

	const (
		pid   = "host namespaces (hostPID=true)"
		both  = "host namespaces (hostNetwork=true, hostPID=true)"
		linux = `seLinuxOptions (pod set forbidden securityContext.seLinuxOptions: type "container_device_t")`
	)
	for _, test := range []struct {
		name string
		pod  *corev1.PodTemplateSpec
		// baseline and restricted are why these levels refuse it; empty if they don't.
		baseline, restricted string
	}{
		{"defaults", pods("defaults"), both, both},
		{"defaults, pod network", pods("defaults", "--set", "hostNetwork=false"), pid, pid},
		{"secured", pods("secured"), both, both},
		{"service-monitor", pods("service-monitor"), both, both},
		{"host-network", pods("host-network"), both, both},
		{
			"everything", pods("everything"),
			pid + `, hostPath volumes (volumes "infiniband", "state", "maintenance"), ` + linux,
			pid + ", " + linux + `, restricted volume types (volumes "infiniband", "state", "maintenance" use restricted volume type "hostPath")`,
		},
		{
			"host-path", pods("restricted", "--set", "devices.hostPath=true"),
			"hostPath volumes (volume \"infiniband\")",
			"restricted volume types (volume \"infiniband\" uses restricted volume type \"hostPath\")",
		},
		{"restricted", pods("restricted"), "", ""},
		{"sidecar", &corev1.PodTemplateSpec{ObjectMeta: sidecar.ObjectMeta, Spec: sidecar.Spec}, "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			for level, want := range map[api.Level]string{api.LevelPrivileged: "", api.LevelBaseline: test.baseline, api.LevelRestricted: test.restricted} {
				for _, version := range versions {
					level := api.LevelVersion{Level: level, Version: version}
					if got := refused(level, &test.pod.ObjectMeta, &test.pod.Spec); got != want {
						t.Errorf("%s refuses the pod for %q, want %q", level, got, want)
					}
				}
			}
		})
	}
}
