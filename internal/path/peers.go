package path

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
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

// LookupPeers returns a peer for each address of a name.
func LookupPeers(ctx context.Context, namePort string) (peers []Peer, err error) {
	name, port, err := net.SplitHostPort(namePort)
	if err != nil {
		return nil, fmt.Errorf("look up peers: %w", err)
	}
	addresses, err := net.DefaultResolver.LookupHost(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("look up peers: %w", err)
	}
	for _, a := range addresses {
		peers = append(peers, Peer{Target: net.JoinHostPort(a, port)})
	}
	return peers, nil
}

// Itself returns the entry of this host: the one called self, or else one with a name or an
// address that the host has.
func Itself(peers []Peer, self string) (Peer, bool) {
	name, err := os.Hostname()
	if err != nil {
		name = "localhost"
	}
	own := []string{name}
	addresses, _ := net.InterfaceAddrs() // Names may do.
	for _, a := range addresses {
		if ip, ok := a.(*net.IPNet); ok {
			own = append(own, ip.IP.String())
		}
	}
	i := slices.IndexFunc(peers, func(p Peer) bool {
		host, _, _ := net.SplitHostPort(p.Target)
		return p.Target == self || self == "" && slices.Contains(own, host)
	})
	if i < 0 {
		return Peer{Target: cmp.Or(self, name)}, false
	}
	return peers[i], true
}

// near and far are how many peers a node asks on its own ToR and elsewhere.
const near, far = 2, 1

// Choose returns the peers that a node asks. All nodes stand on a circle in the order of hashes of
// their names. Each asks the next two of its own ToR and the next one of another, so that each is
// asked by as many, and a node that joins or leaves changes little. If there are too few of one
// kind, others take their place.
func Choose(self Peer, peers []Peer) (chosen []Peer) {
	own := Hash(self.Target)
	take := func(n int, fits func(Peer) bool) {
		for ; n > 0; n-- {
			next, distance := -1, uint64(0)
			for i, p := range peers {
				if p.Target == self.Target || !fits(p) || slices.ContainsFunc(chosen, func(c Peer) bool { return c.Target == p.Target }) {
					continue
				}
				if d := Hash(p.Target) - own; next < 0 || d < distance {
					next, distance = i, d
				}
			}
			if next < 0 {
				return
			}
			chosen = append(chosen, peers[next])
		}
	}
	take(near, func(p Peer) bool { return p.ToR == self.ToR })
	take(far, func(p Peer) bool { return p.ToR != self.ToR })
	take(near+far-len(chosen), func(Peer) bool { return true })
	return chosen
}

// Hash returns where a name is on the circle, and in the interval.
func Hash(name string) uint64 {
	const basis, prime = 14695981039346656037, 1099511628211 // FNV-1a
	x := uint64(basis)
	for i := range len(name) {
		x = (x ^ uint64(name[i])) * prime
	}
	// The last bytes of similar names change few of its upper bits.
	const odd = 0x9e3779b97f4a7c15
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
