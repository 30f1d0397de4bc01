package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
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

// schedule makes the devices ask peers, if any are configured.
func (f *pathFlags) schedule(ctx context.Context, c *supervisor.Config, logger *slog.Logger) (list *path.List, err error) {
	if f.peerFile == "" && f.config.DNS == "" {
		return nil, nil
	}
	list, err = path.NewList(ctx, f.config, f.peerFile, logger)
	if err != nil {
		return nil, fmt.Errorf("--peer.file: %w", err)
	}
	c.Paths.Interval, c.Paths.Peers = f.config.Interval, list.Targets
	c.Paths.Slot = func(peer string, after time.Time) time.Time { return path.NextSlot(peer, f.config.Interval, after) }
	return list, nil
}

// responder returns what answers other nodes. Without requests it does nothing.
func (f *pathFlags) responder(children *commands, snapshot func() *state.Snapshot, list *path.List, ended <-chan struct{}) (*answer.Responder, error) {
	tor := func(string) string { return f.config.ToR }
	if list != nil {
		tor = list.ToR
	}
	allow, err := f.config.Networks()
	return answer.New(answer.Config{
		Start: func(device string) (answer.Child, error) {
			return answer.StartProcess(children.start(commandAnswer, device, wire.Request{}))
		},
		Devices: func() []path.Device { return answer.Devices(snapshot(), f.config, tor) },
		Allow:   allow, Ended: ended,
	}), err
}

// askPeer is the command ask, after its preparation.
func askPeer(ctx context.Context, in wire.Input[settings], driver errata.Driver, o session.Options) error {
	s, target := in.Settings, in.Request.Path
	client, err := healthcheck.Client("path.http_config_file", s.Peers.HTTPConfigFile)
	if err != nil {
		return err
	}
	return ask.Run(ctx, ask.Options{
		Options: o, Target: target, Reduced: reducedFor(ctx, s, o.Device), Client: client, Base: s.Peers.Scheme + "://" + target.Peer,
		HasFlowLabels: slices.Contains([]string{"mlx5", "mlx5_core", "hns"}, driver.Name),
	})
}

// runPath is the command path.
func runPath(ctx context.Context, o *options, std stdio) int {
	found, err := askAll(ctx, o)
	if err == nil {
		err = writePaths(found, o, std)
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
	config, _, err := o.supervise()
	if err != nil {
		return nil, err
	}
	names, err := config.Discover()
	if err == nil && len(names) == 0 {
		err = errors.New("there is no RDMA device, or --device matches none")
	}
	s, newErr := supervisor.New(config)
	if err := cmp.Or(err, newErr); err != nil {
		return nil, err
	}
	slices.Sort(names)
	for _, name := range names {
		t := wire.PathTarget{Peer: target, Rail: o.path.config.RailOf(name), ToR: o.path.config.ToR, RC: o.path.rc}
		run, err := s.Ask(ctx, name, t)
		if err != nil {
			return nil, fmt.Errorf("ask from %s: %w", name, err)
		}
		p := run.Path
		if p == nil {
			p = &state.Path{Peer: target, Result: state.PathRefused, Detail: "the device is in use, and --probe.when=idle: " + run.Reduced.Detail}
		}
		d := state.DeviceState{Name: name, Paths: []state.PathState{state.PathState{}.Next(*p, run.Started)}}
		found = append(found, api.PathRows(&d, time.Now())...)
	}
	return found, nil
}

func writePaths(found []api.PathRow, o *options, std stdio) (err error) {
	var b bytes.Buffer
	if o.path.json {
		e := json.NewEncoder(&b)
		e.SetIndent("", "  ")
		err = e.Encode(found)
	} else {
		err = terminal.WritePaths(&b, found, terminal.Detect(file(std.out), os.Getenv))
	}
	if err != nil {
		return fmt.Errorf("encode the result: %w", err)
	}
	return writeOut(b.Bytes(), std)
}
