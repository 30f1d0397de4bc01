package path

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
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
}

// NewList reads the list of peers for the first time. The error names the file. A name that DNS
// does not know yet is not an error.
func NewList(ctx context.Context, c Config, file string, logger *slog.Logger) (*List, error) {
	l := &List{c: c, file: file, logger: logger}
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
		peers, err = LookupPeers(ctx, net.DefaultResolver.LookupNetIP, l.c.DNS)
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
		self, listed, _ := Split(peers, l.c.Self)
		l.logger.Info("Peers read", "listed", len(peers), "self_is_listed", listed, "self", self.Target)
	}
	l.all, l.failed = peers, false
	return nil
}

// of returns this node's own entry for a rail, and the others. Where each rail has targets of its
// own, so has this node.
func (l *List) of(rail string) (self Peer, others []Peer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	self, _, others = Split(slices.DeleteFunc(slices.Clone(l.all), func(p Peer) bool { return p.Rail != "" && p.Rail != rail }), l.c.Self)
	self.ToR = cmp.Or(l.c.ToR, self.ToR)
	return self, others
}

// ToR returns that of a device. It is empty if unknown.
func (l *List) ToR(device string) string {
	self, _ := l.of(l.c.RailOf(device))
	return self.ToR
}

// Targets returns the peers that a device asks.
func (l *List) Targets(device string) (targets []wire.PathTarget) {
	rail := l.c.RailOf(device)
	self, others := l.of(rail)
	for _, p := range Choose(self, others) {
		targets = append(targets, wire.PathTarget{Peer: p.Target, Rail: rail, ToR: self.ToR, PeerToR: p.ToR})
	}
	return targets
}
