package main

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"time"

	"github.com/alecthomas/kingpin/v2"
	"github.com/prometheus/common/promslog"
	promslogflag "github.com/prometheus/common/promslog/flag"
	"github.com/prometheus/common/version"
	toolkit "github.com/prometheus/exporter-toolkit/web"
	"github.com/prometheus/exporter-toolkit/web/kingpinflag"

	"rdma_exporter/internal/health"
	"rdma_exporter/internal/inventory"
	"rdma_exporter/internal/probe"
	"rdma_exporter/internal/probe/session"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/supervisor"
	"rdma_exporter/internal/web"
)

const (
	programName    = "rdma_exporter"
	defaultAddress = ":10879"

	commandServe     = "serve"
	commandAudit     = "audit"
	commandProbe     = "probe"
	commandContract  = "contract"
	commandInventory = "inventory"
	commandHardware  = "hardware"

	commandHealthcheck = "healthcheck"
	commandCeiling     = "ceiling"
	// commandClimb is the child of the command ceiling.
	commandClimb = "climb"

	providerLibibverbs = "libibverbs"
	providerSimulated  = "simulated"

	whenAlways = "always"
	whenIdle   = "idle"
)

// options are the command line: the configuration of each room, set by flags, and what
// is the business of the commands themselves.
type options struct {
	command string

	schedule  supervisor.Config
	probe     probe.Config
	inventory inventory.Config
	hardware  hardwareSettings
	findings  health.Config
	web       web.Config

	collectors switches
	configFile string
	// stateDir is where what is remembered is kept over a restart; empty for nowhere.
	stateDir         string
	provider         string
	simulatedProfile string
	include, exclude *regexp.Regexp
	// countersInclude matches the counters that the collector raw-counters has.
	countersInclude *regexp.Regexp
	// when is when a device is probed in full.
	when string

	listen                 *toolkit.FlagConfig
	disableExporterMetrics bool
	// lifecycle is whether the configuration file can be reloaded over HTTP.
	lifecycle bool
	log       *promslog.Config

	// device is that of the commands for one device.
	device string

	// format, output, failOn and accept are of the command audit.
	format, output, failOn string
	accept                 []string
	brief                  bool
	activePorts            int

	health  healthcheck
	ceiling ceilingFlags
}

// newOptions returns options with the defaults of each room.
func newOptions() *options {
	return &options{
		schedule: supervisor.DefaultConfig(), probe: probe.DefaultConfig(), inventory: inventory.DefaultConfig(), findings: health.Default(),
		hardware: hardwareSettings{Sysfs: "/sys"},
		provider: providerLibibverbs, log: &promslog.Config{},
	}
}

// parse parses the command line. With done, there is nothing left to do but to
// end with status: help or the version was shown, or an error.
func parse(args []string, std stdio) (o *options, done bool, status int) {
	o = newOptions()
	if isChild(args) {
		o.command, o.device = args[0], strings.TrimPrefix(strings.Join(args[1:], ""), deviceFlag)
		return o, false, exitOK
	}
	app := kingpin.New(programName, "Prometheus exporter and resource auditor for RDMA devices: creates small verbs objects on each device, in a short-lived child process, and serves what it got, how long it took and what failed.")
	// kingpin shows help and version in the middle of parsing, and goes on.
	app.Terminate(func(code int) { done, status = true, code })
	app.UsageWriter(std.out)
	app.ErrorWriter(std.err)
	app.UsageTemplate(usageTemplate)
	app.UsageFuncs(template.FuncMap{"Grouped": groupFlags, "CommandsToTwoColumns": listCommands})
	app.Version(version.Print(programName))
	app.HelpFlag.Short('h')

	man := slices.Contains(args, manFlag)
	if man {
		args = nil
	}
	args = withCommand(args)
	switch name := commandOf(args); name {
	case commandHealthcheck: // which has no use for devices
	case commandCeiling:
		o.addHost(app)
	default:
		// What is done once has no schedule, and serves nothing.
		o.addFlags(app, std, name == commandAudit)
	}
	o.addCommands(app)
	if man {
		return nil, true, writeManPage(std, app.Model())
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
	if o.collectors.on != nil {
		if err := o.choose(); err != nil {
			fmt.Fprintf(std.err, "%s: error: %v\n", programName, err)
			return nil, true, exitUsage
		}
	}
	return o, false, exitOK
}

// deviceFlag is the flag of a child.
const deviceFlag = "--device="

// isChild reports whether arguments are those of a child, as the exporter gives them. A
// child is started every few seconds: what it does not need costs it time.
func isChild(args []string) bool {
	if len(args) == 1 {
		return args[0] == commandHardware
	}
	return len(args) == 2 && strings.HasPrefix(args[1], deviceFlag) &&
		(args[0] == commandClimb || slices.Contains(state.Kinds(), state.Kind(args[0])))
}

// withCommand returns arguments that begin with a command. kingpin's own default
// command would swallow errors of the flags before it, and its command help would
// show the flags of another one.
func withCommand(args []string) []string {
	if len(args) > 0 && args[0] == "help" {
		args = append(slices.Clone(args[1:]), "--help")
	}
	if len(args) == 0 || strings.HasPrefix(args[0], "-") && args[0] != completionFlag {
		args = append([]string{commandServe}, args...)
	}
	return args
}

// completionFlag is the flag of kingpin with which a shell asks what may come next.
// The words that were typed so far follow, and they may have no command yet.
const completionFlag = "--completion-bash"

// commandOf returns the command that arguments begin with, or those that are being
// typed.
func commandOf(args []string) string {
	if args[0] == completionFlag && len(args) > 1 {
		return args[1]
	}
	return args[0]
}

// addCommands adds the commands, with the flags that only they have.
func (o *options) addCommands(app *kingpin.Application) {
	app.Command(commandServe, "Probe the devices continuously, and serve the metrics. The default command.")
	o.addAudit(app)
	o.health.add(app)
	o.ceiling.add(app)
	for _, c := range []struct{ name, help string }{
		{commandProbe, "Probe one device once and write a report; the exporter's child process for runs of the probes."},
		{commandContract, "Check the contracts of one device once and write a report; the exporter's child process for contract runs."},
		{commandClimb, "Climb to the ceiling of one device; the child process of the command ceiling."},
		{commandInventory, "Inventory the objects that the kernel tracks on one device once and write a report; the exporter's child process for inventories."},
	} {
		app.Command(c.name, c.help).Hidden().
			Flag("device", "Name of the device.").Required().StringVar(&o.device)
	}
	app.Command(commandHardware, "Read the hardware of all devices from the kernel once and write a report; the exporter's child process for readings.").Hidden()
}

// addFlags adds the flags of all commands or, if all is done once, of the command
// audit.
func (o *options) addFlags(app *kingpin.Application, std stdio, once bool) {
	app.Flag("config.file", "YAML file with the sizes to probe, the thresholds of findings, and what is accepted. See docs/reference/configuration.md.").
		PlaceHolder("FILE").StringVar(&o.configFile)

	app.Flag("state.dir", stateDirHelp(once)).
		Envar("STATE_DIRECTORY").PlaceHolder("DIR").StringVar(&o.stateDir)
	o.collectors.add(app)
	app.Flag("counters.include", "Counters of the collector raw-counters: those whose whole name matches this regular expression. Default: all.").
		PlaceHolder("REGEX").RegexpVar(&o.countersInclude)

	if !once {
		app.Flag("device.include", "Probe only the devices whose whole name matches this regular expression.").
			PlaceHolder("REGEX").RegexpVar(&o.include)
	}
	app.Flag("device.exclude", "Do not probe the devices whose whole name matches this regular expression.").
		PlaceHolder("REGEX").RegexpVar(&o.exclude)
	if !once {
		app.Flag("discovery.interval", "How often to look for new and vanished devices.").
			Default(duration(o.schedule.Discovery)).DurationVar(&o.schedule.Discovery)
	}
	o.addHost(app)

	if !once {
		app.Flag("probe.interval", "Time between two runs of the probes on one device.").
			Default(duration(o.schedule.Interval)).DurationVar(&o.schedule.Interval)
	}
	app.Flag("probe.when", "When to probe a device in full: always, or idle, while no other program holds queue pairs on it; otherwise it gets one small completion queue and queue pair, and its contracts wait.").
		Default(whenAlways).EnumVar(&o.when, whenAlways, whenIdle)
	app.Flag("probe.timeout", "Time limit for a run, after which its process is killed.").
		Default(duration(o.schedule.Timeout)).DurationVar(&o.schedule.Timeout)
	app.Flag("probe.concurrency", "Most devices probed, or checked for contracts, at the same time.").
		Default(strconv.Itoa(o.schedule.Concurrency)).SetValue(wholeNumber(&o.schedule.Concurrency))
	if !once {
		app.Flag("probe.jitter", "How early or late a run may start at most, as a fraction of the interval.").
			Default(fmt.Sprint(o.schedule.Jitter)).Float64Var(&o.schedule.Jitter)
		app.Flag("probe.max-backoff", "Longest pause after failed runs; the pause doubles with each failure up to this.").
			Default(duration(o.schedule.Backoff)).DurationVar(&o.schedule.Backoff)
	}

	notification := &o.probe.Notification
	app.Flag("notification.samples", "Samples for each measurement of completion notification; 0 to skip it.").
		Default(strconv.Itoa(notification.Samples)).SetValue(wholeNumber(&notification.Samples))
	app.Flag("notification.vectors", "Completion vectors of a device to use, spread evenly over all; 512 for all.").
		Default(strconv.Itoa(notification.Vectors.Most)).SetValue(wholeNumber(&notification.Vectors.Most))
	app.Flag("notification.vector-list", "Completion vectors to use, such as 0,8,16, instead of spreading.").
		PlaceHolder("N,N").SetValue((*numbers)(&notification.Vectors.Allowed))
	app.Flag("notification.deadline", "How long to wait for one event or completion before it counts as missed.").
		Default(duration(notification.Deadline)).DurationVar(&notification.Deadline)
	app.Flag("notification.budget", "Time that a run may spend on all these measurements.").
		Default(duration(notification.Budget)).DurationVar(&notification.Budget)

	if !once {
		app.Flag("contract.interval", "Time between two contract runs of one device; 0 for none. The first follows the device's first run, and one starts at once when the device or its software changes.").
			Default(duration(o.schedule.Contract.Interval)).IsSetByUser(&o.collectors.contract).DurationVar(&o.schedule.Contract.Interval)
	}
	app.Flag("contract.timeout", "Time limit for a process of a contract run, after which it is killed; another one judges the rest.").
		Default(duration(o.schedule.Contract.Timeout)).DurationVar(&o.schedule.Contract.Timeout)

	if !once {
		app.Flag("inventory.interval", "Time between two inventories of one device, of the objects that the kernel tracks for all processes; 0 for none.").
			Default(duration(o.schedule.Inventory.Interval)).IsSetByUser(&o.collectors.inventory).DurationVar(&o.schedule.Inventory.Interval)
	}
	app.Flag("inventory.timeout", "Time limit for an inventory, after which its process is killed; objects not read within four fifths of it are only counted.").
		Default(duration(o.schedule.Inventory.Timeout)).DurationVar(&o.schedule.Inventory.Timeout)
	app.Flag("inventory.max-objects", "Most objects of one type on one device to read one by one; if there are more, they are only counted.").
		Default(fmt.Sprint(o.inventory.MaxObjects)).SetValue(wholeNumber(&o.inventory.MaxObjects))
	if !once {
		app.Flag("hardware.interval", "Time between two readings of the hardware from the kernel, without opening devices: counters, links, addresses, interrupts; 0 for none.").
			Default(duration(o.schedule.Hardware.Interval)).IsSetByUser(&o.collectors.hardware).DurationVar(&o.schedule.Hardware.Interval)
	}
	app.Flag("hardware.timeout", "Time limit for reading the hardware of all devices, after which the process is killed; devices not read within four fifths of it have failed.").
		Default(duration(o.schedule.Hardware.Timeout)).DurationVar(&o.schedule.Hardware.Timeout)
	app.Flag("inventory.owners", "Largest owners to name for each device and type of object; the rest are added up.").
		Default(strconv.Itoa(o.inventory.Owners)).SetValue(wholeNumber(&o.inventory.Owners))
	if once {
		return
	}

	o.listen = kingpinflag.AddFlags(app, defaultAddress)
	app.Flag("web.telemetry-path", "Path of the metrics.").
		Default(web.DefaultMetricsPath).StringVar(&o.web.MetricsPath)
	app.Flag("web.max-requests", "Most scrapes to serve at the same time; 0 for no limit.").
		Default("40").SetValue(wholeNumber(&o.web.MaxRequests))
	app.Flag("web.enable-lifecycle", "Reload the configuration file at POST /-/reload; anybody who can reach the exporter can then do so.").
		BoolVar(&o.lifecycle)
	app.Flag("web.disable-exporter-metrics", "Leave out the exporter's own metrics (go_*, process_*, promhttp_*).").
		BoolVar(&o.disableExporterMetrics)

	promslogflag.AddFlags(app, o.log)
	o.log.Writer = std.err
}

// addHost adds the flags that say where the devices are.
func (o *options) addHost(app *kingpin.Application) {
	app.Flag("path.cgroup", "Where the cgroup file systems are mounted.").
		Default(o.inventory.Cgroup).StringVar(&o.inventory.Cgroup)
	app.Flag("path.procfs", "Where the proc file system is mounted.").
		Default(o.inventory.Procfs).StringVar(&o.inventory.Procfs)
	app.Flag("path.sysfs", "Where sysfs is mounted.").
		Default(o.hardware.Sysfs).StringVar(&o.hardware.Sysfs)
	app.Flag("provider", "Source of the devices: libibverbs (those of this host) or simulated.").
		Default(providerLibibverbs).EnumVar(&o.provider, providerLibibverbs, providerSimulated)
	app.Flag("simulated.profile", "YAML file that describes the simulated devices. Default: three built-in ones.").
		PlaceHolder("FILE").StringVar(&o.simulatedProfile)
}

// stateDirHelp is the help of --state.dir.
func stateDirHelp(once bool) string {
	if once {
		return "State directory of a running exporter, read to show since when there have been findings. Never written."
	}
	return "Directory that keeps the start of findings over restarts. Default: that of the service, or none."
}

// culprit names the flag whose value made parsing fail with err, or returns
// nothing if it was no value: kingpin tells only what is wrong with the value.
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

// numbers are numbers with commas between them, as the value of a flag.
type numbers []int

// Set implements kingpin.Value.
func (n *numbers) Set(list string) error {
	*n = nil
	for word := range strings.SplitSeq(list, ",") {
		number, err := strconv.Atoi(word)
		if err != nil {
			return fmt.Errorf("%q is not a whole number: use a list such as 0,8,16", word)
		}
		*n = append(*n, number)
	}
	return nil
}

// String implements kingpin.Value.
func (n *numbers) String() string { return session.Join(*n) }

// duration is a duration as people write it: 24h, not 24h0m0s.
func duration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// check returns an error that names each flag whose value cannot be used.
func (o *options) check() error {
	errs := []error{o.schedule.Check(), o.inventory.Validate(), o.probe.Notification.Validate()}
	if o.web.MaxRequests < 0 {
		errs = append(errs, fmt.Errorf("--web.max-requests is %d: use a number from 0", o.web.MaxRequests))
	}
	return errors.Join(errs...)
}

// checkTime returns an error if the parts of a run whose time is bounded do not
// fit into the time that the run has.
func (o *options) checkTime() error {
	var errs []error
	p, schedule := &o.probe, &o.schedule
	parts, all := fmt.Sprintf("probe.destroy_timeout %s", p.DestroyTimeout), p.DestroyTimeout
	if n := p.Notification; n.Samples > 0 {
		all += n.Budget + probe.MostDeadlines*n.Deadline
		parts += fmt.Sprintf(", --notification.budget %s and %d times --notification.deadline %s, %s in all", n.Budget, probe.MostDeadlines, n.Deadline, all)
	}
	if all >= schedule.Timeout {
		errs = append(errs, fmt.Errorf("--probe.timeout %s leaves no time beside %s: make one longer or the other shorter", schedule.Timeout, parts))
	}
	if c := schedule.Contract; c.Interval > 0 && p.DestroyTimeout >= c.Timeout {
		errs = append(errs, fmt.Errorf("--contract.timeout %s leaves no time beside probe.destroy_timeout %s: make one longer or the other shorter", c.Timeout, p.DestroyTimeout))
	}
	return errors.Join(errs...)
}

// flagGroup is a part of the help.
type flagGroup struct {
	Title string
	Flags []*kingpin.FlagModel
}

// groupFlags sorts flags by what they are about, which their first word tells.
func groupFlags(flags []*kingpin.FlagModel) []flagGroup {
	groups := []flagGroup{
		{Title: "General"}, {Title: "Report"}, {Title: "Devices"}, {Title: "Probes"}, {Title: "Notification"}, {Title: "Contracts"}, {Title: "Inventory"}, {Title: "Hardware"}, {Title: "Collectors"}, {Title: "Web"}, {Title: "Logging"}, {Title: "Ceiling"},
	}
	of := map[string]int{
		"brief": 1, "expect-active-ports": 1, "fail-on": 1, "format": 1, "output": 1, "within": 1,
		"device": 2, "discovery": 2, "path": 2, "provider": 2, "simulated": 2,
		"probe": 3, "notification": 4, "contract": 5, "inventory": 6, "hardware": 7, "collector": 8, "counters": 8, "web": 9, "log": 10, "even-if-used": 11, "json": 11, "memory": 11, "type": 11, "yes": 11,
	}
	if slices.ContainsFunc(flags, func(f *kingpin.FlagModel) bool { return f.Name == "yes" }) {
		of["within"] = of["yes"] // which audit has, too
	}
	for _, f := range flags {
		if f.Hidden {
			continue
		}
		word, _, _ := strings.Cut(f.Name, ".")
		g := &groups[of[word]]
		if f.Name == "device" {
			// kingpin lists the flags of a command after those of the program.
			g.Flags = slices.Insert(g.Flags, 0, f)
			continue
		}
		g.Flags = append(g.Flags, f)
	}
	return groups
}

// listCommands returns the names and the help of the commands that people call.
func listCommands(commands []*kingpin.CmdModel) [][2]string {
	var rows [][2]string
	for _, c := range commands {
		if !c.Hidden && c.Name != "help" {
			rows = append(rows, [2]string{c.Name, c.Help})
		}
	}
	return rows
}

// usageTemplate shows the usage of the command; of serve, which needs no name, as
// that of the program.
const usageTemplate = `{{$command := .Context.SelectedCommand -}}
{{if and $command (ne $command.Name "serve") -}}
usage: {{.App.Name}} {{$command.Name}} [<flags>]

{{or $command.HelpLong $command.Help|Wrap 0}}
{{else -}}
usage: {{.App.Name}} [<command>] [<flags>]

{{.App.Help|Wrap 0}}
Commands, with --help for what each of them does:
{{.App.Commands|CommandsToTwoColumns|FormatTwoColumns}}
{{end}}{{range Grouped .Context.Flags}}{{if .Flags}}{{.Title}}:
{{.Flags|FlagsToTwoColumns|FormatTwoColumns}}
{{end}}{{end}}`
