package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/alecthomas/kingpin/v2"
	"github.com/alecthomas/units"

	"rdma_exporter/internal/ceiling"
	"rdma_exporter/internal/inventory"
	"rdma_exporter/internal/refusal"
	"rdma_exporter/internal/terminal"
	"rdma_exporter/internal/text"
	"rdma_exporter/verbs"
)

const (
	// maxVerbTime is more than any verb takes that returns.
	maxVerbTime = time.Minute
	// reservedHeap is the memory, in bytes, that Go maps in advance. When the process may have no
	// more mappings, which a search can end by, Go cannot map any either.
	reservedHeap = 64 << 20
)

type ceilingFlags struct {
	device, kind    string
	within          time.Duration
	memory          units.Base2Bytes
	yes, used, json bool
}

func (f *ceilingFlags) add(app *kingpin.Application) {
	c := app.Command(commandCeiling, "Create objects of one type on one device until one is refused, destroy them all, and report how many there were and what refused: by hand, on an idle device.").
		HelpLong(`Creates the smallest objects of one type on one device until one is refused or a budget is used up; then destroys them all. It reports how many there were, what the device claims, and what ended it: the device, RLIMIT_MEMLOCK, the RDMA controller of a cgroup, another limit, or the budget. Meanwhile other programs may be refused such objects, so only this command ever does it, and only with --yes.

The exit status is 0 if a ceiling was found, 1 if it was ended by a budget, an error or an interruption, and 2 if it did not begin: the command line is wrong, there is no such device, or others use it. See docs/ceiling.md.`)
	c.Flag("device", "Name of the device.").Required().StringVar(&f.device)
	c.Flag("type", "Type of the objects: cq, qp, srq, mr, pd or ah.").Required().EnumVar(&f.kind, ceiling.Types()...)
	c.Flag("yes", "Do it: create objects until one is refused.").BoolVar(&f.yes)
	c.Flag("even-if-used", "Do it even if other programs hold queue pairs on the device, or the kernel does not say whether they do.").BoolVar(&f.used)
	c.Flag("within", "Time limit for creating objects.").Default("2m").DurationVar(&f.within)
	c.Flag("memory", "Memory limit, such as 512MiB. It also ends when only a tenth of the host's memory is left.").
		Default("1GiB").BytesVar(&f.memory)
	c.Flag("json", "Write the result as JSON.").BoolVar(&f.json)
}

// runCeiling is the command ceiling. The end of this process gives back what a search leaves, also
// if that is interrupted or hangs.
func runCeiling(ctx context.Context, o *options, std stdio) int {
	f := &o.ceiling
	search, err := f.prepare(ctx, o)
	if err != nil {
		complain(std, err)
		return exitUsage
	}
	// Should memory run out, the kernel ends this process. Without permission, it goes on.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0)
	runtime.GOMAXPROCS(1)
	startThreads(spareThreads)
	runtime.KeepAlive(make([]byte, reservedHeap))
	report := follow(ctx, search, std)
	if err = writeResult(report.String(), report, f.json, std); err != nil {
		complain(std, err)
	}
	if err != nil || !report.EndedBy.IsLimit() {
		return exitFailed
	}
	return exitOK
}

func (f *ceilingFlags) prepare(ctx context.Context, o *options) (search ceiling.Options, err error) {
	if f.within <= 0 || f.memory <= 0 {
		return search, fmt.Errorf("--within is %s and --memory is %d: use values above 0", f.within, f.memory)
	}
	discover, s, err := discoverer(o)
	if err != nil {
		return search, err
	}
	names, err := discover()
	if err != nil {
		return search, err
	}
	if !slices.Contains(names, f.device) {
		slices.Sort(names)
		return search, fmt.Errorf("there is no device %q: the devices are [%s]", f.device, quotedList(names))
	}
	if !f.yes {
		return search, fmt.Errorf("this creates objects of type %s on %s until one is refused, for up to %s and with up to %s of memory, and destroys them; meanwhile other programs may be refused theirs: confirm with --yes",
			f.kind, f.device, duration(f.within), text.Bytes(int64(f.memory)))
	}
	ctx, cancel := context.WithTimeout(ctx, driverTime)
	defer cancel()
	u, done, err := usageOf(s, f.device)
	reduced := inventory.UsageUnknown(err)
	if err == nil {
		defer done()
		u.Exporter = os.Getpid()
		reduced = inventory.InUse(ctx, u)
		if n, err := inventory.Count(ctx, u.Tables, f.device, f.kind); err == nil {
			search.Before = &n
		}
	}
	if reduced != nil && !f.used {
		return search, fmt.Errorf("%s may be in use: %s; use it when it is idle, or confirm with --even-if-used", f.device, reduced.Detail)
	}
	provider, err := providerOf(s)
	if err != nil {
		return search, err
	}
	search.Provider, search.Host = provider(verbs.NopTracer{}), refusal.System{Procfs: s.Inventory.Procfs, Cgroup: s.Inventory.Cgroup}
	search.Device, search.Type, search.Within, search.Memory = f.device, f.kind, f.within, int64(f.memory)
	return search, nil
}

// follow runs a search until it has ended, ctx is done, or a verb does not return, and shows its
// progress on a terminal.
func follow(ctx context.Context, search ceiling.Options, std stdio) *ceiling.Report {
	var last atomic.Pointer[ceiling.Report]
	search.Tell = func(r ceiling.Report) { last.Store(&r) }
	search.Tell(ceiling.NewReport(search))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		ceiling.Find(search)
	}()
	isTerminal := terminal.Detect(file(std.err), os.Getenv).Terminal
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	seen, since := last.Load(), time.Now()
	for {
		select {
		case <-ended:
			return last.Load()
		case <-ctx.Done():
			return last.Load().Abandoned(ceiling.EndInterrupted, "it was interrupted")
		case <-tick.C:
		}
		r := last.Load()
		if r != seen {
			seen, since = r, time.Now()
		}
		if isTerminal {
			fmt.Fprintln(std.err, r.Progress())
		}
		if time.Since(since) > maxVerbTime {
			return r.Abandoned(refusal.Unknown, fmt.Sprintf("a verb has not returned for %s", maxVerbTime))
		}
	}
}
