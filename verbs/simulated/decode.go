package simulated

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"rdma_exporter/internal/input"
)

// ProfileError is one thing that is wrong with a profile.
type ProfileError struct {
	// File is the name of the file, "profile" if the profile did not come from
	// one, or empty if it was not parsed at all.
	File string
	// Line counts from 1; 0 if it is not known.
	Line int
	// Where is the path of what is wrong, such as devices[0].faults[1].verb; empty
	// if the whole line is.
	Where string
	// What says what is wrong.
	What string
	// Remedy says what to write instead.
	Remedy string
}

// Error implements error.
func (e *ProfileError) Error() string {
	var s strings.Builder
	if e.File != "" {
		s.WriteString(e.File)
		if e.Line > 0 {
			s.WriteString(":" + strconv.Itoa(e.Line))
		}
		s.WriteString(": ")
	}
	if e.Where != "" {
		s.WriteString(e.Where + ": ")
	}
	s.WriteString(e.What)
	if e.Remedy != "" {
		s.WriteString("; " + e.Remedy)
	}
	return s.String()
}

// parse decodes, completes and validates a profile.
func parse(file string, data []byte) (*Profile, error) {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	dec.KnownFields(true)
	var p Profile
	switch err := dec.Decode(&p); {
	case errors.Is(err, io.EOF):
		return nil, &ProfileError{File: file, What: "the profile is empty", Remedy: "list devices, or write `devices: []` to simulate a host without any"}
	case err != nil:
		return nil, decodeErrors(file, err)
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, &ProfileError{File: file, What: "the profile has more than one document", Remedy: "remove what follows the line ---"}
	}
	v := &validator{file: file, text: data}
	v.complete(&p)
	v.profile(&p)
	if err := v.err(); err != nil {
		return nil, err
	}
	return &p, nil
}

// checkWhole returns an error for each fraction where a whole number belongs in a profile
// that was parsed: the decoder cuts them off.
func checkWhole(file string, data []byte, p *Profile) error {
	var root yaml.Node
	if err := yaml.Unmarshal(data, &root); err != nil {
		return decodeErrors(file, err)
	}
	errs := input.CheckWhole(&root, p)
	for i, err := range errs {
		errs[i] = decodeProblem(file, err.Error())
	}
	return errors.Join(errs...)
}

// complete takes what devices leave out from the devices that they are like.
func (v *validator) complete(p *Profile) {
	var builtin *Profile
	for i := range p.Devices {
		d := &p.Devices[i]
		if d.Like == "" {
			continue
		}
		if builtin == nil {
			builtin = Default()
		}
		at := path{"devices", i}
		base := slices.IndexFunc(builtin.Devices, func(b DeviceProfile) bool { return b.Name == d.Like })
		if base < 0 {
			v.report(at.to("like"), suggest(d.Like, builtin.Names()), "the default profile has no device %q", d.Like)
		} else {
			inherit(reflect.ValueOf(d).Elem(), reflect.ValueOf(builtin.Devices[base].clone()), v.node(at))
		}
		d.Like = ""
	}
}

// inherit sets the fields of a struct that the node does not mention.
func inherit(to, from reflect.Value, n *yaml.Node) {
	for i := range to.NumField() {
		key := yamlKey(to.Type().Field(i))
		if key == "name" {
			continue
		}
		value := child(n, key)
		_, opaque := to.Field(i).Addr().Interface().(yaml.Unmarshaler)
		switch {
		case value == nil:
			to.Field(i).Set(from.Field(i))
		case to.Field(i).Kind() == reflect.Struct && !opaque:
			inherit(to.Field(i), from.Field(i), value)
		}
	}
}

// yamlKey returns the key that a field has in YAML.
func yamlKey(f reflect.StructField) string {
	key, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
	return key
}

// resolve returns what a node stands for.
func resolve(n *yaml.Node) *yaml.Node {
	for n != nil && n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

// child returns the value of a key, or nil. It looks into merged mappings, too.
func child(n *yaml.Node, key string) *yaml.Node {
	n = resolve(n)
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	var merged *yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		switch n.Content[i].Value {
		case key:
			return n.Content[i+1]
		case "<<":
			merged = resolve(n.Content[i+1])
		}
	}
	if merged != nil && merged.Kind == yaml.SequenceNode {
		for _, m := range merged.Content {
			if found := child(m, key); found != nil {
				return found
			}
		}
		return nil
	}
	return child(merged, key)
}

// path leads from the root of a profile to one of its values: keys and indices.
type path []any

// to returns a longer path.
func (p path) to(steps ...any) path { return append(slices.Clip(slices.Clone(p)), steps...) }

// String writes the path as devices[0].name.
func (p path) String() string {
	var s strings.Builder
	for _, step := range p {
		if i, ok := step.(int); ok {
			fmt.Fprintf(&s, "[%d]", i)
			continue
		}
		if s.Len() > 0 {
			s.WriteByte('.')
		}
		fmt.Fprint(&s, step)
	}
	return s.String()
}

// step returns the node that a step of a path leads to, or nil.
func step(n *yaml.Node, s any) *yaml.Node {
	i, ok := s.(int)
	if !ok {
		return child(n, fmt.Sprint(s))
	}
	n = resolve(n)
	if n == nil || n.Kind != yaml.SequenceNode || i >= len(n.Content) {
		return nil
	}
	return n.Content[i]
}

// node returns the node at a path, or nil.
func (v *validator) node(p path) *yaml.Node {
	n := v.top()
	for _, s := range p {
		n = step(n, s)
	}
	return resolve(n)
}

// line returns the line of the last node on the path that exists.
func (v *validator) line(p path) int {
	n := v.top()
	if n == nil {
		return 0
	}
	line := n.Line
	for _, s := range p {
		if n = step(n, s); n == nil {
			break
		}
		line = n.Line
	}
	return line
}

func (v *validator) top() *yaml.Node {
	if v.root == nil {
		// The document was decoded strictly into the profile. Nodes know where everything
		// stands, which mostly nobody asks.
		v.root = new(yaml.Node)
		_ = yaml.Unmarshal(v.text, v.root) // it was decoded before
	}
	if len(v.root.Content) == 0 {
		return nil
	}
	return v.root.Content[0]
}

// decodeErrors turns the decoder's errors into ours.
func decodeErrors(file string, err error) error {
	var types *yaml.TypeError
	if !errors.As(err, &types) {
		return decodeProblem(file, strings.TrimPrefix(err.Error(), "yaml: "))
	}
	var all []error
	for _, message := range types.Errors {
		all = append(all, decodeProblem(file, message))
	}
	return errors.Join(all...)
}

// decodeProblem rewrites a message of the decoder, which speaks of Go types.
func decodeProblem(file, message string) error {
	e := &ProfileError{File: file, What: message}
	if m := regexp.MustCompile(`(?s)^line (\d+): (.*)$`).FindStringSubmatch(message); m != nil {
		e.Line, _ = strconv.Atoi(m[1])
		e.What = m[2]
	}
	if m := regexp.MustCompile(`^field (.*) not found in type (.*)$`).FindStringSubmatch(e.What); m != nil {
		e.What = fmt.Sprintf("unknown key %q", m[1])
		e.Remedy = suggest(m[1], keysOf(reflect.TypeFor[Profile](), m[2]))
	}
	if m := regexp.MustCompile("(?s)^cannot unmarshal !!(\\S+)(?: `(.*)`)? into (.*)$").FindStringSubmatch(e.What); m != nil {
		got := "a " + map[string]string{"map": "mapping", "seq": "list"}[m[1]]
		if m[2] != "" {
			got = strconv.Quote(m[2])
		}
		want, remedy := wanted(m[3])
		e.What, e.Remedy = got+" is not "+want, remedy
	}
	return e
}

// wanted describes a Go type to somebody who writes YAML.
func wanted(goType string) (want, remedy string) {
	switch {
	case strings.HasSuffix(goType, "Duration"):
		return "a duration", "write it with its unit, like 250ms or 2s"
	case strings.HasPrefix(goType, "uint"):
		return "a number from 0 to " + map[string]string{"uint16": "65535", "uint32": "4294967295", "uint64": "18446744073709551615"}[goType], ""
	case strings.HasPrefix(goType, "float"):
		return "a number", ""
	case strings.HasPrefix(goType, "int"):
		return "a whole number", ""
	case goType == "bool":
		return "true or false", ""
	case goType == "string" || goType == "verbs.Verb":
		return "a text", ""
	case strings.HasPrefix(goType, "[]"):
		return "a list", "put each element on a line of its own that starts with a dash"
	default:
		return "a mapping", "write key: value lines"
	}
}

// keysOf returns the keys of the named struct type somewhere within t.
func keysOf(t reflect.Type, name string) []string {
	for t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	found := t.String() == name
	var keys []string
	for i := range t.NumField() {
		key := yamlKey(t.Field(i))
		if found {
			keys = append(keys, key)
		} else if keys = keysOf(t.Field(i).Type, name); keys != nil {
			return keys
		}
	}
	return keys
}
