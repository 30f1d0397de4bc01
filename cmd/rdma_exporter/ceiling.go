package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/alecthomas/kingpin/v2"
	"golang.org/x/sys/unix"

	"rdma_exporter/internal/ceiling"
	"rdma_exporter/internal/inventory"
	"rdma_exporter/internal/terminal"
	"rdma_exporter/internal/text"
	"rdma_exporter/verbs"
)

const (
	// climbSilence is how long the process of a climb may say nothing: so long no verb
	// takes that returns.
	climbSilence = time.Minute
	// lookTime is how long the kernel may take to tell whether others use the device.
	lookTime = 10 * time.Second
	// climbEnd is how long the kernel may take to end that process, and to take back what
	// it holds.
	climbEnd = 10 * time.Minute
	// maxClimbLine is the longest line, and maxClimbInput the longest input, of that
	// process, in bytes. A profile may be part of the latter.
	maxClimbLine, maxClimbInput = 64 << 10, 16 << 20
	// maxClimbErrors is how many bytes are kept of what it writes to standard error.
	maxClimbErrors = 4096
	// climbBallast is the memory, in bytes, that Go has in reserve for a climb.
	climbBallast = 64 << 20
)

// ceilingFlags are the flags of the command ceiling.
type ceilingFlags struct {
	device, kind string
	within       time.Duration
	memory       func() int64
	yes, used    bool
	json         bool
}

// add adds the command ceiling with its flags.
func (f *ceilingFlags) add(app *kingpin.Application) {
	c := app.Command(commandCeiling, "Create objects of one type on one device until one is refused, destroy them all, and report how many there were and what refused: by hand, on a device that nobody needs meanwhile.").
		HelpLong(`Creates the smallest objects of one type on one device, in its own process, until one is refused or a budget is used up; then destroys them all. It reports how many there were beside what the device claims, and what ended the climb: the device, RLIMIT_MEMLOCK, the RDMA controller of a cgroup, another limit, or the budget. Meanwhile other programs may be refused such objects, so only this command ever does it, and only with --yes.

The exit status is 0 if a ceiling was found, 1 if the climb ended by a budget, an error or an interruption, and 2 if it did not begin: the command line is wrong, there is no such device, or others use it. See docs/ceiling.md.`)
	defaults := ceiling.DefaultConfig()
	c.Flag("device", "Name of the device.").Required().StringVar(&f.device)
	var types []string
	for _, t := range ceiling.Types() {
		types = append(types, string(t))
	}
	c.Flag("type", "Type of the objects: cq, qp, srq, mr, pd or ah.").Required().EnumVar(&f.kind, types...)
	c.Flag("yes", "Do it: create objects until one is refused.").BoolVar(&f.yes)
	c.Flag("even-if-used", "Do it even if other programs hold queue pairs on the device, or the kernel does not say whether they do.").BoolVar(&f.used)
	c.Flag("within", "Time limit for the climb, not counting the destruction.").
		Default(duration(defaults.Within)).DurationVar(&f.within)
	memory := c.Flag("memory", "Memory limit for the climb, such as 512MiB. It also ends when only a tenth of the host's memory is left.").
		Default("1GiB").Bytes()
	f.memory = func() int64 { return int64(*memory) }
	c.Flag("json", "Write the result as JSON.").BoolVar(&f.json)
}

// climbInput is what the process of a climb reads from its standard input.
type climbInput struct {
	Settings settings       `json:"settings"`
	Config   ceiling.Config `json:"config"`
}

// runCeiling is the command ceiling. It is called from the main thread, which ends with
// the process alone.
func runCeiling(ctx context.Context, o *options, std stdio) int {
	o.retired.warn(std.ignored)
	report, err := o.ceiling.find(ctx, o, std)
	if err != nil {
		complain(std, err)
		return exitUsage
	}
	text := []byte(report.Verdict())
	if o.ceiling.json {
		if text, err = json.MarshalIndent(report, "", "  "); err != nil {
			complain(std, fmt.Errorf("encode the report: %w", err))
			return exitFailed
		}
		text = append(text, '\n')
	}
	if _, err := std.out.Write(text); err != nil {
		complain(std, fmt.Errorf("write the report to standard output: %w", err))
		return exitFailed
	}
	if !report.EndedBy.Found() || report.GivenBack == ceiling.NotYet {
		return exitFailed
	}
	return exitOK
}

// find climbs, and returns what was found; an error is why it did not begin.
func (f *ceilingFlags) find(ctx context.Context, o *options, std stdio) (*ceiling.Report, error) {
	input := climbInput{Config: ceiling.Config{Type: ceiling.Type(f.kind), Within: f.within, Memory: f.memory()}}
	if err := input.Config.Validate(); err != nil {
		return nil, err
	}
	profile, err := unlessDone(ctx, func() (json.RawMessage, error) { return f.profile(o) })
	if err != nil {
		return nil, err
	}
	if !f.yes {
		return nil, fmt.Errorf("this creates objects of type %s on %s until one is refused, for up to %s and with up to %s of memory, and destroys them; meanwhile other programs may be refused theirs: confirm with --yes",
			f.kind, f.device, duration(f.within), text.Bytes(input.Config.Memory))
	}
	input.Settings = settings{Provider: o.provider, Profile: profile, Probe: o.probe, Inventory: o.inventory}
	if err := input.Settings.parse(); err != nil {
		return nil, err
	}
	before, err := f.look(ctx, input.Settings)
	if err != nil {
		return nil, err
	}
	stdin, err := json.Marshal(input)
	if err != nil {
		return nil, fmt.Errorf("encode the settings of the climb: %w", err)
	}
	c := climber{device: f.device, silence: climbSilence, end: climbEnd, screen: std.err}
	c.shown = terminal.Detect(file(std.err), os.Getenv).Terminal
	c.report = ceiling.Report{Version: ceiling.Version, Device: f.device, Type: input.Config.Type, Phase: ceiling.PhaseClimbing, Began: time.Now().UTC()}
	if err := c.start(selfPath, stdin); err != nil {
		return nil, err
	}
	c.watch(ctx)
	c.report.Before = before
	return &c.report, nil
}

// profile returns the text of the device's profile, if it is simulated. It is an error if
// there is no such device.
func (f *ceilingFlags) profile(o *options) (json.RawMessage, error) {
	discover, profile, err := discoverer(o)
	if err != nil {
		return nil, err
	}
	names, err := discover()
	if err != nil {
		return nil, err
	}
	if !slices.Contains(names, f.device) {
		if len(names) == 0 {
			return nil, fmt.Errorf("there is no device %q, and no other", f.device)
		}
		slices.Sort(names)
		return nil, fmt.Errorf("there is no device %q: there are %s", f.device, quotedList(names))
	}
	if profile == nil {
		return nil, nil
	}
	encoded, err := json.Marshal(profile.Only(f.device))
	if err != nil {
		return nil, fmt.Errorf("encode the profile of the simulated device: %w", err)
	}
	return encoded, nil
}

// look returns how many objects of the type the kernel counts on the device already; nil
// if it does not tell. It is an error if others use the device and that matters.
func (f *ceilingFlags) look(ctx context.Context, s settings) (before *int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	u, done, err := usageOf(s, f.device)
	light := inventory.NotTold(err)
	if err == nil {
		defer done()
		u.Exporter = os.Getpid()
		light = inventory.InUse(ctx, u)
		if n, err := inventory.Count(ctx, u.Tables, f.device, f.kind); err == nil {
			before = &n
		}
	}
	if light != nil && !f.used {
		return nil, fmt.Errorf("%s may be in use: %s; find its ceiling when it is idle, or confirm with --even-if-used", f.device, light.Detail)
	}
	return before, nil
}

// A climber is the process of a climb, as the one that started it sees it.
type climber struct {
	device string
	// silence and end are how long it may say nothing, and take to end.
	silence, end time.Duration
	// screen is where progress is shown, if it is.
	screen io.Writer
	shown  bool
	last   time.Time

	// report is what it has told last.
	report ceiling.Report
	cmd    *exec.Cmd
	errs   firstBytes
	// reports are those that it tells, until it tells no more. ended has how it ended.
	reports chan ceiling.Report
	ended   chan error
}

// start starts the process.
func (c *climber) start(program string, stdin []byte) error {
	c.cmd = &exec.Cmd{
		Path: program, Args: []string{programName, commandClimb, deviceFlag + c.device}, Env: childEnv(os.Environ()),
		Stdin: bytes.NewReader(stdin), Stderr: &c.errs,
		// Ctrl-C is for this process alone, whose end is that of the other.
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL},
	}
	out, err := c.cmd.StdoutPipe()
	if err == nil {
		err = c.cmd.Start()
	}
	if err != nil {
		return fmt.Errorf("start the climb: %w", err)
	}
	c.reports, c.ended = make(chan ceiling.Report), make(chan error, 1)
	go func() {
		readErr := readReports(out, c.reports)
		close(c.reports)
		if readErr != nil {
			c.kill()
		}
		c.ended <- errors.Join(readErr, c.cmd.Wait())
	}()
	return nil
}

// readReports reads reports, one a line, to the end.
func readReports(r io.Reader, to chan<- ceiling.Report) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxClimbLine)
	for lines.Scan() {
		var report ceiling.Report
		d := json.NewDecoder(bytes.NewReader(lines.Bytes()))
		d.DisallowUnknownFields()
		if err := d.Decode(&report); err != nil {
			return fmt.Errorf("read the report of the climb: %w", err)
		}
		to <- report
	}
	return lines.Err()
}

// kill ends the process; the kernel takes back what it holds.
func (c *climber) kill() {
	// It fails only if nobody is left.
	_ = unix.Kill(-c.cmd.Process.Pid, unix.SIGKILL)
}

// watch follows the climb to its end, which comes at the latest when ctx is done, or the
// process has been silent for too long.
func (c *climber) watch(ctx context.Context) {
	silence := time.NewTimer(c.silence)
	defer silence.Stop()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	var (
		interrupted     = ctx.Done()
		overdue         <-chan time.Time
		by              ceiling.End
		why             string
		reports, killed = c.reports, false
	)
	kill := func(end ceiling.End, reason string) {
		if !killed {
			killed, by, why = true, end, reason
			overdue = time.After(c.end)
			c.kill()
		}
	}
	for {
		select {
		case r, more := <-reports:
			if !more {
				reports = nil
				continue
			}
			c.report = r
			silence.Reset(c.silence)
			c.show()
		case <-tick.C:
			c.show()
		case <-interrupted:
			interrupted = nil
			kill(ceiling.EndInterrupted, "it was interrupted")
		case <-silence.C:
			kill(ceiling.EndError, fmt.Sprintf("%s has not returned for %s", c.report.InVerb(), c.silence))
		case err := <-c.ended:
			if c.report.Phase == ceiling.PhaseEnded {
				return
			}
			if !killed {
				by, why = ceiling.EndError, c.crash(err)
			}
			c.report.Cut(by, why, ceiling.ByKernel, time.Now())
			return
		case <-overdue:
			c.report.Cut(by, why, ceiling.NotYet, time.Now())
			c.report.LeftDetail = fmt.Sprintf("process %d was killed but has not ended for %s", c.cmd.Process.Pid, c.end)
			return
		}
	}
}

// crash says how the process ended that was not to end yet.
func (c *climber) crash(err error) string {
	said := "the process of the climb ended too early"
	if err != nil {
		said += ": " + err.Error()
	}
	if status, ok := c.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signal() == syscall.SIGKILL {
		said += ", perhaps killed by the kernel for lack of memory: see the kernel's log, and set a lower --memory"
	}
	if first := bytes.TrimSpace(c.errs.b); len(first) > 0 {
		said += "; it said: " + text.Truncate(string(first), text.MaxName)
	}
	return text.Clean(said)
}

// show shows how far the climb has got, in a line a second at most.
func (c *climber) show() {
	if now := time.Now(); c.shown && now.Sub(c.last) >= time.Second {
		c.last = now
		fmt.Fprintln(c.screen, c.report.Progress())
	}
}

// firstBytes keeps the first bytes that are written to it.
type firstBytes struct{ b []byte }

// Write implements io.Writer.
func (f *firstBytes) Write(p []byte) (int, error) {
	f.b = append(f.b, p[:min(len(p), maxClimbErrors-len(f.b))]...)
	return len(p), nil
}

// climb is the command climb: the process of the command ceiling.
func climb(o *options, std stdio) error {
	in, err := readClimb(std.in)
	if err != nil {
		return err
	}
	// Should memory run out, it is this process that the kernel ends. One that may not
	// ask for that goes on.
	_ = os.WriteFile(filepath.Join(in.Settings.Inventory.Procfs, "self", "oom_score_adj"), []byte("1000"), 0)
	startThreads(spareThreads)
	reserve()
	provider, err := providerOf(in.Settings)
	if err != nil {
		return err
	}
	out, told := json.NewEncoder(std.out), error(nil)
	ceiling.Climb(ceiling.Options{
		Provider: provider(verbs.NopTracer{}), Device: o.device, Config: in.Config, Now: time.Now,
		Host: ceiling.System{Procfs: in.Settings.Inventory.Procfs, Cgroup: in.Settings.Inventory.Cgroup},
		Tell: func(r ceiling.Report) { told = errors.Join(told, out.Encode(r)) },
	})
	return told
}

// readClimb reads what to climb. A person who calls the command by hand has not said it.
func readClimb(r io.Reader) (climbInput, error) {
	var in climbInput
	d := json.NewDecoder(io.LimitReader(r, maxClimbInput))
	d.DisallowUnknownFields()
	if err := d.Decode(&in); err != nil {
		return in, fmt.Errorf("read what to climb from standard input, where the command %s writes it: %w", commandCeiling, err)
	}
	return in, errors.Join(in.Config.Validate(), in.Settings.parse())
}

// reserve has Go map memory that it will need: when the process may have no more
// mappings, which is an end of a climb, Go cannot map any and would end the process.
func reserve() {
	ballast := make([]byte, climbBallast) // whose pages nobody touches
	_ = ballast[len(ballast)-1]
}
