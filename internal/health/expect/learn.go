package expect

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"rdma_exporter/internal/state"
)

// Of returns rules that a host meets now: one, or one for each group of devices that are alike. Values in which the
// active ports of a device differ are left out, and so are virtual functions and subfunctions.
func Of(s *state.Snapshot) (all Rules) {
	// A literal in a pattern.
	quoted := strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`)
	groups, names := make(map[string]int), [][]string(nil)
	for i := range s.Devices {
		d := &s.Devices[i]
		is := hardwareOf(d)
		if is.Identity.Virtual() {
			continue
		}
		active := slices.DeleteFunc(portsOf(d), func(p port) bool { return !p.isActive() })
		same := func(value func(*port) string) string {
			var values []string
			for i := range active {
				values = append(values, value(&active[i]))
			}
			if values = slices.Compact(values); len(values) != 1 {
				return ""
			}
			return values[0]
		}
		r := Rule{Rate: same(func(p *port) string { return rateText(p.Rate) }), Driver: quoted.Replace(is.Identity.DriverVersion)}
		if mtu, err := strconv.Atoi(same(func(p *port) string { return p.mtu })); err == nil && mtu > 0 {
			r.MTU = &mtu
		}
		if same(func(p *port) string { return strconv.FormatBool(p.RoCEv2IPv4 != nil) }) == "true" {
			r.RoCEv2IPv4 = new(true)
		}
		if d.Info != nil {
			r.Firmware = quoted.Replace(d.Info.Firmware)
		}
		group := fmt.Sprint(r.values())
		n, ok := groups[group]
		if !ok {
			n, groups[group] = len(all), len(all)
			r.Devices, r.ActivePorts = new(0), new(0)
			all, names = append(all, r), append(names, nil)
		}
		*all[n].Devices++
		*all[n].ActivePorts += len(active)
		names[n] = append(names[n], regexp.QuoteMeta(d.Name))
	}
	for i := range all {
		if len(all) > 1 {
			all[i].Device = strings.Join(names[i], "|")
		}
	}
	return all
}
