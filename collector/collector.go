package collector

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"rdma_exporter/internal/health"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/text"
)

// Options are what a Collector needs.
type Options struct {
	// Host returns what is known of the devices now, judged. It is called at each
	// scrape, by any number of goroutines at once. It must not wait for a device, and
	// nobody may change what it returned. Without it there are counters and histograms
	// only.
	Host func() *health.Host
	// Collectors are the collectors that are on; if nil, those that are by default.
	Collectors Choice
	// Asked returns the sizes that the probes ask for, of every device and type of queue
	// pair, under the same terms; nil if they are not to be exposed.
	Asked func() state.Probe
	// Light tells that runs may be light, and so that it is to be exposed which are.
	Light bool
	// Exporter returns what the exporter knows of itself, under the same terms; nil if that
	// is not to be exposed.
	Exporter func() Exporter
	// CountersInclude matches the names of the counters that are told as their drivers name
	// them; nil for all.
	CountersInclude *regexp.Regexp
}

// Collector holds the counters and histograms of the runs observed, and reads
// gauges from the latest snapshot. All its methods may be called concurrently.
//
// It is a prometheus.Collector for use with a registry. Gatherer is a faster way to the
// same series, and Write the fastest way to their text.
type Collector struct {
	*metrics
	host     func() *health.Host
	asked    func() state.Probe
	light    bool
	exporter func() Exporter
	include  *regexp.Regexp

	mu        sync.Mutex
	histories map[string]*history
	gauges    map[string]cached
	// pasts are the sparse series of each device that were not 0 once.
	pasts  map[string]past
	owners cachedOwners
}

// cached is a block of gauges with all that it was made from. A judged device is
// never changed, so equal pointers mean equal series.
type cached struct {
	key   cacheKey
	block block
}

type cacheKey struct {
	provider string
	device   *health.Device
	// hidden is how many series the device's history has and does not expose.
	hidden int
}

// New returns a Collector that has observed nothing.
func New(o Options) *Collector {
	if o.Collectors == nil {
		o.Collectors = Defaults()
	}
	c := &Collector{
		metrics:   newMetrics(o.Collectors),
		host:      o.Host,
		asked:     o.Asked,
		light:     o.Light,
		exporter:  o.Exporter,
		include:   o.CountersInclude,
		histories: make(map[string]*history),
		pasts:     make(map[string]past),
	}
	if o.Host == nil {
		c.host = func() *health.Host { return new(health.Host) }
	}
	return c
}

// Observe counts a finished run. It is to be called once for each. It keeps
// nothing of run. A scrape meanwhile does not wait for it.
func (c *Collector) Observe(run *state.Run) {
	if run.Kind == state.KindHardware && run.Device == "" {
		return // That of each device is a run of its own.
	}
	c.history(text.Valid(run.Device)).observe(run)
}

// history returns the history of a device, a new one if there is none.
func (c *Collector) history(device string) *history {
	c.mu.Lock()
	defer c.mu.Unlock()
	h, ok := c.histories[device]
	if !ok {
		h = newHistory(c.metrics, device)
		c.histories[device] = h
	}
	return h
}

// Forget removes all that was counted of a device. A run of it that is observed
// afterwards counts from zero, so the caller must not observe late runs of a
// device that has vanished.
func (c *Collector) Forget(device string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.histories, text.Valid(device))
	delete(c.pasts, text.Valid(device))
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(ch chan<- *prometheus.Desc) {
	for _, f := range c.metrics.families {
		if c.exposes(f) {
			ch <- f.desc
		}
	}
}

// exposes tells whether there can be series of a family.
func (c *Collector) exposes(f *family) bool {
	switch f {
	case c.probeLight:
		return c.light && !f.off
	case c.configOK, c.configLoaded, c.stateWritable, c.logLinesDropped, c.webConfigRead:
		return c.exporter != nil
	default:
		return !f.off
	}
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(ch chan<- prometheus.Metric) {
	for _, b := range c.blocks() {
		for _, s := range b {
			ch <- s
		}
	}
}

// blocks returns all series, device by device. Only what has changed since the
// last call is built anew.
func (c *Collector) blocks() []block {
	host := c.host()
	snapshot := host.Snapshot
	c.mu.Lock()
	defer c.mu.Unlock()

	var blocks []block
	if c.exporter != nil {
		b := newBuilder(c.metrics)
		addSelf(b, c.exporter())
		blocks = append(blocks, b.block())
	}
	if snapshot != nil {
		blocks = append(blocks, c.exporterBlock(host), c.ownersBlock(snapshot))
		blocks = append(blocks, c.deviceBlocks(host)...)
	}
	absent := func(device string) bool { return false }
	if snapshot != nil {
		present := make(map[string]bool, len(snapshot.Devices))
		for _, dev := range snapshot.Devices {
			present[text.Valid(dev.Name)] = dev.Present
		}
		absent = func(device string) bool { return !present[device] }
	}
	for _, device := range slices.Sorted(maps.Keys(c.histories)) {
		// What was counted of a device that vanished is forgotten only when its last
		// child has ended, which one that is stuck may never.
		if !absent(device) {
			blocks = append(blocks, c.histories[device].series.Load().block)
		}
	}
	return blocks
}

func (c *Collector) exporterBlock(h *health.Host) block {
	b := newBuilder(c.metrics)
	addExporter(b, h)
	addHost(b, h)
	if c.asked != nil {
		asked := c.asked()
		addAsked(b, &asked)
	}
	return b.block()
}

// deviceBlocks returns the gauges of the devices of a host, sorted by name,
// and forgets those of all others.
func (c *Collector) deviceBlocks(h *health.Host) []block {
	gauges := make(map[string]cached, len(h.Devices))
	b := newBuilder(c.metrics)
	for _, dev := range h.Devices {
		name := text.Valid(dev.State.Name)
		if _, ok := gauges[name]; ok {
			continue // Of two that cannot be told apart, the worse one is shown.
		}
		key := cacheKey{provider: h.Snapshot.Provider, device: dev}
		if h, ok := c.histories[name]; ok {
			key.hidden = h.series.Load().hidden
		}
		got, ok := c.gauges[name]
		if !ok || got.key != key {
			s := dev.State
			s.Name = name
			got = cached{key, c.deviceBlock(b, key.provider, &s, dev, key.hidden)}
		}
		gauges[name] = got
	}
	c.gauges = gauges

	blocks := make([]block, 0, len(gauges))
	for _, name := range slices.Sorted(maps.Keys(gauges)) {
		blocks = append(blocks, gauges[name].block)
	}
	return blocks
}

func (c *Collector) deviceBlock(b *builder, provider string, s *state.DeviceState, judged *health.Device, hidden int) block {
	findings := judged.Findings
	if c.pasts[s.Name] == nil {
		c.pasts[s.Name] = make(past)
	}
	b.reset(c.pasts[s.Name])
	if !s.Present {
		addVanished(b, s)
		if len(findings) > 0 {
			addFindings(b, s.Name, findings)
			addSince(b, s.Name, findings)
		}
		return b.block()
	}
	addStuck(b, s.Name, s.Stuck)
	// There are few of these, and nothing that a child tells may take their room.
	if findings != nil {
		addFindings(b, s.Name, findings)
		addSince(b, s.Name, findings)
	}
	if s.Resources != nil {
		addInventory(b, s.Name, s.Resources)
	}
	addTime(b, c.probeLastSuccess, s.Name, s.LastSuccess)
	addDevice(b, provider, s.Name, s.Info)
	if s.Last != nil {
		addRun(b, s.Name, s.Last)
	}
	if s.Last != nil && c.light {
		b.truth(c.probeLight, s.Last.Light != nil, s.Name)
	}
	if s.Contracts != nil {
		addContracts(b, s.Name, s.Contracts, findings)
	}
	addUndestroyed(b, s)
	if s.Resources != nil {
		addResources(b, s.Name, s.Info, s.Resources)
	}
	addExhausted(b, s.Name, judged.Exhausted)
	if s.Hardware != nil {
		addHardware(b, s.Name, s.Hardware, c.include)
	}
	b.left++ // What was dropped must be told even if there is no room.
	b.gauge(c.droppedSeries, float64(b.dropped+hidden), s.Name)
	return b.block()
}

// addVanished adds what is still true of a device that is not present: that children
// which were at it do not end.
func addVanished(b *builder, s *state.DeviceState) {
	if s.Stuck != nil {
		addStuck(b, s.Name, s.Stuck)
	}
	if s.Resources != nil && s.Resources.Stuck != nil {
		b.truth(b.inventoryStuck, true, s.Name)
	}
	if s.Hardware != nil && s.Hardware.Stuck != nil {
		addHardwareStuck(b, s.Name, s.Hardware)
	}
}

// Gatherer returns a Gatherer of the series of c and of other, in which c must
// not be registered.
//
// A registry checks and sorts every series at every scrape, which for many
// devices costs several times as much as all the rest. The series of c need
// neither: they are valid and unique by construction, and in order of device.
func (c *Collector) Gatherer(other prometheus.Gatherer) prometheus.Gatherer {
	return c.gatherer(other, c.on)
}

// Only is Gatherer for a scrape that asks for some of the collectors alone, or leaves
// some out. What is of no collector is always there. It returns an error if there is no
// such collector, or it is off.
func (c *Collector) Only(other prometheus.Gatherer, collect, exclude []string) (prometheus.Gatherer, error) {
	chosen, err := c.on.of(collect, exclude)
	if err != nil {
		return nil, err
	}
	return c.gatherer(other, chosen), nil
}

func (c *Collector) gatherer(other prometheus.Gatherer, chosen Choice) prometheus.Gatherer {
	return prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		families, err := other.Gather()
		families = append(families, c.families(chosen)...)
		slices.SortStableFunc(families, func(a, b *dto.MetricFamily) int {
			return strings.Compare(a.GetName(), b.GetName())
		})
		return families, err
	})
}

// families returns the series of c that are of no collector or of one that is chosen,
// by family. The families are the caller's, the series are shared.
func (c *Collector) families(chosen Choice) []*dto.MetricFamily {
	var families []*dto.MetricFamily
	var all []*series
	walk := walkOf(c.blocks())
	for _, f := range c.byName {
		all = slices.AppendSeq(all[:0], walk.of(f))
		if len(all) == 0 || f.collector != "" && !chosen[f.collector] {
			continue
		}
		families = append(families, messageOf(f, new(messages).of(all)))
	}
	return families
}
