package path

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"rdma_exporter/internal/wire"
)

// listTime is how often the list of peers is read, and how long a look-up may take.
const listTime = time.Minute

// List is the peers that this node asks. Its methods are safe for concurrent use.
type List struct {
	c      Config
	file   string
	logger *slog.Logger

	mu     sync.Mutex
	all    []Peer
	failed bool
	// rails has what the devices of each rail ask, since the list was read.
	rails map[string]choice
}

// choice is this node's own entry, and the peers that it asks.
type choice struct {
	self  Peer
	peers []Peer
}

// NewList reads the list of peers for the first time. The error names the file. A name that DNS
// does not know yet is not an error.
func NewList(ctx context.Context, c Config, file string, logger *slog.Logger) (*List, error) {
	l := &List{c: c, file: file, logger: logger, rails: make(map[string]choice)}
	err := l.read(ctx)
	if file == "" {
		return l, nil
	}
	return l, err
}

// Run reads the list each minute until ctx is done. A list that cannot be read changes nothing.
func (l *List) Run(ctx context.Context) {
	tick := time.NewTicker(listTime)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
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
	if l.file != "" {
		peers, err = ReadPeers(l.file)
	} else {
		peers, err = LookupPeers(ctx, l.c.DNS)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		if !l.failed {
			l.logger.Warn("Cannot read the list of peers; the known ones are kept", "err", err)
		}
		l.failed = true
		return fmt.Errorf("read the list of peers: %w", err)
	}
	if len(peers) != len(l.all) || l.failed {
		self, listed := Itself(peers, l.c.Self)
		l.logger.Info("Peers read", "listed", len(peers), "self_is_listed", listed, "self", self.Target)
	}
	l.all, l.failed, l.rails = peers, false, make(map[string]choice)
	return nil
}

// of returns the choice of a rail. Where each rail has targets of its own, so has this node.
// Caller holds mu.
func (l *List) of(rail string) choice {
	c, known := l.rails[rail]
	if !known {
		peers := slices.DeleteFunc(slices.Clone(l.all), func(p Peer) bool { return p.Rail != "" && p.Rail != rail })
		c.self, _ = Itself(peers, l.c.Self)
		c.self.ToR = cmp.Or(l.c.ToR, c.self.ToR)
		c.peers = Choose(c.self, peers)
		l.rails[rail] = c
	}
	return c
}

// ToR returns that of a device. It is empty if unknown.
func (l *List) ToR(device string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.of(l.c.RailOf(device)).self.ToR
}

// Targets returns the peers that a device asks.
func (l *List) Targets(device string) (targets []wire.PathTarget) {
	l.mu.Lock()
	defer l.mu.Unlock()
	rail := l.c.RailOf(device)
	c := l.of(rail)
	for _, p := range c.peers {
		targets = append(targets, wire.PathTarget{Peer: p.Target, Rail: rail, ToR: c.self.ToR, PeerToR: p.ToR})
	}
	return targets
}
