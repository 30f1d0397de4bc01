package path

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"net"
	"net/netip"
	"os"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"

	"rdma_exporter/internal/input"
)

// Config is the key path of the configuration file.
type Config struct {
	// Interval is the time between two runs on a pair of devices.
	Interval time.Duration `yaml:"interval"`
	// Self is this host as the list of peers has it. Empty means the entry with its host name.
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

// Lookup is how the addresses of a name are found, as by net.Resolver.
type Lookup func(ctx context.Context, network, host string) ([]netip.Addr, error)

// LookupPeers returns a peer for each address of a name. A host that has IPv6 too is one peer: where
// there are addresses of IPv4, they are the peers.
func LookupPeers(ctx context.Context, lookup Lookup, namePort string) (peers []Peer, err error) {
	name, port, _ := net.SplitHostPort(namePort) // It is valid.
	addresses, err := lookup(ctx, "ip", name)
	if err != nil {
		return nil, fmt.Errorf("look up peers: %w", err)
	}
	is4 := func(a netip.Addr) bool { return a.Unmap().Is4() }
	one := slices.ContainsFunc(addresses, is4)
	for _, a := range addresses {
		if is4(a) == one {
			peers = append(peers, Peer{Target: net.JoinHostPort(a.Unmap().String(), port)})
		}
	}
	return peers, nil
}

// Split returns the entry of this host and the others. It is the one called self, or else the first
// with a name or an address that the host has. No other entry of this host is a peer.
func Split(peers []Peer, self string) (own Peer, listed bool, others []Peer) {
	name, err := os.Hostname()
	if err != nil {
		name = "localhost"
	}
	names := []string{name}
	addresses, _ := net.InterfaceAddrs() // Names may do.
	for _, a := range addresses {
		if ip, ok := a.(*net.IPNet); ok {
			names = append(names, ip.IP.String())
		}
	}
	own.Target = cmp.Or(self, name)
	for _, p := range peers {
		host, _, _ := net.SplitHostPort(p.Target)
		switch isOwn := slices.Contains(names, host); {
		case p.Target == self, self == "" && isOwn && !listed:
			own, listed = p, true
		case !isOwn:
			others = append(others, p)
		}
	}
	return own, listed, others
}

// asked is how many peers a node asks.
const asked = 3

// Choose returns the peers that a node asks. All nodes stand on a circle in the order of hashes of
// their names. Each asks the next two of its own ToR and the next one of another, so that each is
// asked by as many, and a node that joins or leaves changes little. If there are too few of one
// kind, others take their place.
func Choose(self Peer, peers []Peer) (chosen []Peer) {
	own := Hash(self.Target)
	distance := func(a, b Peer) int { return cmp.Compare(Hash(a.Target)-own, Hash(b.Target)-own) }
	near, far, other := func(p Peer) bool { return p.ToR == self.ToR }, func(p Peer) bool { return p.ToR != self.ToR }, func(Peer) bool { return true }
	for _, fits := range []func(Peer) bool{near, near, far, other, other} {
		rest := slices.DeleteFunc(slices.Clone(peers), func(p Peer) bool {
			return !fits(p) || p.Target == self.Target || slices.ContainsFunc(chosen, func(c Peer) bool { return c.Target == p.Target })
		})
		if len(rest) > 0 && len(chosen) < asked {
			chosen = append(chosen, slices.MinFunc(rest, distance))
		}
	}
	return chosen
}

// Hash returns where a name is on the circle, and in the interval.
func Hash(name string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(name))
	// The last bytes of similar names change few of its upper bits.
	const odd = 0x9e3779b97f4a7c15
	x := h.Sum64()
	x = (x ^ x>>32) * odd
	return (x ^ x>>29) * odd
}

// NextSlot returns when a target is asked next after a time: once in each interval, by all that
// ask it at once.
func NextSlot(target string, interval time.Duration, after time.Time) time.Time {
	offset := time.Duration(Hash(target) % uint64(interval))
	slot := after.Truncate(interval).Add(offset)
	if !slot.After(after) {
		slot = slot.Add(interval)
	}
	return slot
}
