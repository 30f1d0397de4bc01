package health

import (
	"slices"
	"strings"

	"rdma_exporter/internal/text"
)

// Issue groups findings of one kind that need the same action, on one device or on several.
type Issue struct {
	Severity Severity `json:"severity"`
	Harm     Harm     `json:"harm"`
	// Kind is empty if no finding explains why the devices are unhealthy. Their headlines then do.
	Kind Kind `json:"kind,omitempty"`
	// Meaning and Action are those of the findings.
	Meaning string `json:"meaning,omitempty"`
	Action  string `json:"action,omitempty"`
	// For is the device that Action names, if the issue is on several. Empty otherwise.
	For    string  `json:"for,omitempty"`
	Places []Place `json:"places"`
}

// Place is where an issue is.
type Place struct {
	// Device is the index of the device in the list of the host.
	Device int `json:"device"`
	// Finding is the index of the finding in the list of the device. −1 means none.
	Finding int `json:"finding"`
}

func issuesOf(devices []*Device) []Issue {
	type key struct {
		severity                 Severity
		harm                     Harm
		kind                     Kind
		subject, meaning, action string
	}
	var all []Issue
	index := make(map[key]int)
	add := func(device, finding int, f *Finding) {
		k := key{severity: f.Severity, harm: f.Harm, kind: f.Kind, meaning: f.Meaning, action: generic(f.Action, devices[device].State.Name)}
		if f.Kind == FindingContract {
			k.subject = f.Subject
		}
		i, ok := index[k]
		if !ok {
			i, index[k] = len(all), len(all)
			all = append(all, Issue{Severity: f.Severity, Harm: f.Harm, Kind: f.Kind, Meaning: f.Meaning, Action: f.Action})
		}
		is := &all[i]
		if ok && is.Places[0].Device != device && k.action != is.Action {
			is.For = devices[is.Places[0].Device].State.Name
		}
		is.Places = append(is.Places, Place{Device: device, Finding: finding})
	}
	for i, d := range devices {
		explained := false
		for n := range d.Findings {
			f := &d.Findings[n]
			if f.Accepted == nil {
				add(i, n, f)
			}
			explained = explained || f.Severity != SeverityInfo
		}
		if health, _ := d.unhealthy(); !explained && health != "" {
			add(i, -1, &Finding{Severity: SeverityWarning, Harm: HarmDegradation})
		}
	}
	slices.SortStableFunc(all, func(a, b Issue) int { return byHarm(a.Harm, b.Harm, a.Severity, b.Severity) })
	return all
}

// generic replaces the name of the device in an action, quoted for a shell or not, by a character that no text
// contains. So equal actions on different devices compare equal.
func generic(action, device string) string {
	if device = word(device); device == "" {
		return action
	}
	return strings.NewReplacer(text.Quoted(device), "\x00", device, "\x00").Replace(action)
}
