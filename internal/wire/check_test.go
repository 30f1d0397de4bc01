package wire

import (
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"rdma_exporter/internal/state"
	"rdma_exporter/internal/text"
	"rdma_exporter/test/running"
)

func forms() map[string]string {
	return map[string]string{
		"": "text", "name": "ConnectX-7", "word": "rc", "verb": "ibv_create_qp", "object": "qp", "device": "mlx5 0/é",
	}
}

// values has a value of each enumerated type.
func values() []string {
	return []string{
		"ok", "holds", "critical", "busy", "sent", "4KiB", "registered", "memlock", "loopback", "any", "counters", "user", "timeout", "full", "peer",
	}
}

// fill sets everything that v leads to, within its bounds.
func fill(t testing.TB, v reflect.Value, r rule) {
	t.Helper()
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem(), r)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(t, v.Index(0), rule{form: r.form, max: maxCount})
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return
		}
		for i := range v.NumField() {
			f := v.Type().Field(i)
			rule := running.Must(ruleOf(&f))(t)
			if f.Tag.Get("json") != "-" {
				fill(t, v.Field(i), rule)
			}
		}
	case reflect.String:
		v.SetString(forms()[r.form])
		if v.Type() != reflect.TypeFor[string]() {
			v.SetString("word")
		}
		if _, enumerated := v.Interface().(interface{ Valid() bool }); enumerated {
			i := slices.IndexFunc(values(), func(s string) bool {
				v.SetString(s)
				return v.Interface().(interface{ Valid() bool }).Valid()
			})
			if i < 0 {
				t.Fatalf("no value of %s", v.Type())
			}
		}
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(max(r.min, 1))
	case reflect.Uint32, reflect.Uint64:
		v.SetUint(1)
	case reflect.Float64:
		v.SetFloat(1)
	case reflect.Bool:
		v.SetBool(true)
	default:
		t.Fatalf("a field of type %s", v.Type())
	}
}

// visit calls f with every string, number and list that v leads to.
func visit(v reflect.Value, path string, f func(path string, v reflect.Value)) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			visit(v.Elem(), path, f)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if field := v.Type().Field(i); field.IsExported() && field.Tag.Get("json") != "-" {
				visit(v.Field(i), path+"."+field.Name, f)
			}
		}
	case reflect.Slice:
		f(path, v)
		if v.Len() > 0 {
			visit(v.Index(0), path+"[]", f)
		}
	case reflect.Bool, reflect.Uint32, reflect.Uint64:
	default:
		f(path, v)
	}
}

// lineFields returns the number of keys that a line can have.
func lineFields() int { return reflect.TypeFor[Line]().NumField() }

// filled returns a line with everything under one key.
func filled(t testing.TB, key int) *Line {
	t.Helper()
	var l Line
	f := reflect.TypeFor[Line]().Field(key)
	r := running.Must(ruleOf(&f))(t)
	fill(t, reflect.ValueOf(&l).Elem().Field(key), r)
	if l.Device != nil {
		l.Device.Extended[0].Name = "other"
	}
	return &l
}

// readLine reads a line of a child that is checking a contract.
func readLine(t *testing.T, l *Line) (*state.Run, error) {
	t.Helper()
	run := &state.Run{InProgress: forms()["word"]}
	_, err := addLine(run, make(map[string]bool), mustJSON(t, l))
	return run, err
}

// TestEverythingIsBounded verifies, for each string, number and list that a line can hold,
// that what is out of bounds is refused or cut.
func TestEverythingIsBounded(t *testing.T) {
	t.Parallel()
	const hostile = "a\x1b[31m\n\u202e\u009b\x00b"
	spoilt := []func(v reflect.Value) bool{
		func(v reflect.Value) bool { return setString(v, hostile) },
		func(v reflect.Value) bool { return setString(v, strings.Repeat("é", 1<<16)) },
		func(v reflect.Value) bool { return setNumber(v, -1<<40) },
		func(v reflect.Value) bool { return setNumber(v, math.MaxInt64) },
		func(v reflect.Value) bool { return repeat(v, maxList+1) },
		func(v reflect.Value) bool { return v.Kind() == reflect.Slice && hasKey(v) && repeat(v, 2) },
	}
	var unbounded []string
	for key := range lineFields() {
		if _, err := readLine(t, filled(t, key)); err != nil {
			t.Fatalf("a sane line: %v", err)
		}
		var paths []string
		visit(reflect.ValueOf(filled(t, key)), "", func(path string, _ reflect.Value) { paths = append(paths, path) })
		for n, path := range paths {
			for _, spoil := range spoilt {
				l, at, done := filled(t, key), 0, false
				visit(reflect.ValueOf(l), "", func(_ string, v reflect.Value) {
					if at == n {
						done = spoil(v)
					}
					at++
				})
				if !done {
					continue
				}
				run, err := readLine(t, l)
				if err == nil && !isBounded(run) {
					unbounded = append(unbounded, path)
				}
			}
		}
	}
	slices.Sort(unbounded)
	// A name is that of a device that was asked about, whatever it is. These numbers are as a
	// device or a process has them. TestReadRefuses has the bound of the lists.
	want := []string{
		".Bandwidth.Device", ".Bandwidth.Hardware.Device", ".Bandwidth.Hardware.Ports[].TemperatureCelsius",
		".Device.Extended[].Value", ".Device.Limits[].Value", ".Hardware.Device", ".Hardware.Ports[].TemperatureCelsius",
		".Inventory.CQEntries[].Sum", ".Inventory.Cgroups[].Limit", ".Inventory.MRBytes[].Sum",
		".Inventory.Owners[].Memlock.Limit", ".Inventory.Owners[].Memlock.Locked", ".Inventory.Owners[].Memlock.Pinned",
		".Probe.Latencies[].Arms", ".Probe.Latencies[].Samples", ".Probe.Latencies[].Unsuccessful",
		".Facts.Absent[].Memlock", ".Probe.CQs[].Actual", ".Probe.Failures[].Memlock",
		".Probe.Memory[].Locked", ".Probe.Memory[].Virtual", ".Probe.Skips[].Memlock",
	}
	slices.Sort(want)
	if got := slices.Compact(unbounded); !slices.Equal(got, want) {
		t.Errorf("unbounded are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func setString(v reflect.Value, s string) bool {
	if v.Kind() != reflect.String {
		return false
	}
	v.SetString(s)
	return true
}

func setNumber(v reflect.Value, n int64) bool {
	switch v.Kind() {
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(n)
	case reflect.Float64:
		v.SetFloat(float64(n))
	default:
		return false
	}
	return true
}

func repeat(v reflect.Value, n int) bool {
	if v.Kind() != reflect.Slice || v.Len() == 0 {
		return false
	}
	item := v.Index(0)
	v.SetZero()
	for range n {
		v.Set(reflect.Append(v, item))
	}
	return true
}

func hasKey(v reflect.Value) bool { return v.Len() > 0 && keyOf(v.Index(0)) != "" }

// isBounded reports whether nothing in a run is longer, larger or dirtier than anything that
// a reader keeps.
func isBounded(run *state.Run) bool {
	ok := true
	visit(reflect.ValueOf(run), "", func(_ string, v reflect.Value) {
		switch v.Kind() {
		case reflect.String:
			ok = ok && v.String() == text.Clean(v.String())
		case reflect.Float64:
			ok = ok && v.Float() >= -1 && v.Float() <= maxCount
		case reflect.Slice:
			ok = ok && v.Len() <= maxList && (v.Len() < 2 || !hasKey(v))
		default:
			ok = ok && v.Int() >= -1 && v.Int() <= maxCount
		}
	})
	return ok
}

// TestForms verifies which strings have a form.
func TestForms(t *testing.T) {
	t.Parallel()
	x := func(n int) string { return strings.Repeat("x", n) }
	for _, tt := range []struct {
		form      string
		good, bad []string
	}{
		{"word", []string{"AZaz09_-. ", x(128)}, []string{"", "a@", "[", "`", "{", "a/", ":", "é", "\n", "\x00", x(129)}},
		{"verb", []string{"ibv_x", "ibv_" + x(124)}, []string{"", "open", "rm -rf", "ibv_/", "ibv_" + x(125)}},
		{"object", []string{"qp", "ctx"}, []string{"", "ah", "teapot"}},
		{"device", []string{"mlx5_0", "a b/é", "\x1b", x(255)}, []string{"", x(256)}},
		{"unheard-of", nil, []string{"x"}},
	} {
		for _, s := range append(tt.good, tt.bad...) {
			if got := isForm(s, tt.form); got != slices.Contains(tt.good, s) {
				t.Errorf("%q is of the form %s: %t", s, tt.form, got)
			}
		}
	}
}

// TestCheckRefuses verifies the rules that a tag does not name.
func TestCheckRefuses(t *testing.T) {
	t.Parallel()
	for name, v := range map[string]any{
		"a time":       &struct{ At time.Time }{time.Unix(1, 0)},
		"a map":        &struct{ M map[string]int }{},
		"an interface": &struct{ I any }{},
		"an unknown bound": &struct {
			N int `wire:"max=many"`
		}{},
		"an empty word": &struct {
			S string `json:"s" wire:"word"`
		}{},
		"an unlisted number": &struct{ N []int }{[]int{-1}},
	} {
		if err := check(v); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	if err := check(&struct {
		S string `json:"s,omitempty" wire:"word"`
	}{}); err != nil {
		t.Errorf("an empty word that may be left out: %v", err)
	}
}

// TestHardwareRefused verifies that a reading that no reader accepts is a failure of its
// device alone.
func TestHardwareRefused(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	w := NewWriter(&b)
	bad := state.Hardware{Device: "a", Driver: "mlx5\n"}
	running.Check(t, errors.Join(w.Send(Line{Hardware: &bad}), w.Send(Line{Hardware: &state.Hardware{Device: "b"}}), w.Send(Line{End: &End{}})))
	var run state.Run
	running.Check(t, Read(strings.NewReader(b.String()), &run))
	want := []state.Hardware{{Device: "a", Failure: run.Hardware[0].Failure}, {Device: "b"}}
	if !reflect.DeepEqual(run.Hardware, want) || want[0].Failure == "" {
		t.Errorf("read %+v", run.Hardware)
	}
}

func mustJSON(t testing.TB, v any) []byte {
	t.Helper()
	b := running.Must(json.Marshal(v))(t)
	return b
}
