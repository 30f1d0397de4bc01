package input

import (
	"fmt"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"
)

// CheckWhole returns an error for each number of a YAML document that has a fraction or an exponent
// where the type of into has a whole number. The decoder takes 1.5 for 1 without an error. Callers
// must decode the document before, which fails if it contains itself.
func CheckWhole(document *yaml.Node, into any) []error {
	return fractions(document, reflect.TypeOf(into))
}

func fractions(n *yaml.Node, t reflect.Type) []error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	var errs []error
	switch {
	case n.Kind == yaml.DocumentNode:
		return all(n.Content, t)
	case n.Kind == yaml.AliasNode:
		return fractions(n.Alias, t)
	case n.Kind == yaml.ScalarNode:
		if t.Kind() >= reflect.Int && t.Kind() <= reflect.Uint64 && n.ShortTag() == "!!float" {
			errs = append(errs, fmt.Errorf("line %d: `%s` is not a whole number: leave out fraction and exponent", n.Line, n.Value))
		}
	case n.Kind == yaml.SequenceNode && (t.Kind() == reflect.Slice || t.Kind() == reflect.Array):
		return all(n.Content, t.Elem())
	case n.Kind == yaml.MappingNode && t.Kind() == reflect.Slice: // It stands for a list of one.
		return fractions(n, t.Elem())
	case n.Kind == yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			key, value := n.Content[i], n.Content[i+1]
			if key.ShortTag() == "!!merge" && value.Kind == yaml.SequenceNode {
				errs = append(errs, all(value.Content, t)...)
			} else if key.ShortTag() == "!!merge" {
				errs = append(errs, fractions(value, t)...)
			} else if of := typeOf(t, key.Value); of != nil {
				errs = append(errs, fractions(value, of)...)
			}
			if t.Kind() == reflect.Map {
				errs = append(errs, fractions(key, t.Key())...)
			}
		}
	}
	return errs
}

func all(nodes []*yaml.Node, t reflect.Type) (errs []error) {
	for _, n := range nodes {
		errs = append(errs, fractions(n, t)...)
	}
	return errs
}

// typeOf returns the type of the value of a key in t, or nil if t has no such key.
func typeOf(t reflect.Type, key string) reflect.Type {
	switch t.Kind() {
	case reflect.Map:
		return t.Elem()
	case reflect.Struct:
		for f := range t.Fields() {
			name, options, _ := strings.Cut(f.Tag.Get("yaml"), ",")
			if strings.Contains(options, "inline") {
				if of := typeOf(f.Type, key); of != nil {
					return of
				}
			}
			if name == key || name == "" && strings.ToLower(f.Name) == key {
				return f.Type
			}
		}
	}
	return nil
}
