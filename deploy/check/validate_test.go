package check_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"
)

// validate checks what the API server and the prometheus-operator check of what is made
// here, and the types don't.
func validate(t *testing.T, kind string, o object, document []byte) {
	t.Helper()
	at := field.NewPath(kind, o.GetName())
	meta := at.Child("metadata")
	errs := validateMeta(meta, &metav1.ObjectMeta{Labels: o.GetLabels(), Annotations: o.GetAnnotations()})
	// Services have stricter names than others.
	valid := validation.IsDNS1123Subdomain
	if kind == "Service" {
		valid = validation.IsDNS1035Label
	}
	errs = append(errs, invalid(meta.Child("name"), o.GetName(), valid)...)
	if namespace := o.GetNamespace(); namespace != "" {
		errs = append(errs, invalid(meta.Child("namespace"), namespace, validation.IsDNS1123Label)...)
	}
	var fields any
	if err := yaml.Unmarshal(document, &fields); err != nil {
		t.Fatal(err)
	}
	errs = append(errs, validateSet(at, fields)...)

	spec := at.Child("spec")
	switch o := o.(type) {
	case *corev1.Pod:
		errs = append(errs, validatePod(spec, &o.Spec)...)
	case *appsv1.DaemonSet:
		errs = append(errs, validateUpdate(spec.Child("updateStrategy"), o.Spec.UpdateStrategy)...)
		errs = append(errs, validateMeta(spec.Child("template", "metadata"), &o.Spec.Template.ObjectMeta)...)
		errs = append(errs, validatePod(spec.Child("template", "spec"), &o.Spec.Template.Spec)...)
	case *monitoringv1.PodMonitor:
		for i, e := range o.Spec.PodMetricsEndpoints {
			errs = append(errs, validateEndpoint(spec.Child("podMetricsEndpoints").Index(i), e.Interval, e.ScrapeTimeout)...)
		}
	case *monitoringv1.ServiceMonitor:
		for i, e := range o.Spec.Endpoints {
			errs = append(errs, validateEndpoint(spec.Child("endpoints").Index(i), e.Interval, e.ScrapeTimeout)...)
		}
	}
	for _, err := range errs {
		t.Error(err)
	}
}

// invalid returns what is wrong with a value, by a function that says it in words.
func invalid(at *field.Path, value string, valid func(string) []string) field.ErrorList {
	var errs field.ErrorList
	for _, wrong := range valid(value) {
		errs = append(errs, field.Invalid(at, value, wrong))
	}
	return errs
}

// validateMeta checks labels and annotations.
func validateMeta(at *field.Path, meta *metav1.ObjectMeta) field.ErrorList {
	return append(metav1validation.ValidateLabels(meta.Labels, at.Child("labels")),
		apivalidation.ValidateAnnotations(meta.Annotations, at.Child("annotations"))...)
}

// validateSet finds fields that are there without a value. A custom resource is refused
// for one, and in others a template forgot a value.
func validateSet(at *field.Path, fields any) field.ErrorList {
	var errs field.ErrorList
	switch fields := fields.(type) {
	case nil:
		errs = append(errs, field.Required(at, "it is null"))
	case map[string]any:
		for name, value := range fields {
			errs = append(errs, validateSet(at.Child(name), value)...)
		}
	case []any:
		for i, value := range fields {
			errs = append(errs, validateSet(at.Index(i), value)...)
		}
	case string:
		// What text/template writes for what it has no value of.
		if strings.Contains(fields, "<no value>") || strings.Contains(fields, "<nil>") {
			errs = append(errs, field.Invalid(at, fields, "it lacks a value"))
		}
	}
	return errs
}

// validatePod checks the names that a pod refers to others by, and its liveness probes.
func validatePod(at *field.Path, pod *corev1.PodSpec) field.ErrorList {
	errs := metav1validation.ValidateLabels(pod.NodeSelector, at.Child("nodeSelector"))
	name := func(at *field.Path, value string) {
		errs = append(errs, invalid(at, value, validation.IsDNS1123Subdomain)...)
	}
	optional := func(at *field.Path, value string) {
		if value != "" {
			name(at, value)
		}
	}
	optional(at.Child("serviceAccountName"), pod.ServiceAccountName)
	optional(at.Child("priorityClassName"), pod.PriorityClassName)
	if pod.RuntimeClassName != nil {
		name(at.Child("runtimeClassName"), *pod.RuntimeClassName)
	}
	for i, secret := range pod.ImagePullSecrets {
		name(at.Child("imagePullSecrets").Index(i), secret.Name)
	}
	for i, volume := range pod.Volumes {
		at := at.Child("volumes").Index(i)
		if volume.ConfigMap != nil {
			name(at.Child("configMap"), volume.ConfigMap.Name)
		}
		if volume.Projected != nil {
			for i, source := range volume.Projected.Sources {
				if source.Secret != nil {
					name(at.Child("projected", "sources").Index(i), source.Secret.Name)
				}
			}
		}
	}
	for which, containers := range map[string][]corev1.Container{"containers": pod.Containers, "initContainers": pod.InitContainers} {
		for i, c := range containers {
			if c.LivenessProbe != nil && c.LivenessProbe.SuccessThreshold > 1 {
				errs = append(errs, field.Invalid(at.Child(which).Index(i).Child("livenessProbe", "successThreshold"), c.LivenessProbe.SuccessThreshold, "must be 1"))
			}
		}
	}
	return errs
}

// validateUpdate checks that an update of a DaemonSet gets on either by taking pods away
// or by adding some.
func validateUpdate(at *field.Path, strategy appsv1.DaemonSetUpdateStrategy) field.ErrorList {
	update := strategy.RollingUpdate
	if strategy.Type != appsv1.RollingUpdateDaemonSetStrategyType || update == nil {
		return nil
	}
	var errs field.ErrorList
	at = at.Child("rollingUpdate")
	positive := 0
	for name, n := range map[string]*intstr.IntOrString{"maxUnavailable": update.MaxUnavailable, "maxSurge": update.MaxSurge} {
		switch {
		case n == nil:
			if name == "maxUnavailable" {
				positive++ // It is 1.
			}
			continue
		case n.Type == intstr.String:
			errs = append(errs, invalid(at.Child(name), n.StrVal, validation.IsValidPercent)...)
		case n.IntVal < 0:
			errs = append(errs, field.Invalid(at.Child(name), n.IntVal, "must not be negative"))
		}
		of, err := intstr.GetScaledValueFromIntOrPercent(n, 100, true)
		if err == nil && of > 0 {
			positive++
		}
		if n.Type == intstr.String && of > 100 {
			errs = append(errs, field.Invalid(at.Child(name), n.StrVal, "must be no more than 100%"))
		}
	}
	if positive != 1 {
		errs = append(errs, field.Invalid(at, fmt.Sprintf("%v, %v", update.MaxUnavailable, update.MaxSurge), "one of maxUnavailable and maxSurge must be 0, and the other must not"))
	}
	return errs
}

// validateEndpoint checks how often an endpoint is scraped.
func validateEndpoint(at *field.Path, interval, timeout monitoringv1.Duration) field.ErrorList {
	var errs field.ErrorList
	for name, d := range map[string]monitoringv1.Duration{"interval": interval, "scrapeTimeout": timeout} {
		if !scrapeDuration.MatchString(string(d)) {
			errs = append(errs, field.Invalid(at.Child(name), d, "must match "+scrapeDuration.String()))
		}
	}
	if len(errs) == 0 && interval != "" && length(timeout) > length(interval) {
		errs = append(errs, field.Invalid(at.Child("scrapeTimeout"), timeout, "must not be longer than the interval "+string(interval)))
	}
	return errs
}

// scrapeDuration is the pattern of durations in the definitions of the
// prometheus-operator, but for the units that time.Duration lacks.
var scrapeDuration = regexp.MustCompile("^(([0-9]+)h)?(([0-9]+)m)?(([0-9]+)s)?(([0-9]+)ms)?$")

// length is the time that such a duration means, none if it is empty.
func length(d monitoringv1.Duration) time.Duration {
	parsed, _ := time.ParseDuration(string(d))
	return parsed
}
