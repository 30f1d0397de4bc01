package path

import (
	"context"
	"fmt"
	"log/slog"
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
	self   Peer
	chosen []Peer
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
	self, listed := Itself(peers, l.c.Self)
	if l.c.ToR != "" {
		self.ToR = l.c.ToR
	}
	chosen := Choose(self, peers)
	if len(chosen) != len(l.chosen) || l.failed {
		l.logger.Info("Peers chosen", "listed", len(peers), "asked", len(chosen), "self_is_listed", listed, "tor", self.ToR)
	}
	l.self, l.chosen, l.failed = self, chosen, false
	return nil
}

// ToR returns that of this node. It is empty if unknown.
func (l *List) ToR() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.self.ToR
}

// Targets returns the peers that a device asks.
func (l *List) Targets(device string) (targets []wire.PathTarget) {
	l.mu.Lock()
	defer l.mu.Unlock()
	rail := l.c.RailOf(device)
	for _, p := range l.chosen {
		if p.Rail == "" || p.Rail == rail {
			targets = append(targets, wire.PathTarget{Peer: p.Target, Rail: rail, ToR: l.self.ToR, PeerToR: p.ToR})
		}
	}
	return targets
}
