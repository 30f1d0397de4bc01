package check_test

import (
	"maps"
	"slices"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	corev1 "k8s.io/api/core/v1"
)

func TestSidecar(t *testing.T) {
	objects := decode(t, read(t, "deploy/kubernetes/sidecar.yaml"))
	got, want := kinds(objects), map[string]int{"Pod": 1, "PodMonitor": 1}
	t.Logf("decoded: %v", got)
	if !maps.Equal(got, want) {
		t.Fatalf("the objects are %v, want %v", got, want)
	}
	pod, monitor := only[*corev1.Pod](t, objects), only[*monitoringv1.PodMonitor](t, objects)
	checkHarmless(t, &pod.Spec, "rdma-exporter")
	if pod.Spec.ShareProcessNamespace == nil || !*pod.Spec.ShareProcessNamespace || pod.Spec.HostPID || pod.Spec.HostNetwork {
		t.Error("the pod does not share the processes of its containers alone")
	}
	sidecar := pod.Spec.InitContainers[0]
	if sidecar.RestartPolicy == nil || *sidecar.RestartPolicy != corev1.ContainerRestartPolicyAlways {
		t.Error("the init container is no sidecar")
	}
	for _, c := range slices.Concat(pod.Spec.Containers, pod.Spec.InitContainers) {
		if n := c.Resources.Limits["rdma/hca_shared_devices_a"]; n.Value() != 1 {
			t.Errorf("the container %s has no device", c.Name)
		}
	}
	endpoint := monitor.Spec.PodMetricsEndpoints[0]
	if !matches(monitor.Spec.Selector.MatchLabels, pod.Labels) || *endpoint.Port != sidecar.Ports[0].Name {
		t.Error("the monitor does not find the sidecar")
	}
	for _, label := range []string{"instance", "job"} {
		if find(endpoint.RelabelConfigs, label) == nil {
			t.Errorf("the label %s is left to the operator", label)
		}
	}
	runExporter(t, &sidecar, nil)
}
