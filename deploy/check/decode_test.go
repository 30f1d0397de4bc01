package check_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	monitoringv1alpha1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// object is any object with a name.
type object interface {
	runtime.Object
	metav1.Object
}

// decode decodes all objects of a YAML stream. A field or a kind that the types do not
// know, a key given twice, and what validate finds are errors.
func decode(t *testing.T, stream string) []object {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, appsv1.AddToScheme, networkingv1.AddToScheme, monitoringv1.AddToScheme, monitoringv1alpha1.AddToScheme} {
		check(t, add(scheme))
	}
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()

	var objects []object
	documents := yaml.NewYAMLReader(bufio.NewReader(strings.NewReader(stream)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return objects
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(bytes.TrimSpace(document)) == 0 {
			continue
		}
		decoded, kind, err := decoder.Decode(document, nil, nil)
		if err != nil {
			t.Fatalf("%v, of this:\n%s", err, document)
		}
		o, ok := decoded.(object)
		if !ok {
			t.Fatalf("%s is no object with a name", kind)
		}
		validate(t, kind.Kind, o, document)
		objects = append(objects, o)
	}
}

// only returns the one object of a type, and fails if there is another number of them.
func only[T object](t *testing.T, objects []object) T {
	t.Helper()
	all := every[T](objects)
	if len(all) != 1 {
		t.Fatalf("%d objects of type %T, want 1", len(all), *new(T))
	}
	return all[0]
}

func every[T object](objects []object) []T {
	var all []T
	for _, o := range objects {
		if t, ok := o.(T); ok {
			all = append(all, t)
		}
	}
	return all
}

func kinds(objects []object) map[string]int {
	count := make(map[string]int)
	for _, o := range objects {
		count[o.GetObjectKind().GroupVersionKind().Kind]++
	}
	return count
}
