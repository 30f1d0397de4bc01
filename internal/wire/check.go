package wire

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"rdma_exporter/internal/state"
	"rdma_exporter/internal/text"
)

// What a field may hold if its tag says nothing else.
const (
	// maxList limits the length of a list.
	maxList = 2048
	// maxCount limits a number. There is not that much of anything, and sums stay far from
	// an overflow.
	maxCount = 1 << 48
	// maxLabel limits words and names, in bytes.
	maxLabel = 128
	// maxDevice limits the name of a device, in bytes. A file name has no more.
	maxDevice = 255
)

// rule says what a field may hold. It is read from the field's tag "wire", a list of words
// with commas between them:
//
//   - word, verb, object, device: the form of a string, see isForm. A string of another form
//     is refused. An empty one is, too, unless the field is optional or may be omitted.
//   - name: a string from outside that becomes a label. It is cleaned, and cut to maxLabel.
//   - key: part of what distinguishes the items of a list. Two equal ones are refused.
//   - max=N, min=N, size, any: the range of a number. Without these, it goes from 0 to
//     maxCount. Of a list, max is the length, and maxList without it.
//
// A string without a form is cleaned and cut by text.Clean. A string of a named type must be
// one of its values, or a word if the type lists none. So a field without a tag is bounded
// as well.
type rule struct {
	form     string
	optional bool
	min, max int64
	length   int
}

func ruleOf(f *reflect.StructField) (rule, error) {
	r := rule{max: maxCount, length: maxList, optional: strings.Contains(f.Tag.Get("json"), "omit")}
	tag, ok := f.Tag.Lookup("wire")
	if !ok {
		return r, nil
	}
	for part := range strings.SplitSeq(tag, ",") {
		key, value, _ := strings.Cut(part, "=")
		var err error
		switch key {
		case "key":
		case "optional":
			r.optional = true
		case "any":
			r.min, r.max = math.MinInt64, math.MaxInt64
		case "size":
			r.max = math.MaxInt64
		case "min":
			r.min, err = strconv.ParseInt(value, 10, 64)
		case "max":
			r.max, err = strconv.ParseInt(value, 10, 64)
			r.length = int(r.max)
		default:
			r.form = key
		}
		if err != nil {
			return r, fmt.Errorf("the tag %q: %w", tag, err)
		}
	}
	return r, nil
}

// check cleans the strings that v points to, and returns an error if anything else that it
// leads to is out of bounds.
func check(v any) error { return checkValue(reflect.ValueOf(v), rule{max: maxCount, length: maxList}) }

func checkValue(v reflect.Value, r rule) error {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return nil
		}
		return checkValue(v.Elem(), r)
	case reflect.Struct:
		return checkStruct(v)
	case reflect.Slice:
		return checkList(v, r)
	case reflect.String:
		return checkString(v, r)
	case reflect.Int, reflect.Int32, reflect.Int64:
		if n := v.Int(); n < r.min || n > r.max {
			return fmt.Errorf("%d is not from %d to %d", n, r.min, r.max)
		}
	case reflect.Float64:
		if n := v.Float(); n < float64(r.min) || n > float64(r.max) {
			return fmt.Errorf("%v is not from %d to %d", n, r.min, r.max)
		}
	case reflect.Bool, reflect.Uint32, reflect.Uint64:
	default:
		return fmt.Errorf("a value of type %s, which has no bound", v.Type())
	}
	return nil
}

func checkStruct(v reflect.Value) error {
	if v.Type() == reflect.TypeFor[time.Time]() {
		if !v.IsZero() {
			return errors.New("a child sets no time")
		}
		return nil
	}
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if f.Tag.Get("json") == "-" {
			continue
		}
		r, err := ruleOf(&f)
		if err == nil {
			err = checkValue(v.Field(i), r)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
	}
	return nil
}

func checkList(v reflect.Value, r rule) error {
	if v.Len() > r.length {
		return fmt.Errorf("%w: %d items, more than %d", ErrTooLarge, v.Len(), r.length)
	}
	r.max = maxCount // not the length
	seen := make(map[string]bool)
	for i := range v.Len() {
		item := v.Index(i)
		// Two names that are equal once they are cleaned are no reason to refuse the list.
		if err := unique(seen, keyOf(item)); err != nil {
			return err
		}
		if err := checkValue(item, r); err != nil {
			return err
		}
	}
	return nil
}

// unique returns an error if a key was seen, and adds it. An empty key is none.
func unique(seen map[string]bool, key string) error {
	if key != "" && seen[key] {
		return fmt.Errorf("%.80q is there twice", key)
	}
	seen[key] = true
	return nil
}

// keyOf returns what distinguishes an item of a list from the others. Empty means nothing.
func keyOf(v reflect.Value) string {
	if v.Kind() != reflect.Struct {
		return ""
	}
	var parts []string
	for i := range v.NumField() {
		f := v.Type().Field(i)
		switch {
		case f.Anonymous:
			parts = append(parts, keyOf(v.Field(i)))
		case slices.Contains(strings.Split(f.Tag.Get("wire"), ","), "key"):
			parts = append(parts, fmt.Sprint(v.Field(i).Interface()))
		}
	}
	return strings.Join(parts, "\x00")
}

func checkString(v reflect.Value, r rule) error {
	s := v.String()
	value, named := v.Interface().(interface{ Valid() bool })
	if !named && r.form == "" && v.Type() != reflect.TypeFor[string]() {
		r.form = "word"
	}
	switch {
	case named && value.Valid(), s == "" && r.optional:
	case named:
		return fmt.Errorf("%.64q is not a value of %s", s, v.Type())
	case r.form == "":
		clean(v, text.Clean(s))
	case r.form == "name":
		s = text.Clean(s)
		clean(v, strings.ToValidUTF8(s[:min(len(s), maxLabel)], ""))
	case !isForm(s, r.form):
		return fmt.Errorf("%.64q is not of the form %s", s, r.form)
	}
	return nil
}

// clean writes only what changed, since a sender may share the rest with other goroutines.
func clean(v reflect.Value, s string) {
	if s != v.String() {
		v.SetString(s)
	}
}

func isForm(s, form string) bool {
	switch form {
	case "word":
		return isWord(s)
	case "verb":
		return strings.HasPrefix(s, "ibv_") && isWord(s)
	case "object":
		return slices.Contains(state.ResourceTypes(), s)
	case "device":
		return s != "" && len(s) <= maxDevice // It must stay the name that was asked about.
	default:
		return false
	}
}

// isWord reports whether s can be a label value: letters, digits, and a few signs.
func isWord(s string) bool {
	return s != "" && len(s) <= maxLabel && !strings.ContainsFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("_-. ", r)
	})
}
