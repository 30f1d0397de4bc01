package main

import (
	"errors"
	"fmt"
	"maps"
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

	"rdma_exporter/internal/probe"
	"rdma_exporter/internal/probe/session"
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

	commandHealthcheck = "healthcheck"

	providerLibibverbs = "libibverbs"
	providerSimulated  = "simulated"

	whenAlways = "always"
	whenIdle   = "idle"
)

// options are the command line, parsed but not yet checked against files.
type options struct {
	command string

	configFile       string
	provider         string
	simulatedProfile string
	sysfs            string
	include, exclude *regexp.Regexp

	interval, timeout, backoff, discovery time.Duration
	concurrency                           int
	jitter                                float64
	// when is when a device is probed in full.
	when string

	notification                      probe.NotificationConfig
	contractInterval, contractTimeout time.Duration

	inventoryInterval, inventoryTimeout time.Duration
	maxObjects                          int64
	maxOwners                           int
	procfs, cgroup                      string

	web                    *toolkit.FlagConfig
	metricsPath            string
	maxRequests            int
	disableExporterMetrics bool
	log                    *promslog.Config

	// device is that of the commands for one device.
	device string

	// format, output, failOn and accept are of the command audit.
	format, output, failOn string
	accept                 []string

	health healthcheck
}

// parse parses the command line. With done, there is nothing left to do but to
// end with status: help or the version was shown, or an error.
func parse(args []string, std stdio) (o *options, done bool, status int) {
	o = &options{log: &promslog.Config{}}
	app := kingpin.New(programName, "Prometheus exporter and resource auditor for RDMA devices: creates small verbs objects on each device, in a short-lived child process, and serves what it was given, how long it took and what failed.")
	// kingpin shows help and version in the middle of parsing, and goes on.
	app.Terminate(func(code int) { done, status = true, code })
	app.UsageWriter(std.out)
	app.ErrorWriter(std.err)
	app.UsageTemplate(usageTemplate)
	app.UsageFuncs(template.FuncMap{"Grouped": groupFlags, "CommandsToTwoColumns": listCommands})
	app.Version(version.Print(programName))
	app.HelpFlag.Short('h')

	args = withCommand(args)
	if name := commandOf(args); name != commandHealthcheck { // which has no use for devices
		// What is done once has no schedule, and serves nothing.
		o.addFlags(app, std, name == commandAudit)
	}
	o.addCommands(app)
	command, err := app.Parse(args)
	if done {
		return nil, true, status
	}
	if err != nil {
		fmt.Fprintf(std.err, "%s: error: %s%v, try --help\n", programName, culprit(app, args, err), err)
		return nil, true, exitUsage
	}
	o.command = command
	return o, false, exitOK
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
	app.Command(commandServe, "Probe the devices, again and again, and serve the metrics. This is what is done if no command is given.")
	o.addAudit(app)
	o.health.add(app)
	for _, c := range []struct{ name, help string }{
		{commandProbe, "Probe one device once and write a report; what the exporter runs for each run."},
		{commandContract, "Judge once how one device keeps the contracts of the manual and write a report; what the exporter runs for each audit."},
		{commandInventory, "Take stock once of the objects that the kernel tracks on one device and write a report; what the exporter runs for each inventory."},
	} {
		app.Command(c.name, c.help).Hidden().
			Flag("device", "Name of the device.").Required().StringVar(&o.device)
	}
}

// addFlags adds the flags of all commands or, if all is done once, of the command
// audit.
func (o *options) addFlags(app *kingpin.Application, std stdio, once bool) {
	app.Flag("config.file", "YAML file with the sizes that the probes ask for, and with what counts as a finding. See docs/configuration.md.").
		PlaceHolder("FILE").StringVar(&o.configFile)

	if !once {
		app.Flag("device.include", "Probe only the devices whose whole name matches this regular expression.").
			PlaceHolder("REGEX").RegexpVar(&o.include)
	}
	app.Flag("device.exclude", "Do not probe the devices whose whole name matches this regular expression.").
		PlaceHolder("REGEX").RegexpVar(&o.exclude)
	if !once {
		app.Flag("discovery.interval", "How often to look for devices that appeared or vanished.").
			Default("5s").DurationVar(&o.discovery)
	}
	app.Flag("path.cgroup", "Where the cgroup file systems are mounted.").
		Default("/sys/fs/cgroup").StringVar(&o.cgroup)
	app.Flag("path.procfs", "Where the proc file system is mounted.").
		Default("/proc").StringVar(&o.procfs)
	app.Flag("path.sysfs", "Where sysfs is mounted.").
		Default("/sys").StringVar(&o.sysfs)
	app.Flag("provider", "Where the devices come from: libibverbs (those of this host) or simulated.").
		Default(providerLibibverbs).EnumVar(&o.provider, providerLibibverbs, providerSimulated)
	app.Flag("simulated.profile", "YAML file that describes the simulated devices. Default: three built-in ones.").
		PlaceHolder("FILE").StringVar(&o.simulatedProfile)

	if !once {
		app.Flag("probe.interval", "Time between two runs of the probes on one device.").
			Default("30s").DurationVar(&o.interval)
	}
	app.Flag("probe.when", "When a device is probed in full: always, or idle, while no other program holds queue pairs on it; otherwise it gets one small completion queue and queue pair, and its contracts wait.").
		Default(whenAlways).EnumVar(&o.when, whenAlways, whenIdle)
	app.Flag("probe.timeout", "Longest that a run may take before its process is killed.").
		Default("10s").DurationVar(&o.timeout)
	app.Flag("probe.concurrency", "Most devices that are probed or audited at the same time.").
		Default("2").IntVar(&o.concurrency)
	if !once {
		app.Flag("probe.jitter", "Most by which a run may start early or late, as a fraction of the interval.").
			Default("0.1").Float64Var(&o.jitter)
		app.Flag("probe.max-backoff", "Longest pause after runs that failed; it doubles with each failure until then.").
			Default("5m").DurationVar(&o.backoff)
	}

	app.Flag("notification.samples", "Samples of each measurement of completion notification; 0 leaves it out.").
		Default("100").IntVar(&o.notification.Samples)
	app.Flag("notification.vectors", "Completion vectors of a device that are ever used, spread evenly over all that it has; 512 for all.").
		Default(strconv.Itoa(session.DefaultVectors)).IntVar(&o.notification.Vectors.Most)
	app.Flag("notification.vector-list", "Completion vectors that are ever used, such as 0,8,16, instead of those.").
		PlaceHolder("N,N").SetValue((*numbers)(&o.notification.Vectors.Allowed))
	app.Flag("notification.deadline", "How long one event or completion is waited for before it counts as missed.").
		Default("500ms").DurationVar(&o.notification.Deadline)
	app.Flag("notification.budget", "Time that a run may spend on these measurements, all together.").
		Default("2s").DurationVar(&o.notification.Budget)

	if !once {
		app.Flag("contract.interval", "Time between two contract runs of one device; 0 for none. The first follows the device's first run, and one comes at once when the device or its software has changed.").
			Default("24h").DurationVar(&o.contractInterval)
	}
	app.Flag("contract.timeout", "Longest that a process of a contract run may take before it is killed; another one judges the rest.").
		Default("1m").DurationVar(&o.contractTimeout)

	if !once {
		app.Flag("inventory.interval", "Time between two inventories of one device, of what the kernel tracks on it for all processes; 0 for none.").
			Default("1m").DurationVar(&o.inventoryInterval)
	}
	app.Flag("inventory.timeout", "Longest that an inventory may take before its process is killed; what is not looked at in four fifths of that is only counted.").
		Default("10s").DurationVar(&o.inventoryTimeout)
	app.Flag("inventory.max-objects", "Most objects of one type on one device that are looked at one by one; more are only counted.").
		Default("20000").Int64Var(&o.maxObjects)
	app.Flag("inventory.owners", "Owners that are named of each device and type of object, the largest; the rest are summed up.").
		Default("10").IntVar(&o.maxOwners)
	if once {
		return
	}

	o.web = kingpinflag.AddFlags(app, defaultAddress)
	app.Flag("web.telemetry-path", "Path of the metrics.").
		Default(web.DefaultMetricsPath).StringVar(&o.metricsPath)
	app.Flag("web.max-requests", "Most scrapes served at the same time; 0 for no limit.").
		Default("40").IntVar(&o.maxRequests)
	app.Flag("web.disable-exporter-metrics", "Leave out the metrics of the exporter itself (go_*, process_*, promhttp_*).").
		BoolVar(&o.disableExporterMetrics)

	promslogflag.AddFlags(app, o.log)
	o.log.Writer = std.err
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
			return fmt.Errorf("%q is no whole number: use a list such as 0,8,16", word)
		}
		*n = append(*n, number)
	}
	return nil
}

// String implements kingpin.Value.
func (n *numbers) String() string { return session.Join(*n) }

// minInterval keeps a slip of the pen from probing a host without a break.
const minInterval = 100 * time.Millisecond

// maxOwners bounds the series of a device: there are seven types of object.
const maxOwners = 100

// check returns an error that names each flag whose value cannot be used.
func (o *options) check() error {
	errs := positive(map[string]time.Duration{
		"probe.timeout":     o.timeout,
		"contract.timeout":  o.contractTimeout,
		"inventory.timeout": o.inventoryTimeout,
	})
	if o.command != commandAudit {
		errs = append(errs, o.checkServe()...)
	}
	if o.maxObjects < 0 {
		errs = append(errs, fmt.Errorf("--inventory.max-objects is %d: use a number from 0", o.maxObjects))
	}
	if o.maxOwners < 0 || o.maxOwners > maxOwners {
		errs = append(errs, fmt.Errorf("--inventory.owners is %d: use a number from 0 to %d", o.maxOwners, maxOwners))
	}
	if o.concurrency < 1 {
		errs = append(errs, fmt.Errorf("--probe.concurrency is %d: use a number from 1", o.concurrency))
	}
	return errors.Join(append(errs, o.notification.Validate())...)
}

// checkServe checks the flags that the command audit does not have.
func (o *options) checkServe() []error {
	errs := positive(map[string]time.Duration{
		"discovery.interval": o.discovery,
		"probe.interval":     o.interval,
		"probe.max-backoff":  o.backoff,
	})
	if o.interval > 0 && o.interval < minInterval {
		errs = append(errs, fmt.Errorf("--probe.interval is %s: use a duration from %s", o.interval, minInterval))
	}
	if o.contractInterval != 0 && o.contractInterval < minInterval {
		errs = append(errs, fmt.Errorf("--contract.interval is %s: use a duration from %s, or 0s for no audit", o.contractInterval, minInterval))
	}
	if o.inventoryInterval != 0 && o.inventoryInterval < minInterval {
		errs = append(errs, fmt.Errorf("--inventory.interval is %s: use a duration from %s, or 0s for no audit", o.inventoryInterval, minInterval))
	}
	if !(o.jitter >= 0 && o.jitter <= 1) { // not a number is neither
		errs = append(errs, fmt.Errorf("--probe.jitter is %v: use a number from 0 to 1", o.jitter))
	}
	if o.maxRequests < 0 {
		errs = append(errs, fmt.Errorf("--web.max-requests is %d: use a number from 0", o.maxRequests))
	}
	return errs
}

// positive returns an error for each flag whose duration is not above zero.
func positive(flags map[string]time.Duration) []error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(flags)) {
		if d := flags[name]; d <= 0 {
			errs = append(errs, fmt.Errorf("--%s is %s: use a duration above 0s", name, d))
		}
	}
	return errs
}

// checkTime returns an error if the parts of a run whose time is bounded do not
// fit into the time that the run has.
func (o *options) checkTime(p probe.Config) error {
	var errs []error
	parts, all := fmt.Sprintf("probe.destroy_timeout %s", p.DestroyTimeout), p.DestroyTimeout
	if n := p.Notification; n.Samples > 0 {
		all += n.Budget + probe.MostDeadlines*n.Deadline
		parts += fmt.Sprintf(", --notification.budget %s and %d times --notification.deadline %s, which are %s in all", n.Budget, probe.MostDeadlines, n.Deadline, all)
	}
	if all >= o.timeout {
		errs = append(errs, fmt.Errorf("--probe.timeout %s leaves no time beside %s: make one longer or the other shorter", o.timeout, parts))
	}
	if o.judges() && p.DestroyTimeout >= o.contractTimeout {
		errs = append(errs, fmt.Errorf("--contract.timeout %s leaves no time beside probe.destroy_timeout %s: make one longer or the other shorter", o.contractTimeout, p.DestroyTimeout))
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
		{Title: "General"}, {Title: "Report"}, {Title: "Devices"}, {Title: "Probes"}, {Title: "Notification"}, {Title: "Contracts"}, {Title: "Inventory"}, {Title: "Web"}, {Title: "Logging"},
	}
	of := map[string]int{
		"fail-on": 1, "format": 1, "output": 1,
		"device": 2, "discovery": 2, "path": 2, "provider": 2, "simulated": 2,
		"probe": 3, "notification": 4, "contract": 5, "inventory": 6, "web": 7, "log": 8,
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
