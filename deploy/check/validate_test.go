package check_test

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"
)

// validate checks names, labels and annotations like the API server does, and that no field
// lacks a value. TestRefused proves that the schema refuses invalid values of other fields.
func validate(t *testing.T, kind string, o object, document []byte) {
	t.Helper()
	at := field.NewPath(kind, o.GetName())
	meta := at.Child("metadata")
	errs := append(metav1validation.ValidateLabels(o.GetLabels(), meta.Child("labels")),
		apivalidation.ValidateAnnotations(o.GetAnnotations(), meta.Child("annotations"))...)
	if ds, ok := o.(*appsv1.DaemonSet); ok {
		errs = append(errs, metav1validation.ValidateLabels(ds.Spec.Template.Labels, meta.Child("labels"))...)
	}
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
	check(t, yaml.Unmarshal(document, &fields))
	errs = append(errs, validateSet(at, fields)...)

	for _, err := range errs {
		t.Error(err)
	}
}

func invalid(at *field.Path, value string, valid func(string) []string) field.ErrorList {
	var errs field.ErrorList
	for _, wrong := range valid(value) {
		errs = append(errs, field.Invalid(at, value, wrong))
	}
	return errs
}

// validateSet finds fields that a template left without a value.
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
