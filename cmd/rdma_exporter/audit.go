package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kingpin/v2"
	"github.com/prometheus/client_golang/prometheus"
	versioncollector "github.com/prometheus/client_golang/prometheus/collectors/version"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/version"

	"rdma_exporter/collector"
	"rdma_exporter/internal/api"
	"rdma_exporter/internal/health"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/supervisor"
	"rdma_exporter/internal/terminal"
	"rdma_exporter/internal/text"
)

// The formats of a report.
const (
	formatText       = "text"
	formatJSON       = "json"
	formatPrometheus = "prometheus"
)

// Exit statuses of the command audit.
const (
	// exitFindings: there are findings as severe as --fail-on says, or worse.
	exitFindings = 1
	// exitNoAudit: the devices could not be audited, or nobody be told.
	exitNoAudit = 2
)

// addAudit adds the command audit with the flags that only it has.
func (o *options) addAudit(app *kingpin.Application) {
	audit := app.Command(commandAudit, "Audit the devices once, write a report, and exit: with status 1 if something is wrong.").
		HelpLong(`Audits the RDMA devices of this host once and writes a report: on each device it runs the probes, checks the contracts of the manual, and inventories the objects that the kernel tracks. It leaves nothing behind.

The exit status is 0 without findings as severe as --fail-on, 1 with such findings, and 2 if the devices could not be audited: the command line is wrong, there is no device, it was interrupted, or the report could not be written. See docs/audit.md.`)
	audit.Flag("format", "Format of the report: text, json (as at /api/v2/status) or prometheus (for the textfile collector of node_exporter).").
		Default(formatText).EnumVar(&o.format, formatText, formatJSON, formatPrometheus)
	audit.Flag("brief", "Write one line for each device, the worst first, and the verdict last.").BoolVar(&o.brief)
	audit.Flag("expect-active-ports", "Ports that must be active, over all devices: with fewer, the exit status is 1 whatever else is found. Default: at least one, if there are ports.").
		PlaceHolder("N").SetValue(wholeNumber(&o.activePorts))
	audit.Flag("within", "Time limit for the whole audit, such as 30s; 0 for none. The report says what was not audited in time.").
		Default("0s").DurationVar(&o.schedule.Within)
	audit.Flag("output", "Write the report to this file, which is replaced once the report is complete. Default: standard output.").
		PlaceHolder("FILE").StringVar(&o.output)
	audit.Flag("fail-on", "Least severe finding that makes the exit status 1: warning or critical.").
		Default(string(health.SeverityWarning)).EnumVar(&o.failOn, string(health.SeverityWarning), string(health.SeverityCritical))
	audit.Flag("accept", "Accept a finding, so that it does not affect the exit status, such as contract_violated/qp_reports_actual: a kind of finding, and after a slash its subject; without that all of the kind. May be repeated. The key accept of the configuration file does the same, with a reason, by device and until a day.").
		PlaceHolder("FINDING").StringsVar(&o.accept)
	audit.Flag("device", "Audit only the devices whose whole name matches this regular expression. Default: all.").
		PlaceHolder("REGEX").RegexpVar(&o.include)
}

// errInterrupted is that of an audit that was ended by a signal, and errNotBegun that of
// one whose time was up before it could ask for anything.
var (
	errInterrupted = errors.New("interrupted: there is no report")
	errNotBegun    = errors.New("nothing was audited in time: a file that the command line names, or the folder of --output, cannot be read")
)

// lastWords is how long those who are to take the report and messages may take beyond
// --within, all together, and lastWord what each of them has even so.
const (
	lastWords = time.Second
	lastWord  = 100 * time.Millisecond
)

// timeLimit is when an audit has to be over; zero for no limit.
type timeLimit time.Time

// context returns one that is done when the audit has to be over, and more has passed.
func (l timeLimit) context(ctx context.Context, more time.Duration) (context.Context, context.CancelFunc) {
	if time.Time(l).IsZero() {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, max(time.Until(time.Time(l).Add(more)), lastWord))
}

// tell has something written that nobody need ever read.
func (l timeLimit) tell(write func()) {
	ctx, cancel := l.context(context.Background(), lastWords)
	defer cancel()
	// An error is that nobody reads it.
	_, _ = unlessDone(ctx, func() (struct{}, error) {
		write()
		return struct{}{}, nil
	})
}

// runAudit is the command audit.
func runAudit(ctx context.Context, o *options, std stdio) int {
	var limit timeLimit
	if o.schedule.Within > 0 {
		limit = timeLimit(time.Now().Add(o.schedule.Within))
	}
	status, err := audited(ctx, o, limit, std)
	if err != nil {
		limit.tell(func() { complain(std, err) })
	}
	return status
}

// begun checks what the command line asks for, and returns what the supervisor and the Judge
// need.
func (o *options) begun(ctx context.Context) (config supervisor.Config, past health.History, err error) {
	if _, err := unlessDone(ctx, func() (struct{}, error) { return struct{}{}, checkOutput(o.output) }); err != nil {
		return config, past, err
	}
	if o.brief && o.format != formatText {
		return config, past, fmt.Errorf("--brief is for --format=%s, not for %s", formatText, o.format)
	}
	if o.activePorts < 0 {
		return config, past, fmt.Errorf("--expect-active-ports is %d: use a number from 0", o.activePorts)
	}
	if err := checkAccepted(o.accept); err != nil {
		return config, past, err
	}
	if config, err = supervised(ctx, o); err != nil {
		return config, past, err
	}
	return config, o.pastOnce(ctx), nil
}

// audited audits the devices, writes the report, and returns the exit status. It is an
// error if that could not be done, or there was nothing to audit.
func audited(ctx context.Context, o *options, limit timeLimit, std stdio) (status int, err error) {
	if err := o.check(); err != nil {
		return exitNoAudit, err
	}
	o.retired.warn(std.ignored)
	timely, cancel := limit.context(ctx, 0)
	defer cancel()
	config, past, err := o.begun(timely)
	switch {
	case errors.Is(err, context.Canceled):
		return exitNoAudit, errInterrupted
	case errors.Is(err, context.DeadlineExceeded):
		return exitNoAudit, errNotBegun
	case err != nil:
		return exitNoAudit, err
	}
	if !time.Time(limit).IsZero() {
		config.Within = max(time.Until(time.Time(limit)), supervisor.MinWithin)
	}
	var s *supervisor.Supervisor
	judgement := o.findings
	judgement.Once, judgement.Now, judgement.ActivePorts = true, time.Now, o.activePorts
	judgement.Accept = append(judgement.Accept, accepted(o.accept)...)
	config.Links = past.Links
	judge := health.New(judgement, past)
	metrics := collector.New(o.metrics(func() *health.Host { return judge.Evaluate(s.Snapshot()) }))
	config.Observers = append(config.Observers, metrics)
	progress := terminal.Detect(file(std.err), os.Getenv)
	if progress.Terminal {
		config.Observers = append(config.Observers, terminal.NewProgress(std.err, progress, func() int { return len(s.Snapshot().Devices) }))
	}
	if s, err = supervisor.New(config); err != nil {
		return exitNoAudit, err
	}
	err = s.RunOnce(ctx)
	if progress.Terminal {
		limit.tell(func() { fmt.Fprintln(std.err) })
	}
	if errors.Is(err, context.Canceled) {
		return exitNoAudit, errInterrupted
	} else if err != nil {
		return exitNoAudit, err
	}

	snapshot := s.Snapshot()
	if _, err := unlessDone(timely, func() (struct{}, error) { return struct{}{}, matching(o, snapshot) }); err != nil && timely.Err() == nil {
		return exitNoAudit, err
	}
	host := judge.Evaluate(snapshot)
	name, _ := os.Hostname() // Without a name, the report has none.
	now := time.Now()
	found := api.New(host, api.Options{Now: now, Version: version.Version, Host: name})
	none := found.Problem != nil && found.Problem.Kind != health.ProblemPorts
	switch {
	case none:
		status = exitNoAudit
	case host.Fails(health.Severity(o.failOn), now):
		status = exitFindings
	}
	report, err := rendered(o, std, found, status, metrics)
	if err != nil {
		return exitNoAudit, err
	}
	last, cancelLast := limit.context(ctx, lastWords)
	defer cancelLast()
	if err := write(last, o.output, report, std); err != nil {
		return exitNoAudit, err
	}
	if none {
		return status, errors.New(found.Problem.Message)
	}
	return status, nil
}

// file returns the file that a stream is; nil if it is none.
func file(stream any) *os.File {
	f, _ := stream.(*os.File)
	return f
}

// matching returns an error if the host has devices and the flags leave all of them
// out.
func matching(o *options, found *state.Snapshot) error {
	if len(found.Devices) > 0 || found.DiscoveryError != "" || o.include == nil && o.exclude == nil {
		return nil
	}
	all := *o
	all.include, all.exclude = nil, nil
	discover, _, err := discoverer(&all)
	if err != nil {
		return err
	}
	names, err := discover()
	if err != nil || len(names) == 0 {
		return nil // for which the flags are not to blame
	}
	slices.Sort(names)
	return fmt.Errorf("--device and --device.exclude leave no device: the whole name must match, and there are %s", quotedList(names))
}

// quotedList joins names as a terminal can show them.
func quotedList(names []string) string {
	const most = 20
	var quoted []string
	for _, name := range names {
		quoted = append(quoted, fmt.Sprintf("%q", name))
	}
	return text.Join(quoted, ", ", most)
}

// pastOnce returns what a running exporter has kept of earlier findings, if there is one
// that does; it is left as it is. Whatever is wrong with it, an audit does without.
func (o *options) pastOnce(ctx context.Context) health.History {
	if o.stateDir == "" {
		return health.History{}
	}
	most := fileTime
	if o.schedule.Within > 0 {
		most = min(most, o.schedule.Within/4) // so that there is time for the devices
	}
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	past, _ := unlessDone(ctx, func() (health.History, error) { return readState(o.stateDir) })
	return past
}

// accepted returns what the flags accept, beside the configuration file.
func accepted(flags []string) []health.Accept {
	var all []health.Accept
	for _, f := range flags {
		kind, subject, _ := strings.Cut(f, "/")
		all = append(all, health.Accept{Finding: health.Kind(kind), Subject: subject, Reason: "--accept=" + f})
	}
	return all
}

// checkAccepted returns an error if something is to be accepted that no finding can be.
func checkAccepted(accepted []string) error {
	for _, a := range accepted {
		kind, _, _ := strings.Cut(a, "/")
		if !slices.Contains(health.AcceptableKinds(), health.Kind(kind)) {
			return fmt.Errorf("--accept is %q: there is no finding %q; docs/reference/findings.md lists them", a, kind)
		}
	}
	return nil
}

// rendered returns the report in the format that was asked for.
func rendered(o *options, std stdio, s *api.Status, status int, metrics *collector.Collector) ([]byte, error) {
	var b bytes.Buffer
	switch o.format {
	case formatJSON:
		e := json.NewEncoder(&b)
		e.SetIndent("", "  ")
		if err := e.Encode(s); err != nil {
			return nil, fmt.Errorf("encode the report: %w", err)
		}
	case formatPrometheus:
		if err := expose(&b, metrics); err != nil {
			return nil, err
		}
	default:
		screen := terminal.Detect(file(std.out), os.Getenv)
		if o.output != "" {
			screen = terminal.Detect(nil, os.Getenv)
		}
		write := terminal.Write
		if o.brief {
			write = terminal.WriteBrief
		}
		if err := write(&b, s, terminal.End{Status: status, FailOn: o.failOn, Within: o.schedule.Within}, screen); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}

// expose writes the metrics of the devices, and which exporter it was, as text. It
// leaves out those of this process, which has no past, and of whose names
// node_exporter has its own.
func expose(b *bytes.Buffer, metrics *collector.Collector) error {
	registry := prometheus.NewRegistry()
	if err := registry.Register(versioncollector.NewCollector(programName)); err != nil {
		return fmt.Errorf("register the exporter's own metrics: %w", err)
	}
	if err := registry.Register(metrics); err != nil {
		return fmt.Errorf("register the metrics of the devices: %w", err)
	}
	families, err := registry.Gather()
	if err != nil {
		return fmt.Errorf("gather the metrics: %w", err)
	}
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(b, f); err != nil {
			return fmt.Errorf("write the metric %s: %w", f.GetName(), err)
		}
	}
	return nil
}
