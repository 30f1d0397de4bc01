package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kingpin/v2"
	versioncollector "github.com/prometheus/client_golang/prometheus/collectors/version"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/version"
	"golang.org/x/sys/unix"

	"rdma_exporter/collector"
	"rdma_exporter/internal/api"
	"rdma_exporter/internal/health"
	"rdma_exporter/internal/health/expect"
	"rdma_exporter/internal/input"
	"rdma_exporter/internal/saved"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/supervisor"
	"rdma_exporter/internal/terminal"
	"rdma_exporter/internal/text"
)

const (
	formatText       = "text"
	formatJSON       = "json"
	formatPrometheus = "prometheus"

	// exitFindings means that there are findings as severe as --fail-on, or worse.
	exitFindings = 1
	// exitNoAudit means that the devices could not be audited, or the report not be written.
	exitNoAudit = 2
)

func (o *options) addAudit(app *kingpin.Application) {
	audit := app.Command(commandAudit, "Audit the devices once, write a report, and exit: with status 1 if something is wrong.").
		HelpLong(`Audits the RDMA devices of this host once and writes a report: on each device it runs the probes, checks the contracts of the manual, and inventories the objects that the kernel tracks. It leaves nothing behind.

The exit status is 0 without findings as severe as --fail-on, 1 with such findings, and 2 if the devices could not be audited: the command line is wrong, there is no device, it was interrupted, or the report could not be written. See docs/audit.md.`)
	audit.Flag("format", "Format of the report: text, json (as at /api/v2/status) or prometheus (for the textfile collector of node_exporter).").
		Default(formatText).EnumVar(&o.format, formatText, formatJSON, formatPrometheus)
	audit.Flag("brief", "Write one line for each device, the worst first, and the verdict last.").BoolVar(&o.brief)
	audit.Flag("quick", "Check only what takes a moment, on all devices at once: a short probe run, the hardware and the inventory, but no contracts. By default what takes longer than 5s counts as hung. For the prolog of a job.").BoolVar(&o.quick)
	audit.Flag("expect-active-ports", "Ports that must be active, over all devices: fewer are a critical finding, as with expect in the configuration file. Default: at least one, if there are ports.").
		PlaceHolder("N").SetValue(wholeNumber(&o.activePorts))
	audit.Flag("write-expect", "Instead of a report, write what this host has now as the key expect of a configuration file, to this file, or to standard output if it is -. Refused, with exit status 2, if a device or a port is out of order.").
		PlaceHolder("FILE").StringVar(&o.writeExpect)
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

const (
	// quickTimeout limits each child of a quick audit in place of usualTimeout, the default of the flags,
	// and quickConcurrency the devices at once.
	quickTimeout     = 5 * time.Second
	usualTimeout     = 10 * time.Second
	quickConcurrency = 64
)

// auditsOnce reports whether a command audits the devices, for somebody who waits.
func auditsOnce(command string) bool { return command == commandAudit || command == commandVerdict }

// lastWords is how long writing the report may take after --within or a signal. lastWord is how
// long an error message may take then.
const (
	lastWords = time.Second
	lastWord  = 100 * time.Millisecond
)

// runAudit is the command audit. What does not return in time, such as a read from a file system
// that stalls, is left behind.
func runAudit(ctx context.Context, o *options, std stdio) int {
	bounded, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	defer giveUp()
	context.AfterFunc(ctx, func() { time.AfterFunc(lastWords, giveUp) })
	began := time.Now()
	if o.schedule.Within > 0 {
		time.AfterFunc(o.schedule.Within+lastWords, giveUp)
	}
	status, err := input.UnlessDone(bounded, func() (int, error) {
		status, err := audited(ctx, o, began, std)
		if err != nil {
			complain(std, err)
		}
		return status, nil
	})
	if err != nil {
		go complain(std, errors.New("interrupted or out of time: a file, the standard output or the standard error does not respond"))
		time.Sleep(lastWord)
		return exitNoAudit
	}
	return status
}

// audited audits the devices, writes the report, and returns the exit status. Without a device it
// returns an error.
func audited(ctx context.Context, o *options, began time.Time, std stdio) (status int, err error) {
	accept, err := accepted(o.accept)
	if err := errors.Join(o.check(), checkOutput("--output", o.output), checkLearning(o), err); err != nil {
		return exitNoAudit, err
	}
	if o.brief && o.format != formatText {
		return exitNoAudit, fmt.Errorf("--brief is for --format=%s, not for %s", formatText, o.format)
	}
	if o.activePorts < 0 {
		return exitNoAudit, fmt.Errorf("--expect-active-ports is %d: use a number from 0", o.activePorts)
	}
	if o.quick {
		s := &o.schedule
		s.Contract.Interval, s.Concurrency = 0, quickConcurrency
		for _, timeout := range []*time.Duration{&s.Timeout, &s.Inventory.Timeout, &s.Hardware.Timeout} {
			if *timeout == usualTimeout {
				*timeout = quickTimeout
			}
		}
	}
	config, _, err := o.supervise()
	if err != nil {
		return exitNoAudit, err
	}
	if config.Within > 0 {
		config.Within = max(config.Within-time.Since(began), supervisor.MinWithin)
	}
	if !o.quick {
		if _, err := o.path.schedule(ctx, &config, slog.New(slog.DiscardHandler)); err != nil {
			return exitNoAudit, err
		}
	}
	var past health.History
	if o.stateDir != "" {
		past, _ = saved.Read(o.stateDir) // An audit does without.
	}
	var s *supervisor.Supervisor
	findings := o.findings
	findings.Once, findings.Now = true, time.Now
	findings.Expect = append(findings.Expect, expect.Rule{Device: ".*", ActivePorts: &o.activePorts})
	findings.Memlock = ownMemlock()
	findings.Accept = append(findings.Accept, accept...)
	config.Links = past.Links
	config.Bandwidth.Past = func(device string) *state.BandwidthState { return past.Bandwidth[device] }
	evaluator := health.New(findings, past)
	metrics := collector.New(o.metrics(func() *health.Host { return evaluator.Evaluate(s.Snapshot()) }))
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
		fmt.Fprintln(std.err)
	}
	if errors.Is(err, context.Canceled) {
		return exitNoAudit, errors.New("interrupted: no report was written")
	} else if err != nil {
		return exitNoAudit, err
	}

	snapshot := s.Snapshot()
	if err := checkMatch(o, snapshot); err != nil {
		return exitNoAudit, err
	}
	host := evaluator.Evaluate(snapshot)
	if o.judge != nil {
		o.judge(host)
		return exitOK, nil
	}
	name, _ := os.Hostname() // Without a name, the report has none.
	now := time.Now()
	if o.writeExpect != "" {
		if err := learn(o, host, std); err != nil {
			return exitNoAudit, err
		}
		return exitOK, nil
	}
	bounded, cancel := context.WithTimeoutCause(ctx, fileTime, errStalls)
	defer cancel()
	times, err := input.UnlessDone(bounded, func() (hostTimes, error) {
		h := o.readHost()
		return h, h.err
	})
	if err != nil {
		complain(std, fmt.Errorf("--maintenance.file: %w", err))
	}
	found := api.New(host, api.Options{Now: now, Version: version.Version, Host: name, Maintenance: times.maintenance})
	if o.quick {
		found.NotChecked = []string{
			"contracts", "large sizes", "further queue pair types", "inline data", "notification on further ports and completion vectors",
		}
	}
	none := found.Problem != nil
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
	if err := write("--output", o.output, report, std); err != nil {
		return exitNoAudit, err
	}
	if none {
		return status, errors.New(found.Problem.Message)
	}
	return status, nil
}

// ownMemlock returns the limit that an audit has as jobs of the same parent have it. −1 means unlimited.
func ownMemlock() *int64 {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &limit); err != nil {
		return nil
	}
	if limit.Cur > math.MaxInt64 {
		return new(int64(-1))
	}
	return new(int64(limit.Cur))
}

// file returns a stream that is a file, or nil.
func file(stream any) *os.File {
	f, _ := stream.(*os.File)
	return f
}

// checkMatch returns an error if the host has devices and the flags exclude all of them.
func checkMatch(o *options, found *state.Snapshot) error {
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
		return nil // The flags are not the reason.
	}
	slices.Sort(names)
	return fmt.Errorf("--device and --device.exclude leave no device: the whole name must match, and there are %s", quotedList(names))
}

// quotedList joins the first names, in a form that does no harm to a terminal.
func quotedList(names []string) string {
	const limit = 20
	var quoted []string
	for _, name := range names {
		quoted = append(quoted, strconv.Quote(name))
	}
	return text.Join(quoted, ", ", limit)
}

// accepted returns what the flags accept, in addition to the configuration file.
func accepted(flags []string) (all []health.Accept, err error) {
	for _, f := range flags {
		kind, subject, _ := strings.Cut(f, "/")
		if !slices.Contains(health.AcceptableKinds(), health.Kind(kind)) {
			return nil, fmt.Errorf("--accept is %q: there is no finding %q; docs/reference/findings.md lists them", f, kind)
		}
		all = append(all, health.Accept{Finding: health.Kind(kind), Subject: subject, Reason: "--accept=" + f})
	}
	return all, nil
}

func rendered(o *options, std stdio, s *api.Status, status int, metrics *collector.Collector) ([]byte, error) {
	var b bytes.Buffer
	switch o.format {
	case formatJSON:
		e := json.NewEncoder(&b)
		e.SetIndent("", "  ")
		err := e.Encode(s)
		return b.Bytes(), err
	case formatPrometheus:
		err := expose(&b, metrics)
		return b.Bytes(), err
	}
	out := file(std.out)
	if o.output != "" {
		out = nil
	}
	write := terminal.Write
	if o.brief {
		write = terminal.WriteBrief
	}
	err := write(&b, s, terminal.End{Status: status, FailOn: o.failOn, Within: o.schedule.Within}, terminal.Detect(out, os.Getenv))
	return b.Bytes(), err
}

// expose writes the metrics of the devices and the version of the exporter. Those of this short
// process would collide with node_exporter's own.
func expose(b *bytes.Buffer, metrics *collector.Collector) error {
	gatherer, err := withDevices(versioncollector.NewCollector(programName), metrics)
	if err != nil {
		return err
	}
	families, err := gatherer.Gather()
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
