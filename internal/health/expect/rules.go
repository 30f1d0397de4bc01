// Package expect compares the state of a host with what its operators expect of it.
package expect

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"rdma_exporter/internal/state"
	"rdma_exporter/internal/text"
)

// Rules are the key expect of the configuration file: one mapping, or a list of mappings.
type Rules []Rule

// Rule is what is expected of some devices. Empty and nil fields expect nothing.
type Rule struct {
	// Device is an anchored regular expression for device names. Empty means all but virtual functions and
	// subfunctions, which come and go with their users.
	Device string `yaml:"device,omitempty"`
	// Devices and ActivePorts are minimum numbers, over all devices of the rule.
	Devices     *int `yaml:"devices,omitempty"`
	ActivePorts *int `yaml:"active_ports,omitempty"`
	// Rate, MTU and RoCEv2IPv4 are those of each active port. MTU is that of RDMA, in bytes.
	Rate       string `yaml:"rate,omitempty"`
	MTU        *int   `yaml:"mtu,omitempty"`
	RoCEv2IPv4 *bool  `yaml:"roce_v2_ipv4,omitempty"`
	// Memlock is the minimum RLIMIT_MEMLOCK of each process that holds objects on a device.
	Memlock string `yaml:"memlock,omitempty"`
	// Firmware and Driver are patterns as of path.Match.
	Firmware string `yaml:"firmware,omitempty"`
	Driver   string `yaml:"driver,omitempty"`
}

const (
	maxRules    = 64
	maxDevices  = 4096
	maxPattern  = 100  // Characters.
	maxSelector = 8192 // Characters: it may list many names.
)

// UnmarshalYAML implements an interface of the decoder that keeps its refusal of unknown keys.
func (all *Rules) UnmarshalYAML(decode func(any) error) error {
	var one map[string]yaml.Node
	var list []map[string]yaml.Node
	isList := decode(&one) != nil && decode(&list) == nil
	for _, rule := range append(list, one) {
		for _, key := range slices.Sorted(maps.Keys(rule)) {
			// What a template left empty must not switch off what it was meant to check.
			if v := rule[key]; v.ShortTag() == "!!null" || v.Kind == yaml.ScalarNode && strings.TrimSpace(v.Value) == "" {
				return fmt.Errorf("line %d: expect has no value for the key %q: give one, or leave out the key", v.Line, key)
			}
		}
	}
	if isList {
		return decode((*[]Rule)(all))
	}
	*all = make(Rules, 1)
	return decode(&(*all)[0])
}

// values returns the values of the keys that are set.
func (r *Rule) values() map[string]string {
	values := make(map[string]string)
	for f, v := range reflect.ValueOf(*r).Fields() {
		if key, _, _ := strings.Cut(f.Tag.Get("yaml"), ","); !v.IsZero() {
			values[key] = fmt.Sprint(reflect.Indirect(v))
		}
	}
	return values
}

// Validate returns an error of one line that describes each invalid rule.
func (all Rules) Validate() error {
	if len(all) > maxRules {
		return fmt.Errorf("expect has %d items: use no more than %d", len(all), maxRules)
	}
	var wrong []string
	earlier := make(map[[2]string]string)
	for i, r := range all {
		place := "expect"
		if len(all) > 1 {
			place = fmt.Sprintf("expect[%d]", i)
		}
		for _, s := range r.flaws() {
			wrong = append(wrong, place+s)
		}
		values := r.values()
		for _, key := range slices.Sorted(maps.Keys(values)) {
			of := [2]string{r.Device, key}
			if other := cmp.Or(earlier[of], values[key]); other != values[key] {
				wrong = append(wrong, fmt.Sprintf("%s.%s is %s, and an earlier item has %s for the same devices: leave out one", place, key, values[key], other))
			}
			earlier[of] = values[key]
		}
	}
	if wrong == nil {
		return nil
	}
	return errors.New(strings.Join(wrong, "; "))
}

func (r *Rule) flaws() (wrong []string) {
	values := r.values()
	refuse := func(is bool, key, advice string, args ...any) {
		if is {
			wrong = append(wrong, fmt.Sprintf(".%s is %q: ", key, text.Truncate(values[key], maxPattern))+fmt.Sprintf(advice, args...))
		}
	}
	outside := func(n *int, lowest, highest int) bool { return n != nil && (*n < lowest || *n > highest) }
	_, err := Names(r.Device)
	refuse(err != nil, "device", "%v", err)
	refuse(outside(r.Devices, 0, maxDevices), "devices", "use a number from 0 to %d", maxDevices)
	refuse(outside(r.ActivePorts, 0, maxDevices), "active_ports", "use a number from 0 to %d", maxDevices)
	refuse(outside(r.MTU, 256, 65536), "mtu", "use a number from 256 to 65536")
	refuse(r.Rate != "" && bitsPerSecond(r.Rate) == 0, "rate", "use a rate such as 400Gb/s or 200G")
	refuse(r.Memlock != "" && lockable(r.Memlock) == 0, "memlock", "use a size such as 64KiB or 16GiB, or unlimited")
	refuse(r.RoCEv2IPv4 != nil && !*r.RoCEv2IPv4, "roce_v2_ipv4", "use true, or leave out the key")
	for _, key := range []string{"firmware", "driver"} {
		_, err := path.Match(values[key], "")
		refuse(err != nil || len(values[key]) > maxPattern, key, "use a pattern such as 28.43.* of up to %d characters", maxPattern)
	}
	delete(values, "device")
	refuse(values["devices"] == "0" && len(values) > 1, "devices", "leave out the other keys, which no device can meet")
	if len(values) == 0 {
		wrong = append(wrong, " expects nothing: add a key such as devices")
	}
	return wrong
}

// Names returns an expression for whole names. An empty one matches all.
func Names(expression string) (*regexp.Regexp, error) {
	if len(expression) > maxSelector {
		return nil, fmt.Errorf("use up to %d characters", maxSelector)
	}
	// Compiled on its own first, so that none of its brackets closes the one around it.
	if _, err := regexp.Compile(expression); err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
	return regexp.Compile("^(?s:" + cmp.Or(expression, ".*") + ")$")
}

// bitsPerSecond returns a rate such as 400Gb/s, 200G or 400 Gb/sec (4X NDR). Zero if it is none.
func bitsPerSecond(s string) float64 {
	return quantity(s, `b|bps|bit|bit/s|b/s|b/sec(?: \([0-9]+X [A-Z]+\))?`, 1000)
}

// lockable returns the bytes of a size such as 64KiB. −1 means unlimited. Zero if it is none.
func lockable(s string) int64 {
	if s == "unlimited" {
		return -1
	}
	return int64(quantity(s, "i?B", 1024))
}

func quantity(s, units string, base float64) float64 {
	m := regexp.MustCompile(`^([0-9]{1,6}(?:\.[0-9]{1,3})?) ?([KMGT])(?:` + units + `)?$`).FindStringSubmatch(s)
	if m == nil {
		return 0
	}
	n, _ := strconv.ParseFloat(m[1], 64)
	return n * math.Pow(base, float64(1+strings.Index("KMGT", m[2])))
}

// rateText is the form of a rate in a rule. Empty if it is not known.
func rateText(rate float64) string {
	if !(rate > 0) {
		return ""
	}
	return strconv.FormatFloat(rate/1e9, 'f', -1, 64) + "Gb/s"
}

func hardwareOf(d *state.DeviceState) *state.Hardware {
	return cmp.Or(cmp.Or(d.Hardware, new(state.HardwareState)).Latest, new(state.Hardware))
}
