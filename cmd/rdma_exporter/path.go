package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kingpin/v2"

	"rdma_exporter/internal/api"
	"rdma_exporter/internal/healthcheck"
	"rdma_exporter/internal/path"
	"rdma_exporter/internal/path/answer"
	"rdma_exporter/internal/path/ask"
	"rdma_exporter/internal/probe/errata"
	"rdma_exporter/internal/probe/session"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/supervisor"
	"rdma_exporter/internal/terminal"
	"rdma_exporter/internal/wire"
)

type pathFlags struct {
	respond  bool
	peerFile string
	config   path.Config

	host     string
	rc, json bool
}

func (f *pathFlags) add(app *kingpin.Application, once bool) {
	app.Flag("peer.file", "List of peers, as file_sd of Prometheus has it, with the label tor: each device asks three of them.").
		PlaceHolder("FILE").StringVar(&f.peerFile)
	if !once {
		app.Flag("peer.respond", "Let other nodes ask the devices of this one whether the path between them works. See docs/path.md.").BoolVar(&f.respond)
	}
}

func (o *options) addPath(app *kingpin.Application) {
	c := app.Command(commandPath, "Ask the devices of another node whether the path between them works, and what is to blame if not.").
		HelpLong(`Asks the exporter of another node, which runs with --peer.respond, for a session on each of its devices, sends it up to nine packets from the device on the same rail, and names what is to blame if they are lost.

The exit status is 0 if all paths work, 1 if one does not, and 2 if nothing can be said: the command line is wrong, there is no device, or the exporter of the other node does not answer or refuses. See docs/path.md.`)
	c.Arg("host", "Host and port of the other exporter. Default port: "+defaultAddress[1:]+".").Required().StringVar(&o.path.host)
	c.Flag("device", "Only the devices whose whole name matches this regular expression.").PlaceHolder("REGEX").RegexpVar(&o.include)
	c.Flag("rc", "Send one message on a reliable connection too, as NCCL does.").BoolVar(&o.path.rc)
	c.Flag("json", "Write the result as JSON.").BoolVar(&o.path.json)
}

// schedule reads the list of peers, and makes the devices ask them if there is one.
func (f *pathFlags) schedule(ctx context.Context, c *supervisor.Config, logger *slog.Logger) (*path.List, error) {
	list, err := path.NewList(ctx, f.config, f.peerFile, logger)
	if err != nil {
		return nil, fmt.Errorf("--peer.file: %w", err)
	}
	if f.peerFile != "" || f.config.DNS != "" {
		c.Paths.Interval = f.config.Interval
	}
	c.Paths.Peers = list.Targets
	c.Paths.Slot = func(peer string, after time.Time) time.Time { return path.NextSlot(peer, f.config.Interval, after) }
	return list, nil
}

// responder returns what answers other nodes. Without requests it does nothing.
func (f *pathFlags) responder(children *commands, snapshot func() *state.Snapshot, list *path.List) *answer.Responder {
	allow, _ := f.config.Networks() // They are valid.
	return answer.New(answer.Config{
		Start: func(device string) (answer.Child, error) {
			return answer.StartProcess(children.start(commandAnswer, device, wire.Request{}))
		},
		Devices: func() []path.Device { return answer.Devices(snapshot(), f.config, list.ToR) },
		Allow:   allow,
	})
}

// askPeer is the command ask, after its preparation.
func askPeer(ctx context.Context, in wire.Input[settings], driver errata.Driver, o session.Options) error {
	peers := &in.Settings.Peers
	client, err := healthcheck.Client("path.http_config_file", peers.HTTPConfigFile)
	if err != nil || in.Request.Path == nil {
		return cmp.Or(err, errors.New("the request has no peer"))
	}
	return ask.Run(ctx, ask.Options{
		Options: o, Path: *in.Request.Path, RC: in.Request.RC, Client: client, Base: peers.Scheme + "://" + in.Request.Path.Peer,
		HasFlowLabels: slices.Contains([]string{"mlx5", "mlx5_core", "hns"}, driver.Name),
	})
}

// runPath is the command path.
func runPath(ctx context.Context, o *options, std stdio) int {
	var b strings.Builder
	found, err := askAll(ctx, o)
	if err == nil {
		err = terminal.WritePaths(&b, found, terminal.Detect(file(std.out), os.Getenv))
	}
	if err == nil {
		err = writeResult(b.String(), found, o.path.json, std)
	}
	if err != nil {
		complain(std, err)
		return exitUsage
	}
	status := exitOK
	for _, p := range found {
		switch {
		case !p.Tried():
			status = max(status, exitUsage)
		case p.Failed():
			return exitFailed
		}
	}
	return status
}

// askAll asks from each device.
func askAll(ctx context.Context, o *options) (found []api.PathRow, err error) {
	target := o.path.host
	if _, _, err := net.SplitHostPort(target); err != nil {
		target = net.JoinHostPort(target, defaultAddress[1:])
	}
	s, names, _, err := o.byHand()
	if err == nil && len(names) == 0 {
		err = errors.New("there is no RDMA device, or --device matches none")
	}
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		p, err := s.Ask(ctx, name, state.Path{Peer: target, Rail: o.path.config.RailOf(name), ToR: o.path.config.ToR}, o.path.rc)
		if err != nil {
			return nil, fmt.Errorf("ask from %s: %w", name, err)
		}
		found = append(found, api.PathRows(name, []state.PathState{p}, time.Now())...)
	}
	return found, nil
}
