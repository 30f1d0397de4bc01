package main

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kingpin/v2"
	"github.com/prometheus/common/promslog"
	promslogflag "github.com/prometheus/common/promslog/flag"
	"github.com/prometheus/common/version"
	toolkit "github.com/prometheus/exporter-toolkit/web"
	"github.com/prometheus/exporter-toolkit/web/kingpinflag"

	"rdma_exporter/internal/health"
	"rdma_exporter/internal/inventory"
	"rdma_exporter/internal/path"
	"rdma_exporter/internal/probe"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/supervisor"
	"rdma_exporter/internal/web"
)

const (
	programName    = "rdma_exporter"
	defaultAddress = ":10879"

	commandServe       = "serve"
	commandAudit       = "audit"
	commandHealthcheck = "healthcheck"
	commandVerdict     = "verdict"
	commandCeiling     = "ceiling"
	commandBandwidth   = "bandwidth"
	commandAsk         = "ask"
	commandAnswer      = "answer"
	commandPath        = "path"

	providerLibibverbs = "libibverbs"
	providerSimulated  = "simulated"

	whenAlways = "always"
	whenIdle   = "idle"

	// backoffIntervals limits the pause after failed runs, in intervals of the probes.
	backoffIntervals = 5
)

type options struct {
	command string

	schedule  supervisor.Config
	probe     probe.Config
	inventory inventory.Config
	hardware  hardwareSettings
	findings  health.Config
	web       web.Config

	collectors       switches
	configFile       string
	stateDir         string
	maintenanceFile  string
	provider         string
	simulatedProfile string
	include, exclude *regexp.Regexp
	when             string

	listen                 *toolkit.FlagConfig
	disableExporterMetrics bool
	log                    *promslog.Config
	retired                retired

	// The rest are flags of single commands.
	device                 string
	format, output, failOn string
	accept                 []string
	brief, quick           bool
	activePorts            int
	writeExpect            string

	// judge replaces the report of an audit.
	judge   func(*health.Host)
	health  healthFlags
	verdict verdictFlags
	ceiling ceilingFlags
	path    pathFlags

	bandwidth struct{ yes, anyway, json bool }
}

func newOptions() *options {
	return &options{
		schedule: supervisor.DefaultConfig(), probe: probe.DefaultConfig(), inventory: inventory.DefaultConfig(), findings: health.Default(),
		hardware: hardwareSettings{Sysfs: "/sys"},
		provider: providerLibibverbs, log: &promslog.Config{}, path: pathFlags{config: path.DefaultConfig()},
	}
}

// parse parses the command line. If done, it has shown help, the version or an error, and the
// program must end with the status.
func parse(args []string, std stdio) (o *options, done bool, status int) {
	o = newOptions()
	if isChild(args) {
		o.command, o.device = args[0], strings.TrimPrefix(strings.Join(args[1:], ""), deviceFlag)
		return o, false, exitOK
	}
	app := kingpin.New(programName, "Prometheus exporter and resource auditor for RDMA devices: creates small verbs objects on each device, in a short-lived child process, and serves what it got, how long it took and what failed.")
	// kingpin shows help and version while it parses, and goes on.
	app.Terminate(func(code int) { done, status = true, code })
	app.UsageWriter(std.out)
	app.ErrorWriter(std.err)
	app.UsageTemplate(usageTemplate)
	app.Version(version.Print(programName))
	app.HelpFlag.Short('h')

	man := slices.Contains(args, manFlag)
	if man {
		args = nil
	}
	args = withCommand(args)
	switch name := commandOf(args); name {
	case commandHealthcheck: // It has no devices.
	case commandCeiling, commandBandwidth:
		o.addHost(app)
	case commandPath:
		o.addConfigFile(app)
		o.addHost(app)
	default:
		o.addFlags(app, std, auditsOnce(name))
	}
	o.addCommands(app)
	if man {
		if err := writeManPage(app); err != nil {
			complain(std, fmt.Errorf("write the manual page: %w", err))
			return nil, true, exitFailed
		}
		return nil, true, exitOK
	}
	command, err := app.Parse(args)
	if done {
		return nil, true, status
	}
	if err != nil {
		complain(std, fmt.Errorf("%s%w, try --help", culprit(app, args, err), err))
		return nil, true, exitUsage
	}
	o.command = command
	s := &o.schedule
	s.Backoff, s.Hardware.Timeout = min(s.Backoff, backoffIntervals*s.Interval), s.Inventory.Timeout
	if o.collectors.on != nil {
		if err := o.choose(); err != nil {
			complain(std, err)
			return nil, true, exitUsage
		}
	}
	return o, false, exitOK
}

// deviceFlag is the flag of a child.
const deviceFlag = "--device="

// isChild reports whether arguments are those that the exporter gives a child. A child starts every
// few seconds, and saves the time of kingpin.
func isChild(args []string) bool {
	switch len(args) {
	case 1:
		return args[0] == string(state.KindHardware)
	case 2:
		kinds := append(state.Kinds(), state.KindBandwidth, state.KindAsk, commandAnswer)
		return strings.HasPrefix(args[1], deviceFlag) && slices.Contains(kinds, state.Kind(args[0]))
	default:
		return false
	}
}

// withCommand returns arguments that begin with a command. kingpin's own default command would hide
// errors of the flags before it, and its command help would show the flags of another one.
func withCommand(args []string) []string {
	if len(args) > 0 && args[0] == "help" {
		args = append(slices.Clone(args[1:]), "--help")
	}
	if len(args) == 0 || strings.HasPrefix(args[0], "-") && args[0] != completionFlag {
		args = append([]string{commandServe}, args...)
	}
	return args
}

// completionFlag is the flag of kingpin by which a shell asks for completions. The words so far
// follow.
const completionFlag = "--completion-bash"

// commandOf returns the first word of the arguments, or of those to complete.
func commandOf(args []string) string {
	if args[0] == completionFlag && len(args) > 1 {
		return args[1]
	}
	return args[0]
}

// addCommands adds the commands and their own flags. The commands of children are not among them: see isChild.
func (o *options) addCommands(app *kingpin.Application) {
	app.Command(commandServe, "Probe the devices continuously, and serve the metrics. The default command.")
	o.addAudit(app)
	o.health.add(app)
	o.verdict.add(app)
	o.ceiling.add(app)
	o.addPath(app)
	o.addBandwidth(app)
}

// addFlags adds the common flags of the commands serve and audit. If once, it leaves out those of a
// schedule and a server.
func (o *options) addFlags(app *kingpin.Application, std stdio, once bool) {
	stateDirHelp := "Directory that keeps the start of findings over restarts. Default: that of the service, or none."
	if once {
		stateDirHelp = "State directory of a running exporter, read to show since when there have been findings. Never written."
	}
	o.addConfigFile(app)
	app.Flag("state.dir", stateDirHelp).Envar("STATE_DIRECTORY").PlaceHolder("DIR").StringVar(&o.stateDir)

	app.Flag("maintenance.file", "File with the time until which this host is under maintenance, such as 2026-01-31T12:00:00Z, and after a space the reason. It is read every 5s; without it there is none.").
		PlaceHolder("FILE").StringVar(&o.maintenanceFile)
	if !once {
		app.Flag("device.include", "Probe only the devices whose whole name matches this regular expression.").
			PlaceHolder("REGEX").RegexpVar(&o.include)
	}
	app.Flag("device.exclude", "Do not probe the devices whose whole name matches this regular expression.").
		PlaceHolder("REGEX").RegexpVar(&o.exclude)
	o.addHost(app)
	o.addRuns(app, once)
	o.collectors.add(app)
	o.path.add(app, once)
	if once {
		return
	}

	o.listen = kingpinflag.AddFlags(app, defaultAddress)
	app.Flag("web.telemetry-path", "Path of the metrics.").
		Default(web.DefaultMetricsPath).StringVar(&o.web.MetricsPath)
	app.Flag("web.disable-exporter-metrics", "Leave out the exporter's own metrics (go_*, process_*, promhttp_*).").
		BoolVar(&o.disableExporterMetrics)

	promslogflag.AddFlags(app, o.log)
	o.log.Writer = std.err
}

func (o *options) addConfigFile(app *kingpin.Application) {
	app.Flag("config.file", "YAML file with the sizes to probe, the thresholds of findings, what is accepted, and how paths are tested. See docs/reference/configuration.md.").
		PlaceHolder("FILE").StringVar(&o.configFile)
}

// addRuns adds the flags of intervals, time limits and extent.
func (o *options) addRuns(app *kingpin.Application, once bool) {
	s, notification := &o.schedule, &o.probe.Notification
	if !once {
		app.Flag("probe.interval", "Time between two probe runs on one device.").
			Default(duration(s.Interval)).DurationVar(&s.Interval)
		app.Flag("probe.full-interval", "Time between two full probe runs on one device, which try all sizes, types, vectors and ports; those between are short.").
			Default(duration(s.FullInterval)).DurationVar(&s.FullInterval)
	}
	app.Flag("probe.when", "When to probe a device in full: always, or idle, while no other program holds queue pairs on it; otherwise it gets one small completion queue and queue pair, and its contracts wait.").
		Default(whenAlways).EnumVar(&o.when, whenAlways, whenIdle)
	app.Flag("probe.timeout", "Time limit for a probe run, after which its process is killed.").
		Default(duration(s.Timeout)).DurationVar(&s.Timeout)
	app.Flag("probe.concurrency", "Maximum number of devices to probe or check concurrently.").
		Default(strconv.Itoa(s.Concurrency)).SetValue(wholeNumber(&s.Concurrency))
	app.Flag("notification.samples", "Samples for each measurement of completion notification; 0 to skip it.").
		Default(strconv.Itoa(notification.Samples)).SetValue(wholeNumber(&notification.Samples))
	app.Flag("notification.vectors", "Completion vectors of a device to use, spread evenly over all; 512 for all.").
		Default(strconv.Itoa(notification.Vectors.Most)).SetValue(wholeNumber(&notification.Vectors.Most))
	if !once {
		app.Flag("contract.interval", "Time between two contract runs of one device; 0 for none. The first follows the device's first run, and one starts at once when the device or its software changes.").
			Default(duration(s.Contract.Interval)).IsSetByUser(&o.collectors.contract).DurationVar(&s.Contract.Interval)
	}
	app.Flag("contract.timeout", "Time limit for each process of a contract run. It is then killed, and a new process checks the remaining contracts.").
		Default(duration(s.Contract.Timeout)).DurationVar(&s.Contract.Timeout)
	if !once {
		app.Flag("inventory.interval", "Time between two inventories of one device, of the objects that the kernel tracks for all processes; 0 for none.").
			Default(duration(s.Inventory.Interval)).IsSetByUser(&o.collectors.inventory).DurationVar(&s.Inventory.Interval)
		app.Flag("hardware.interval", "Time between two readings of the hardware from the kernel, without opening devices: counters, links, addresses, interrupts; 0 for none.").
			Default(duration(s.Hardware.Interval)).IsSetByUser(&o.collectors.hardware).DurationVar(&s.Hardware.Interval)
		app.Flag("bandwidth.schedule", "Time between two measurements of how fast a device reaches the memory of each NUMA node; 0 for none. A measurement uses all bandwidth of the device for some seconds. It starts only while no other program holds queue pairs on the device. See docs/bandwidth.md.").
			Default("0s").DurationVar(&s.Bandwidth.Interval)
	}
	app.Flag("inventory.timeout", "Time limit for an inventory, and for reading the hardware of all devices, after which the process is killed; what was not read within four fifths of it is missing.").
		Default(duration(s.Inventory.Timeout)).DurationVar(&s.Inventory.Timeout)
}

// addHost adds the flags that say where the devices are, and the retired ones.
func (o *options) addHost(app *kingpin.Application) {
	app.Flag("path.sysfs", "Where sysfs is mounted.").
		Default(o.hardware.Sysfs).StringVar(&o.hardware.Sysfs)
	app.Flag("provider", "Source of the devices: libibverbs (those of this host) or simulated.").
		Default(providerLibibverbs).EnumVar(&o.provider, providerLibibverbs, providerSimulated)
	app.Flag("simulated.profile", "YAML file that describes the simulated devices. Default: three built-in ones.").
		PlaceHolder("FILE").StringVar(&o.simulatedProfile)
	o.retired = addRetired(app)
}

// culprit returns the flag whose value made parsing fail with err, or "". kingpin does not name it.
func culprit(app *kingpin.Application, args []string, err error) string {
	context, _ := app.ParseContext(args)
	if context == nil {
		return ""
	}
	for _, e := range context.Elements {
		flag, ok := e.Clause.(*kingpin.FlagClause)
		if !ok || e.Value == nil {
			continue
		}
		model := flag.Model()
		if again := model.Value.Set(*e.Value); again != nil && again.Error() == err.Error() {
			return "--" + model.Name + ": "
		}
	}
	return ""
}

// wholeNumber is the value of a flag. kingpin's own takes 1.5 for 1.
func wholeNumber(to *int) kingpin.Value { return number{to} }

type number struct{ to *int }

// Set implements kingpin.Value.
func (n number) Set(s string) (err error) {
	if *n.to, err = strconv.Atoi(s); err != nil {
		return fmt.Errorf("%q is not a whole number, or too large", s)
	}
	return nil
}

// String implements kingpin.Value.
func (n number) String() string { return strconv.Itoa(*n.to) }

// duration formats a duration without zeros at its end, such as 24h.
func duration(d time.Duration) string {
	return regexp.MustCompile(`([hm])(0m)?0s$`).ReplaceAllString(d.String(), "$1")
}

// check returns an error that names each flag whose value cannot be used.
func (o *options) check() error {
	return errors.Join(o.schedule.Check(), o.probe.Notification.Validate())
}

// checkTime returns an error if destroying objects could take all the time of a run.
func (o *options) checkTime() error {
	var errs []error
	for flag, run := range map[string]supervisor.Schedule{"probe.timeout": o.schedule.Schedule, "contract.timeout": o.schedule.Contract} {
		if run.Interval > 0 && o.probe.DestroyTimeout >= run.Timeout {
			errs = append(errs, fmt.Errorf("--%s %s leaves no time for probe.destroy_timeout %s: make one longer or the other shorter", flag, run.Timeout, o.probe.DestroyTimeout))
		}
	}
	return errors.Join(errs...)
}

// usageTemplate shows the usage of the command. The usage of serve, which needs no name, is
// that of the program.
const usageTemplate = `{{$command := .Context.SelectedCommand -}}
{{if and $command (ne $command.Name "serve") -}}
usage: {{.App.Name}} {{$command.Name}} [<flags>]

{{or $command.HelpLong $command.Help|Wrap 0}}
{{else -}}
usage: {{.App.Name}} [<command>] [<flags>]

{{.App.Help|Wrap 0}}
Commands, with --help for what each of them does:
{{range .App.Commands}}{{if not (or .Hidden (eq .Name "help")) -}}
{{"  "}}{{.Name}}
{{.Help|Wrap 6}}{{end}}{{end}}
{{end}}Flags:
{{.Context.Flags|FlagsToTwoColumns|FormatTwoColumns}}`
