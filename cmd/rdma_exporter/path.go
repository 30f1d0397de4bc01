package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"time"

	"github.com/alecthomas/kingpin/v2"
	httpconfig "github.com/prometheus/common/config"

	"rdma_exporter/internal/input"
	"rdma_exporter/internal/path"
	"rdma_exporter/internal/path/answer"
	"rdma_exporter/internal/path/ask"
	"rdma_exporter/internal/probe/session"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/supervisor"
	"rdma_exporter/internal/terminal"
	"rdma_exporter/internal/wire"
)

// askTime is the time limit for asking one peer: three requests, address handles, and packets.
const askTime = 45 * time.Second

// peerSettings are what a child needs to ask a peer.
type peerSettings struct {
	Scheme string `json:"scheme"`
	// HTTP is the content of path.http_config_file.
	HTTP string `json:"http,omitempty"`
}

type pathFlags struct {
	respond  bool
	peerFile string
	config   path.Config
	peers    peerSettings

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
		HelpLong(`Asks the exporter of another node, which runs with --peer.respond, for a session on each of its devices, sends it nine packets from the device on the same rail, and names what is to blame if they are lost.

The exit status is 0 if all paths work, 1 if one does not, and 2 if nothing can be said: the command line is wrong, there is no device, or the exporter of the other node does not answer or refuses. See docs/path.md.`)
	c.Arg("host", "Host and port of the other exporter. Default port: "+defaultAddress[1:]+".").Required().StringVar(&o.path.host)
	c.Flag("device", "Only the devices whose whole name matches this regular expression.").PlaceHolder("REGEX").RegexpVar(&o.include)
	c.Flag("rc", "Send one message on a reliable connection too, as NCCL does.").BoolVar(&o.path.rc)
	c.Flag("json", "Write the result as JSON.").BoolVar(&o.path.json)
}

// load checks the configuration, and reads the file with credentials.
func (f *pathFlags) load(c path.Config) error {
	f.config, f.peers = c, peerSettings{Scheme: c.Scheme}
	if c.HTTPConfigFile == "" {
		return nil
	}
	b, err := input.ReadFile(c.HTTPConfigFile)
	if err == nil {
		f.peers.HTTP = string(b)
		_, err = httpconfig.LoadHTTPConfig(f.peers.HTTP)
	}
	if err != nil {
		return fmt.Errorf("path.http_config_file %s: %w", c.HTTPConfigFile, err)
	}
	return nil
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
	c.Paths.Schedule, c.Paths.Peers = supervisor.Schedule{Interval: f.config.Interval, Timeout: askTime}, list.Targets
	c.Paths.Slot = func(peer string, after time.Time) time.Time { return path.NextSlot(peer, f.config.Interval, after) }
	return list, nil
}

// responder returns what answers other nodes, or nil.
func (f *pathFlags) responder(children *commands, snapshot func() *state.Snapshot, list *path.List, ended <-chan struct{}) (*answer.Responder, error) {
	if !f.respond {
		return nil, nil
	}
	allow, err := f.config.Networks()
	return answer.New(answer.Config{
		Start: func(device string) (answer.Child, error) {
			return answer.StartProcess(children.start(commandAnswer, device, wire.Request{}))
		},
		Devices: func() []path.Device {
			tor := func(string) string { return f.config.ToR }
			if list != nil {
				tor = list.ToR
			}
			return answer.Devices(snapshot(), f.config, tor)
		},
		Allow: allow, Ended: ended,
	}), err
}

// runPathChild is the commands ask and answer.
func runPathChild(ctx context.Context, o *options, std stdio) error {
	lines := bufio.NewReader(std.in)
	line, err := lines.ReadBytes('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read the settings from standard input: %w", err)
	}
	in, err := readInput(o, bytes.NewReader(line))
	if err != nil {
		return err
	}
	s := in.Settings
	provider, err := providerOf(s)
	if err != nil {
		return err
	}
	out := wire.NewWriter(std.out)
	reduced := reducedFor(ctx, s, o.device)
	common := session.Options{
		Provider: provider, Device: o.device, Vectors: s.Probe.Notification.Vectors, DestroyTimeout: s.Probe.DestroyTimeout, Out: out,
	}
	if o.command == commandAnswer {
		var why error
		if reduced != nil {
			why = errors.New("the device is in use, and --probe.when=idle: " + reduced.Detail)
		}
		return answer.Serve(ctx, common, why, lines, std.out)
	}
	if in.Request.Path == nil {
		return errors.New("there is no peer to ask")
	}
	http, err := httpconfig.LoadHTTPConfig(s.Peers.HTTP)
	if err != nil {
		return fmt.Errorf("the settings for HTTP: %w", err)
	}
	client, err := httpconfig.NewClientFromConfig(*http, programName)
	if err != nil {
		return fmt.Errorf("the settings for HTTP: %w", err)
	}
	driver, err := driverOf(ctx, s, o.command, o.device)
	if err != nil {
		return err
	}
	common.Opened = func() { announce(ctx, s, o.device, out) }
	return ask.Run(ctx, ask.Options{
		Options: common, Target: *in.Request.Path, Reduced: reduced, Client: client, Base: s.Peers.Scheme + "://" + in.Request.Path.Peer,
		HasFlowLabels: slices.Contains([]string{"mlx5", "mlx5_core", "hns"}, driver.Name), Random: rand.IntN,
	})
}

// runPath is the command path.
func runPath(ctx context.Context, o *options, std stdio) int {
	o.retired.warn(std.ignored)
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
func askAll(ctx context.Context, o *options) (found []state.DevicePath, err error) {
	target := o.path.host
	if _, _, err := net.SplitHostPort(target); err != nil {
		target = net.JoinHostPort(target, defaultAddress[1:])
	}
	config, _, err := o.supervise()
	if err != nil {
		return nil, err
	}
	config.Paths.Timeout = askTime
	names, err := config.Discover()
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, errors.New("there is no RDMA device, or --device matches none")
	}
	slices.Sort(names)
	s, err := supervisor.New(config)
	if err != nil {
		return nil, err
	}
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
		found = append(found, state.DevicePath{Device: name, PathState: state.PathState{}.Next(*p, run.Started)})
	}
	return found, nil
}

func writePaths(found []state.DevicePath, o *options, std stdio) error {
	var b bytes.Buffer
	if o.path.json {
		e := json.NewEncoder(&b)
		e.SetIndent("", "  ")
		if err := e.Encode(found); err != nil {
			return fmt.Errorf("encode the result: %w", err)
		}
		return writeOut(b.Bytes(), std)
	}
	for _, p := range found {
		if err := terminal.WritePaths(&b, p.Device, []state.PathState{p.PathState}, time.Now(), terminal.Detect(file(std.out), os.Getenv)); err != nil {
			return err
		}
	}
	return writeOut(b.Bytes(), std)
}
