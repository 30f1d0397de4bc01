package supervisor

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"rdma_exporter/internal/child"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/wire"
	"rdma_exporter/test/running"
)

// script is how a fake child behaves.
type script struct {
	// output is what it writes at once.
	output string
	// takes is how long it lives; negative for ever.
	takes time.Duration
	// unkillable makes it live until release is closed.
	unkillable bool
	release    chan struct{}
	exit       child.Exit
}

const okReport = `{"device":{"transport":"InfiniBand","limits":[{"name":"max_qp_wr","value":128}]}}` + "\n" + `{"end":{}}` + "\n"

// lines returns lines of a report.
func lines(all ...wire.Line) string {
	var b strings.Builder
	w := wire.NewWriter(&b)
	for _, l := range all {
		_ = w.Send(l)
	}
	return b.String()
}

func scriptOK(takes time.Duration) script { return script{output: okReport, takes: takes} }

func scriptHang() script {
	return script{output: `{"begin":"ibv_destroy_cq"}` + "\n", takes: -1}
}

func scriptFail() script { return script{output: `{"end":{"error":"no luck"}}` + "\n"} }

func scriptUnkillable() script {
	s := scriptHang()
	s.unkillable, s.release = true, make(chan struct{})
	return s
}

type (
	// of returns the script of the n-th child of a kind on a device.
	of func(device string, n int) script
	// ofContracts is of for a child that checks contracts, except those that are done.
	ofContracts func(device string, done []string, n int) script
	// ofHardware is of for a child that reads the hardware of some devices.
	ofHardware func(devices []string, n int) script
)

// children are the scripts by kind. Nil means no runs of the kind. Children that check contracts
// are counted under contractsOf(device), those that take inventories under inventoryOf(device),
// and those that read the hardware under allHardware.
type children struct {
	next      of
	checks    ofContracts
	inventory of
	hardware  ofHardware
	// asks has the scripts of children that ask a peer, which are counted under asking(peer).
	asks of
	// measures has those of children that measure, which are counted under measuring(device).
	measures of
}

// fakes starts fake children and notes when.
type fakes struct {
	children
	begin time.Time

	mu      sync.Mutex
	starts  map[string][]time.Duration
	order   []string
	running int
	most    int
	kills   map[string]int
	// live is the number of children of a device that have not ended.
	live map[string]int
	errs []string
}

func newFakes(c children) *fakes {
	return &fakes{
		begin: time.Now(), children: c,
		starts: make(map[string][]time.Duration), kills: make(map[string]int), live: make(map[string]int),
	}
}

// contractsOf is the name under which children that check contracts of a device are counted.
func contractsOf(device string) string { return "contracts of " + device }

func inventoryOf(device string) string { return "inventory of " + device }

func asking(peer string) string { return "asking " + peer }

func measuring(device string) string { return "measuring " + device }

func hardwareOf(device string) string { return "hardware of " + device }

const allHardware = "hardware"

func fakeCommand(kind state.Kind, device string, r wire.Request) child.Command {
	switch kind {
	case state.KindContract:
		return child.Command{Path: device, Name: contractsOf(device), Args: r.Done}
	case state.KindInventory:
		return child.Command{Path: inventoryOf(device)}
	case state.KindAsk:
		return child.Command{Path: "ask of " + device, Name: asking(r.Path.Peer)}
	case state.KindBandwidth:
		return child.Command{Path: device, Name: measuring(device)}
	case state.KindHardware:
		return child.Command{Path: hardwareOf(strings.Join(r.Hardware.Devices, " ")), Name: allHardware, Args: r.Hardware.Devices}
	default:
		return child.Command{Path: device}
	}
}

// launch is a launcher. The path of the command is the device's name.
func (f *fakes) launch(c child.Command, out io.WriteCloser) child.Process {
	f.mu.Lock()
	defer f.mu.Unlock()
	device, name := c.Path, c.Path
	if f.live[device] != 0 {
		f.errs = append(f.errs, "two children at once on "+device)
	}
	if c.Name != "" {
		name = c.Name
	}
	n := len(f.starts[name])
	f.starts[name] = append(f.starts[name], time.Since(f.begin))
	f.order = append(f.order, name)
	f.live[device]++
	f.running++
	f.most = max(f.most, f.running)
	p := &fakeProcess{
		f: f, device: device, name: name, id: 1000 + len(f.order),
		out: out, killed: make(chan struct{}), ended: make(chan struct{}),
	}
	peer, isAsk := strings.CutPrefix(name, asking(""))
	switch of, isInventory := strings.CutPrefix(device, inventoryOf("")); {
	case name == measuring(device):
		p.script = f.measures(device, n)
	case isAsk:
		p.script = f.asks(peer, n)
	case isInventory:
		p.script = f.inventory(of, n)
	case name == allHardware:
		p.script = f.hardware(c.Args, n)
	case name == device:
		p.script = f.next(device, n)
	default:
		p.script = f.checks(device, c.Args, n)
	}
	go p.run()
	return p
}

func (f *fakes) startsOf(device string) []time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]time.Duration(nil), f.starts[device]...)
}

func (f *fakes) check(t *testing.T) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range f.errs {
		t.Error(e)
	}
	if f.running != 0 {
		t.Errorf("%d children are left", f.running)
	}
}

type fakeProcess struct {
	f      *fakes
	device string
	name   string
	script script
	id     int
	out    io.WriteCloser
	once   sync.Once
	killed chan struct{}
	ended  chan struct{}
	state  child.Exit
}

func (p *fakeProcess) run() {
	_, _ = io.WriteString(p.out, p.script.output)
	p.state = p.script.exit
	var end <-chan time.Time
	if p.script.takes >= 0 {
		t := time.NewTimer(p.script.takes)
		defer t.Stop()
		end = t.C
	}
	select {
	case <-end:
	case <-p.killed:
		p.state = child.Exit{Signal: 9}
		if p.script.unkillable {
			<-p.script.release
		}
	}
	_ = p.out.Close()
	p.f.mu.Lock()
	p.f.running--
	p.f.live[p.device]--
	p.f.mu.Unlock()
	close(p.ended)
}

func (p *fakeProcess) PID() int              { return p.id }
func (p *fakeProcess) Done() <-chan struct{} { return p.ended }
func (p *fakeProcess) Exit() child.Exit      { return p.state }
func (p *fakeProcess) Stderr() child.Stderr  { return child.Stderr{} }
func (p *fakeProcess) Kill() {
	p.once.Do(func() {
		p.f.mu.Lock()
		p.f.kills[p.name]++
		p.f.mu.Unlock()
		close(p.killed)
	})
}

// unstarted is a child whose program is not loaded until ended is closed.
type unstarted struct {
	out   io.WriteCloser
	ended <-chan struct{}
	err   error
}

// notStarted is a child whose program could not be loaded.
func notStarted(out io.WriteCloser, reason string) child.Process {
	ended := make(chan struct{})
	close(ended)
	_ = out.Close()
	return unstarted{out, ended, errors.New(reason)}
}

func (u unstarted) PID() int              { return 0 }
func (u unstarted) Kill()                 {}
func (u unstarted) Done() <-chan struct{} { return u.ended }
func (u unstarted) Exit() child.Exit      { return child.Exit{Err: u.err} }
func (u unstarted) Stderr() child.Stderr  { return child.Stderr{} }

// recorder is an observer that records its calls in order.
type recorder struct {
	mu     sync.Mutex
	events []string
	all    map[string][]*state.Run
}

func newRecorder() *recorder {
	return &recorder{all: make(map[string][]*state.Run)}
}

func (r *recorder) Observe(run *state.Run) {
	r.mu.Lock()
	defer r.mu.Unlock()
	name := run.Device
	switch run.Kind {
	case state.KindContract:
		name = contractsOf(run.Device)
	case state.KindInventory:
		name = inventoryOf(run.Device)
	case state.KindBandwidth:
		name = measuring(run.Device)
	case state.KindHardware:
		name = hardwareOf(run.Device)
	}
	r.events = append(r.events, fmt.Sprintf("%s %s", name, run.Outcome))
	r.all[name] = append(r.all[name], run)
}

func (r *recorder) Forget(device string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, device+" forgotten")
}

func (r *recorder) count(device string) int { return len(r.runs(device)) }

func (r *recorder) runs(device string) []*state.Run {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]*state.Run(nil), r.all[device]...)
}

func (r *recorder) told() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.events...)
}

// logged is a buffer for a logger.
type logged struct{ running.Output }

func (l *logged) logger(level slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: level}))
}
