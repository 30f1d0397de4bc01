package health

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"rdma_exporter/internal/health/growth"
	"rdma_exporter/internal/health/paths"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/text"
)

// Host is an evaluated snapshot. It is shared: callers must not modify it, nor what it points to.
type Host struct {
	// Snapshot is what was evaluated. Nil if nothing is known.
	Snapshot *state.Snapshot `json:"-"`
	// Problem is a problem of the host rather than of a device. Nil if there is no such problem.
	Problem *Problem `json:"problem,omitempty"`
	// Devices are the devices of the snapshot, the worst first, and then by name.
	Devices []*Device `json:"devices"`
	// Findings are those of the host itself: what is not as expected, what the exporter's network namespace hides, and
	// acceptances that match nothing any longer. Only the first change its health.
	Findings []Finding `json:"findings,omitempty"`
	// ExpectedDevices is how many devices the configuration expects. Nil if it does not say.
	ExpectedDevices *int `json:"expected_devices,omitempty"`
	// Past are the findings that are over, in no order.
	Past []Past `json:"-"`
	// Began is when the evaluator began to look. Zero means unknown.
	Began time.Time `json:"-"`
	// Issues group the findings of all devices, the worst first.
	Issues []Issue `json:"issues"`
	// DocsURL is prepended to the paths of documents. Empty if it is not known where they are.
	DocsURL string `json:"docs_url,omitempty"`
}

// Past is a finding that ended less than ten minutes ago, or was not evaluated again since a restart. It has no texts.
type Past struct {
	Device string // Empty if it was one of the host.
	Finding
}

// Device is an evaluated device.
type Device struct {
	// State is what was evaluated.
	State state.DeviceState `json:"-"`
	// Findings have the worst first and the accepted ones last. Nil if too little is known to evaluate.
	Findings []Finding `json:"findings"`
	// Growth is how the objects on the device grow.
	Growth *growth.Growth `json:"growth,omitempty"`
	// Exhausted are the types of which the device refused the exporter an object.
	Exhausted []Exhausted `json:"exhausted,omitempty"`
	// Leftover are contexts without an owner that left objects within the last day, the latest first.
	Leftover   []ContextHistory `json:"leftover,omitempty"`
	staleAfter map[state.Kind]time.Duration
	never      []state.Kind
}

// rank returns 0 for the worst device, whatever the time. An unknown device ranks before a healthy one.
func (d *Device) rank() int {
	harm, severity := HarmNote, SeverityWarning
	health, _ := d.unhealthy()
	switch {
	case len(d.Findings) > 0 && d.Findings[0].Severity != SeverityInfo && d.Findings[0].Accepted == nil:
		harm, severity = d.Findings[0].Harm, d.Findings[0].Severity
	case health == Critical:
		harm, severity = HarmOutage, SeverityCritical
	case health == Warning:
		harm, severity = HarmDegradation, SeverityCritical
	case !d.State.Present || d.State.Last == nil || d.State.OutOfTime != nil:
		severity = SeverityCritical
	}
	return slices.Index(Harms(), harm)*len(state.Severities()) + slices.Index(state.Severities(), severity)
}

// At returns the worst health of the host and all devices at a moment.
func (h *Host) At(now time.Time) Health {
	worst := OK
	if h.Problem != nil {
		worst = h.Problem.Health
	}
	worsen := func(to Health) {
		if slices.Index(Healths(), to) > slices.Index(Healths(), worst) {
			worst = to
		}
	}
	for i := range h.Findings {
		if f := &h.Findings[i]; f.Counts() {
			worsen(Health(f.Severity))
		}
	}
	for _, d := range h.Devices {
		health, _ := d.At(now)
		worsen(health)
	}
	return worst
}

// Fails reports whether the host or a device is at least as bad as a severity. A device whose health is unknown counts
// as a warning. The host also fails if a device was not probed, in time or at all.
func (h *Host) Fails(least Severity, now time.Time) bool {
	if h.Problem != nil && h.Problem.Kind == ProblemStart ||
		slices.ContainsFunc(h.Findings, func(f Finding) bool { return f.Counts() && bySeverity(f.Severity, least) <= 0 }) {
		return true
	}
	for _, d := range h.Devices {
		if out := d.State.OutOfTime; out != nil && slices.Contains(out.Kinds, state.KindProbe) {
			return true
		}
		health, _ := d.At(now)
		if health == Unknown {
			health = Warning
		}
		if health != OK && bySeverity(Severity(health), least) <= 0 {
			return true
		}
	}
	return false
}

// Health summarises a device or a host.
type Health string

// The healths. Unknown means that the device has not been probed yet, or not recently, or is gone. Warning and
// Critical are the severity of the worst finding. Warning also means that the last run failed.
const (
	OK       Health = "ok"
	Unknown  Health = "unknown"
	Warning  Health = "warning"
	Critical Health = "critical"
)

// Healths returns every health, the best first.
func Healths() []Health { return []Health{OK, Unknown, Warning, Critical} }

// NothingToDo is the headline of a healthy device.
const NothingToDo = "No action needed."

// At returns the health of the device at a moment, and a headline of a sentence or two: its worst finding, or that no
// action is needed, followed by what is accepted, what could not be probed and which runs are old. The headline may
// contain words from outside.
func (d *Device) At(now time.Time) (health Health, headline string) {
	health, headline = d.unhealthy()
	switch {
	case health != "":
		return health, headline
	case !d.State.Vanished.IsZero(): // That is accepted.
		return OK, "The device is gone." + d.accepted()
	case !d.State.Present:
		return Unknown, "The device is gone."
	case d.State.OutOfTime != nil:
		var names []string
		for _, kind := range d.State.OutOfTime.Kinds {
			names = append(names, map[state.Kind]string{
				state.KindProbe: "the probes", state.KindContract: "the contracts",
				state.KindInventory: "the inventory", state.KindHardware: "the hardware",
			}[kind])
		}
		return Unknown, "Not audited in time: " + strings.Join(names, ", ") + "."
	case d.State.Last == nil:
		return Unknown, "Not probed yet."
	case d.Stale(state.KindProbe, now):
		return Unknown, fmt.Sprintf("Out of date: the last probe run started %s; the exporter's log may say why.", text.Ago(now, d.State.Last.Started))
	}
	return OK, NothingToDo + d.gaps(now)
}

// Stale reports whether the last run of a kind is overdue for replacement. It is false if there was no such run.
func (d *Device) Stale(kind state.Kind, now time.Time) bool {
	after, ages := d.staleAfter[kind]
	run := d.last(kind)
	return ages && run != nil && now.Sub(run.Started) > after
}

func (d *Device) last(kind state.Kind) *state.Run {
	return map[state.Kind]*state.Run{
		state.KindProbe:     d.State.Last,
		state.KindContract:  cmp.Or(d.State.Contracts, new(state.Contracts)).Last,
		state.KindInventory: cmp.Or(d.State.Resources, new(state.Resources)).Last,
		state.KindAsk:       paths.Last(d.State.Paths),
	}[kind]
}

// unhealthy returns the health and headline of an unhealthy device, at any time. Empty if it is healthy.
func (d *Device) unhealthy() (health Health, headline string) {
	explained := false
	for _, f := range d.Findings {
		if f.Severity != SeverityInfo && f.Accepted == nil {
			return Health(f.Severity), headlineOf(f.Message)
		}
		explained = explained || f.Severity != SeverityInfo
	}
	stuck, run := cmp.Or(d.State.Stuck, cmp.Or(d.State.Resources, new(state.Resources)).Stuck), d.State.Last
	switch {
	case explained:
		return "", ""
	case stuck != nil:
		return Critical, fmt.Sprintf("Process %d was killed but has not ended.", stuck.PID)
	case run != nil && run.Outcome != state.OutcomeOK:
		ended := cmp.Or(map[state.Outcome]string{
			state.OutcomeFailed: "failed", state.OutcomeCrashed: "crashed", state.OutcomeTimeout: "timed out",
		}[run.Outcome], fmt.Sprintf("ended with %q", text.Name(string(run.Outcome))))
		return Warning, strings.TrimSpace("The last probe run " + ended + ". " + run.Error)
	default:
		return "", ""
	}
}

// headlineOf returns a message, or its first sentence if it is long.
func headlineOf(message string) string {
	// A lower-case letter may follow an abbreviation.
	end := regexp.MustCompile(`\. \p{Lu}`).FindStringIndex(message)
	if end == nil || utf8.RuneCountInString(message) <= 120 {
		return message
	}
	return message[:end[0]+1]
}

func (d *Device) accepted() string {
	n := len(slices.DeleteFunc(slices.Clone(d.Findings), func(f Finding) bool { return f.Accepted == nil }))
	if n == 0 {
		return ""
	}
	return " Accepted: " + text.Plural(n, "finding") + "."
}

func (d *Device) gaps(now time.Time) (gaps string) {
	gaps = d.accepted()
	var skipped, old []string
	for _, p := range d.State.Probes() {
		if p.Status == state.StatusSkipped {
			skipped = append(skipped, p.Name)
		}
	}
	gaps += text.Around(" Could not be probed: ", strings.Join(skipped, ", "), ".")
	if reduced := d.State.Last.Reduced; reduced != nil {
		gaps += " Left alone for now: " + reduced.Detail + "."
	}
	for _, kind := range []state.Kind{state.KindContract, state.KindInventory, state.KindAsk} {
		if d.Stale(kind, now) {
			old = append(old, fmt.Sprintf("the %s run, started %s", kind, text.Ago(now, d.last(kind).Started)))
		}
	}
	return gaps + text.Around(" Out of date: ", strings.Join(old, ", and "), ".")
}

// Issue groups findings of one kind that need the same action, on one device or on several.
type Issue struct {
	Severity Severity `json:"severity"`
	Harm     Harm     `json:"harm"`
	// Kind is empty if no finding explains why the devices are unhealthy. Their headlines then do.
	Kind Kind `json:"kind,omitempty"`
	// Meaning, Action and Remedy are those of the findings.
	Meaning string `json:"meaning,omitempty"`
	Action  string `json:"action,omitempty"`
	Remedy  Remedy `json:"remedy,omitempty"`
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
			all = append(all, Issue{Severity: f.Severity, Harm: f.Harm, Kind: f.Kind, Meaning: f.Meaning, Action: f.Action, Remedy: f.Remedy})
		}
		is := &all[i]
		if ok && is.Places[0].Device != device && k.action != is.Action {
			is.For = devices[is.Places[0].Device].State.Name
		}
		is.Places = append(is.Places, Place{Device: device, Finding: finding})
	}
	for i, d := range devices {
		explained := false
		for n, f := range d.Findings {
			if f.Accepted == nil {
				add(i, n, &f)
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
	if device = text.Name(device); device == "" {
		return action
	}
	return strings.NewReplacer(text.Quoted(device), "\x00", device, "\x00").Replace(action)
}

// Problem is a problem of the host rather than of a device.
type Problem struct {
	Kind   ProblemKind `json:"kind"`
	Health Health      `json:"health"`
	// Message may contain words from outside.
	Message string `json:"message"`
	// Action says what to do.
	Action string `json:"action"`
	// Remedy is that of a finding.
	Remedy Remedy `json:"remedy"`
}

// ProblemKind is the kind of a problem.
type ProblemKind string

// The kinds of problem.
const (
	ProblemNotListed ProblemKind = "not_listed_yet"
	ProblemDiscovery ProblemKind = "discovery_failed"
	ProblemNoDevices ProblemKind = "no_devices"
	ProblemStart     ProblemKind = "cannot_start_children"
)

const findDevices = "See what the host has: `ls /sys/class/infiniband` and `rdma link`. " +
	"If a device is not listed, check that the adapter is there (`lspci`) and its driver loaded: `modprobe mlx5_ib`, or irdma, bnxt_re, efa and so on; `dmesg` says why the driver did not take the adapter. " +
	"If the host has devices and the exporter runs in a container, mount /sys and /dev/infiniband of the host. " +
	"If `rdma system show` says `netns exclusive`, move the device into the exporter's network namespace: `rdma dev set DEVICE netns NAME`. " +
	"`--device.include` and `--device.exclude` may exclude devices. "

func problemOf(s *state.Snapshot) *Problem {
	switch {
	case s == nil:
		return &Problem{
			Kind: ProblemNotListed, Health: Unknown, Remedy: RemedyNone,
			Message: "The RDMA devices have not been listed yet.",
			Action:  "Wait a few seconds after the start. If it persists, check the exporter's log.",
		}
	case s.DiscoveryError != "":
		return &Problem{
			Kind: ProblemDiscovery, Health: Critical, Remedy: RemedyExporter,
			Message: "The RDMA devices could not be listed: " + text.Clean(s.DiscoveryError),
			Action: "Check that the exporter's user can read the list: `ls -l /sys/class/infiniband`. " +
				"In a container, mount /sys of the host; if it is mounted elsewhere, set `--path.sysfs`. " +
				"Until then devices may show their old state, and some are missing.",
		}
	case s.StartError != "":
		return &Problem{
			Kind: ProblemStart, Health: Critical, Remedy: RemedyExporter,
			Message: "The exporter cannot start its child processes, so nothing is probed: " + text.Clean(s.StartError),
			Action: "The devices are not at fault. Raise what the exporter's unit or container may use: open files (`LimitNOFILE=`), processes (`TasksMax=`, `pids.max`) or memory. " +
				"For `no such file or directory`, mount /proc. Until then the devices show their old state.",
		}
	case len(s.Devices) > 0:
		return nil
	case s.Simulated():
		return &Problem{
			Kind: ProblemNoDevices, Health: Warning, Remedy: RemedyDriver,
			Message: "No simulated device was found.",
			Action:  "Check whether `--device.include` and `--device.exclude` exclude all of them, and what `--simulated.profile` describes.",
		}
	default:
		return &Problem{
			Kind: ProblemNoDevices, Health: Warning, Remedy: RemedyDriver,
			Message: "No RDMA device was found.",
			Action:  findDevices + "To try the exporter without a device: `--provider=simulated`.",
		}
	}
}

// unplugged reports whether the host has ports, and none of them is active.
func unplugged(s *state.Snapshot) bool {
	var all []state.Port
	for i := range s.Devices {
		all = append(all, lastPorts(&s.Devices[i])...)
	}
	return len(all) > 0 && !slices.ContainsFunc(all, isActive)
}

func lastPorts(d *state.DeviceState) []state.Port {
	if !d.Present {
		return nil
	}
	return d.Ports()
}
