package input

import (
	"fmt"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"
)

// CheckWhole returns an error for each number of a YAML document that has a fraction or an
// exponent where the type of a value, into which the document is to be decoded, has a
// whole number. The decoder takes 1.5 for 1 there, and says nothing. It is to be called when the document was decoded
// strictly, so that it is known not to contain itself.
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
		for _, c := range n.Content {
			errs = append(errs, fractions(c, t)...)
		}
	case n.Kind == yaml.AliasNode:
		// It is where the anchor is.
		return fractions(n.Alias, t)
	case n.Kind == yaml.ScalarNode:
		if t.Kind() >= reflect.Int && t.Kind() <= reflect.Uint64 && n.ShortTag() == "!!float" {
			errs = append(errs, fmt.Errorf("line %d: `%s` is not a whole number: leave out fraction and exponent", n.Line, n.Value))
		}
	case n.Kind == yaml.SequenceNode && (t.Kind() == reflect.Slice || t.Kind() == reflect.Array):
		for _, c := range n.Content {
			errs = append(errs, fractions(c, t.Elem())...)
		}
	case n.Kind == yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			key, value := n.Content[i], n.Content[i+1]
			if key.ShortTag() == "!!merge" {
				errs = append(errs, merged(value, t)...)
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

// merged is fractions of what a mapping of this type is merged with: one mapping or a
// list of them.
func merged(n *yaml.Node, t reflect.Type) []error {
	if n.Kind != yaml.SequenceNode {
		return fractions(n, t)
	}
	var errs []error
	for _, c := range n.Content {
		errs = append(errs, fractions(c, t)...)
	}
	return errs
}

// typeOf returns the type of the value of a key in a mapping that is decoded into t; nil if
// t has no such key, which the decoder tells.
func typeOf(t reflect.Type, key string) reflect.Type {
	switch t.Kind() {
	case reflect.Map:
		return t.Elem()
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
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
