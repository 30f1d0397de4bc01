package path

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cespare/xxhash/v2"
	"go.yaml.in/yaml/v3"

	"rdma_exporter/internal/input"
	"rdma_exporter/internal/state"
)

// Config is the key path of the configuration file.
type Config struct {
	// Interval is the time between two runs on a pair of devices.
	Interval time.Duration `yaml:"interval"`
	// Self is this host as the list of peers has it. Empty means the entry with a name or address of it.
	Self string `yaml:"self"`
	ToR  string `yaml:"tor"`
	// Rails has the rails of devices by name. The rail of any other is its name.
	Rails map[string]string `yaml:"rails"`
	// DNS is a name and a port. Each address that the name has is a peer.
	DNS string `yaml:"dns"`
	// Allow are the networks whose hosts may ask the devices of this one. Empty means all.
	Allow []string `yaml:"allow"`
	// Listen is an address of its own for the API. Empty means that of the metrics.
	Listen string `yaml:"listen"`
	// Scheme is http or https. HTTPConfigFile is a file with the credentials for peers, as other
	// programs of Prometheus have it.
	Scheme         string `yaml:"scheme"`
	HTTPConfigFile string `yaml:"http_config_file"`
}

// DefaultConfig returns the defaults.
func DefaultConfig() Config { return Config{Interval: 5 * time.Minute, Scheme: "http"} }

// minInterval keeps one run a minute, with three peers.
const minInterval = 3 * time.Minute

// Validate returns an error that names each key that cannot be used.
func (c *Config) Validate() error {
	var errs []error
	if c.Interval < minInterval {
		errs = append(errs, fmt.Errorf("path.interval is %s: use a duration from %s", c.Interval, minInterval))
	}
	if c.Scheme != "http" && c.Scheme != "https" {
		errs = append(errs, fmt.Errorf("path.scheme is %q: use http or https", c.Scheme))
	}
	for _, a := range []struct{ key, address string }{{"dns", c.DNS}, {"listen", c.Listen}} {
		if _, _, err := net.SplitHostPort(a.address); a.address != "" && err != nil {
			errs = append(errs, fmt.Errorf("path.%s is %q: use NAME:PORT: %w", a.key, a.address, err))
		}
	}
	_, err := c.Networks()
	return errors.Join(append(errs, err)...)
}

// Networks returns the networks whose hosts may ask.
func (c *Config) Networks() (list []netip.Prefix, err error) {
	for i, n := range c.Allow {
		p, parseErr := netip.ParsePrefix(n)
		if parseErr != nil {
			err = errors.Join(err, fmt.Errorf("path.allow[%d] is %q: use a network such as 10.0.0.0/8", i, n))
		}
		list = append(list, p)
	}
	return list, err
}

// RailOf returns the rail of a device.
func (c *Config) RailOf(device string) string { return cmp.Or(c.Rails[device], device) }

// Peer is an entry of the list of peers. Rail limits it to the devices on a rail; empty means all.
type Peer struct{ Target, ToR, Rail string }

// ReadPeers reads a list of peers in the form of file_sd of Prometheus, YAML or JSON.
func ReadPeers(file string) (peers []Peer, err error) {
	b, err := input.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var groups []struct {
		Targets []string          `yaml:"targets"`
		Labels  map[string]string `yaml:"labels"`
	}
	if err := yaml.Unmarshal(b, &groups); err != nil {
		return nil, fmt.Errorf("%s: use a list with targets and labels, as file_sd of Prometheus has it: %w", file, err)
	}
	for _, g := range groups {
		for _, t := range g.Targets {
			if _, _, err := net.SplitHostPort(t); err != nil {
				return nil, fmt.Errorf("%s: the target %q is not HOST:PORT: %w", file, t, err)
			}
			peers = append(peers, Peer{Target: t, ToR: g.Labels["tor"], Rail: g.Labels["rail"]})
		}
	}
	return peers, nil
}

// LookupPeers returns a peer for each address of a name, or for each of IPv4 if there are any, since
// a host with both kinds is one peer. resolve is that of net.Resolver.
func LookupPeers(ctx context.Context, resolve func(ctx context.Context, network, host string) ([]netip.Addr, error), namePort string) (peers []Peer, err error) {
	name, port, _ := net.SplitHostPort(namePort) // It is valid.
	all, err := resolve(ctx, "ip", name)
	is4 := func(a netip.Addr) bool { return a.Unmap().Is4() }
	has4 := slices.ContainsFunc(all, is4)
	for _, a := range all {
		if is4(a) == has4 {
			peers = append(peers, Peer{Target: net.JoinHostPort(a.Unmap().String(), port)})
		}
	}
	return peers, err
}

// Split returns the entry of this host and the others. It is the one called self, or else the first
// with a name or an address that the host has. No other entry of this host is a peer.
func Split(peers []Peer, self string) (own Peer, others []Peer) {
	name, _ := os.Hostname()
	names := []string{name}
	addresses, _ := net.InterfaceAddrs() // Names may do.
	for _, a := range addresses {
		ip, _, _ := strings.Cut(a.String(), "/")
		names = append(names, ip)
	}
	for _, p := range peers {
		host, _, _ := net.SplitHostPort(p.Target)
		switch isOwn := slices.Contains(names, host); {
		case p.Target == self, self == "" && isOwn && own.Target == "":
			own = p
		case !isOwn:
			others = append(others, p)
		}
	}
	own.Target = cmp.Or(own.Target, self, name)
	return own, others
}

// Choose returns the peers that a node asks. All nodes stand on a circle in the order of hashes of
// their names. Each asks the next two of its own ToR and the next one of another, so that each is
// asked by as many, and a node that joins or leaves changes little. If there are too few of one
// kind, others take their place.
func Choose(self Peer, peers []Peer) (chosen []Peer) {
	distance := func(p Peer) uint64 { return xxhash.Sum64String(p.Target) - xxhash.Sum64String(self.Target) }
	near := func(p Peer) bool { return p.ToR == self.ToR }
	far := func(p Peer) bool { return !near(p) }
	all := func(Peer) bool { return true }
	const asked = 3
	for _, fits := range []func(Peer) bool{near, near, far, all, all} {
		rest := slices.DeleteFunc(slices.Clone(peers), func(p Peer) bool {
			return !fits(p) || p.Target == self.Target || slices.ContainsFunc(chosen, func(c Peer) bool { return c.Target == p.Target })
		})
		if len(rest) > 0 && len(chosen) < asked {
			chosen = append(chosen, slices.MinFunc(rest, func(a, b Peer) int { return cmp.Compare(distance(a), distance(b)) }))
		}
	}
	return chosen
}

// NextSlot returns when a target is asked next after a time: once in each interval, by all that
// ask it at once.
func NextSlot(target string, interval time.Duration, after time.Time) time.Time {
	offset := time.Duration(xxhash.Sum64String(target) % uint64(interval))
	slot := after.Truncate(interval).Add(offset)
	if !slot.After(after) {
		slot = slot.Add(interval)
	}
	return slot
}

// listTime is how often the list of peers is read, and how long a look-up may take.
const listTime = time.Minute

// List is the peers that this node asks. Its methods are safe for concurrent use.
type List struct {
	c      Config
	file   string
	logger *slog.Logger
	all    atomic.Pointer[[]Peer]
	failed bool // only of read
}

// NewList reads the list of peers for the first time. The error names the file. A name that DNS
// does not know yet is not an error. Without a file and a name, the list is empty.
func NewList(ctx context.Context, c Config, file string, logger *slog.Logger) (*List, error) {
	l := &List{c: c, file: file, logger: logger}
	l.all.Store(new([]Peer))
	if err := l.read(ctx); err != nil && file != "" {
		return nil, err
	}
	return l, nil
}

// Run reads the list each minute until ctx is done. A list that cannot be read changes nothing.
func (l *List) Run(ctx context.Context) {
	for {
		select {
		case <-time.After(listTime):
			_ = l.read(ctx) // It is logged.
		case <-ctx.Done():
			return
		}
	}
}

func (l *List) read(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, listTime)
	defer cancel()
	var peers []Peer
	var err error
	switch {
	case l.file != "":
		peers, err = ReadPeers(l.file)
	case l.c.DNS != "":
		peers, err = LookupPeers(ctx, net.DefaultResolver.LookupNetIP, l.c.DNS)
	}
	if err != nil {
		if !l.failed {
			l.logger.Warn("Cannot read the list of peers; the known ones are kept", "err", err)
		}
		l.failed = true
		return fmt.Errorf("read the list of peers: %w", err)
	}
	if len(peers) != len(*l.all.Load()) || l.failed {
		self, others := Split(peers, l.c.Self)
		l.logger.Info("Peers read", "listed", len(peers), "self_is_listed", len(others) < len(peers), "self", self.Target)
	}
	l.failed = false
	l.all.Store(&peers)
	return nil
}

// of returns this node's own entry for a rail, and the others. Where each rail has targets of its
// own, so has this node.
func (l *List) of(rail string) (self Peer, others []Peer) {
	self, others = Split(slices.DeleteFunc(slices.Clone(*l.all.Load()), func(p Peer) bool { return p.Rail != "" && p.Rail != rail }), l.c.Self)
	self.ToR = cmp.Or(l.c.ToR, self.ToR)
	return self, others
}

// ToR returns that of a device. It is empty if unknown.
func (l *List) ToR(device string) string {
	self, _ := l.of(l.c.RailOf(device))
	return self.ToR
}

// Targets returns the peers that a device asks.
func (l *List) Targets(device string) (targets []state.Path) {
	rail := l.c.RailOf(device)
	self, others := l.of(rail)
	for _, p := range Choose(self, others) {
		targets = append(targets, state.Path{Peer: p.Target, Rail: rail, ToR: self.ToR, PeerToR: p.ToR})
	}
	return targets
}
