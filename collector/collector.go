package collector

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"rdma_exporter/internal/health"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/text"
)

// Options configure a Collector.
type Options struct {
	// Host returns the evaluated state of the devices. Each scrape calls it, concurrently.
	// It must not wait for a device, and callers must not modify the result. If nil, only
	// counters and histograms are exposed.
	Host func() *health.Host
	// Collectors are the collectors that are on. Nil means the defaults.
	Collectors Choice
	// Asked returns the sizes that the probes request, for every device and type of queue
	// pair, under the same terms as Host. If nil, they are not exposed.
	Asked func() state.Probe
	// Sizes identifies these sizes, see [state.Run.Sizes].
	Sizes func() string
	// Light is true if runs may be light. Only then is it exposed which are.
	Light bool
	// Exporter returns the exporter's own state, under the same terms as Host. If nil, it
	// is not exposed.
	Exporter func() Exporter
	// Sessions returns how many sessions peers requested, by the result, under the same terms
	// as Host. If nil, they are not exposed.
	Sessions func() map[string]uint64
}

// Collector holds the counters and histograms of the observed runs, and reads gauges from
// the latest snapshot. It is a prometheus.Collector. All its methods are safe for
// concurrent use.
type Collector struct {
	*table
	options Options

	mu        sync.Mutex
	histories map[string]*history
	// pasts are the sparse series of each device that were not 0 once.
	pasts  map[string]past
	owners ownerNames
}

// New returns a Collector that has observed no run.
func New(o Options) *Collector {
	if o.Collectors == nil {
		o.Collectors = Defaults()
	}
	if o.Host == nil {
		o.Host = func() *health.Host { return new(health.Host) }
	}
	return &Collector{
		table: newTable(o.Collectors), options: o,
		histories: make(map[string]*history), pasts: make(map[string]past),
	}
}

// Observe counts a finished run. Callers must call it once for each. It keeps no reference
// to run.
func (c *Collector) Observe(run *state.Run) {
	if run.Kind == state.KindHardware && run.Device == "" {
		return // Each device has a run of its own.
	}
	c.history(text.Valid(run.Device)).observe(run)
}

func (c *Collector) history(device string) *history {
	c.mu.Lock()
	defer c.mu.Unlock()
	h, ok := c.histories[device]
	if !ok {
		h = newHistory(c.table, device)
		c.histories[device] = h
	}
	return h
}

// Forget removes all counts of a device. A run of it that is observed afterwards counts
// from zero, so callers must not observe late runs of a vanished device.
func (c *Collector) Forget(device string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.histories, text.Valid(device))
	delete(c.pasts, text.Valid(device))
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(ch chan<- *prometheus.Desc) {
	for _, f := range c.families {
		if !f.off {
			ch <- f.desc
		}
	}
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(ch chan<- prometheus.Metric) { c.collect(c.on, ch) }

// Only returns a collector for a scrape that requests or excludes collectors by name.
// Metrics of no collector are always exposed. It returns an error if a name is unknown, or
// the collector is off.
func (c *Collector) Only(collect, exclude []string) (prometheus.Collector, error) {
	chosen, err := c.on.of(collect, exclude)
	if err != nil {
		return nil, err
	}
	return selection{c, chosen}, nil
}

// selection exposes the chosen collectors.
type selection struct {
	*Collector
	chosen Choice
}

// Collect implements prometheus.Collector.
func (s selection) Collect(ch chan<- prometheus.Metric) { s.collect(s.chosen, ch) }

func (c *Collector) collect(chosen Choice, ch chan<- prometheus.Metric) {
	host := c.options.Host()
	for _, b := range c.builders(host) {
		b.send(chosen, ch)
	}
	for _, h := range c.present(host.Snapshot) {
		h.collect(chosen, ch)
	}
}

func (b *builder) send(chosen Choice, ch chan<- prometheus.Metric) {
	for _, s := range b.samples {
		if s.family.in(chosen) {
			ch <- s.metric
		}
	}
}

// present returns the histories to expose: without those of devices that are not present.
// A vanished device is forgotten only when its last child has ended, which a stuck one may
// never do.
func (c *Collector) present(s *state.Snapshot) []*history {
	present := make(map[string]bool)
	if s != nil {
		for i := range s.Devices {
			present[text.Valid(s.Devices[i].Name)] = s.Devices[i].Present
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []*history
	for device, h := range c.histories {
		if s == nil || present[device] {
			all = append(all, h)
		}
	}
	return all
}

func (c *Collector) builders(host *health.Host) []*builder {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := newBuilder(c.table, nil, &c.owners)
	all := []*builder{b}
	if c.options.Exporter != nil {
		addSelf(b, c.options.Exporter())
	}
	if c.options.Sessions != nil {
		for result, n := range c.options.Sessions() {
			b.counter("rdma_path_sessions_total", n, result)
		}
	}
	if host.Snapshot == nil {
		return all
	}
	addExporter(b, host)
	if r := host.Snapshot.Hardware; r != nil {
		b.gauge("rdma_hardware_duration_seconds", r.Duration.Seconds())
	}
	if c.options.Asked != nil {
		asked := c.options.Asked()
		addAsked(b, &asked)
	}
	addProcesses(b, host.Snapshot)
	seen := make(map[string]bool)
	for _, judged := range host.Devices {
		s := judged.State
		s.Name = text.Valid(s.Name)
		// If cleaning made two names equal, only the worse device is exposed.
		if !seen[s.Name] {
			seen[s.Name] = true
			all = append(all, c.device(host.Snapshot.Provider, &s, judged))
		}
	}
	return all
}

// Caller holds mu.
func (c *Collector) device(provider string, s *state.DeviceState, judged *health.Device) *builder {
	if c.pasts[s.Name] == nil {
		c.pasts[s.Name] = make(past)
	}
	b := newBuilder(c.table, c.pasts[s.Name], &c.owners)
	// There are few of these, and no report of a child may take their place.
	findings := func() {
		if judged.Findings != nil && (s.Present || len(judged.Findings) > 0) {
			addFindings(b, s.Name, judged.Findings)
		}
	}
	if !s.Present {
		addVanished(b, s)
		findings()
		return b
	}
	addStuck(b, s.Name, s.Stuck)
	findings()
	if s.Resources != nil {
		addInventory(b, s.Name, s.Resources)
	}
	b.timestamp("rdma_probe_last_success_timestamp_seconds", s.LastSuccess, s.Name)
	addDevice(b, provider, s.Name, s.Info)
	if s.Last != nil {
		sizes := ""
		if c.options.Sizes != nil {
			sizes = c.options.Sizes()
		}
		addRun(b, s.Name, s, sizes)
		if c.options.Light {
			b.boolGauge("rdma_probe_light", s.Last.Reduced != nil, s.Name)
		}
	}
	if s.Contracts != nil {
		addContracts(b, s.Name, s.Contracts, judged.Findings)
	}
	addUndestroyed(b, s)
	if s.Resources != nil {
		addResources(b, s.Name, s.Info, s.Resources)
	}
	addExhausted(b, s.Name, judged.Exhausted)
	if s.Hardware != nil {
		addHardware(b, s)
	}
	addPaths(b, s.Name, s.Paths)
	addBandwidth(b, s.Name, s.Bandwidth)
	hidden := 0
	if h, ok := c.histories[s.Name]; ok {
		hidden = h.hidden()
	}
	b.left++ // The number of dropped series must fit.
	b.gauge("rdma_exporter_dropped_series", float64(b.dropped+hidden), s.Name)
	return b
}

// addVanished adds children of an absent device that have not exited.
func addVanished(b *builder, s *state.DeviceState) {
	if s.Stuck != nil {
		addStuck(b, s.Name, s.Stuck)
	}
	if s.Resources != nil && s.Resources.Stuck != nil {
		b.boolGauge("rdma_inventory_stuck", true, s.Name)
	}
	if s.Hardware != nil && s.Hardware.Stuck != nil {
		addHardwareStuck(b, s.Name, s.Hardware)
	}
}
