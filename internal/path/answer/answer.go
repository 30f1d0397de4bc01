package answer

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/time/rate"

	"rdma_exporter/internal/child"
	"rdma_exporter/internal/path"
	"rdma_exporter/internal/state"
)

const (
	// callTime limits how long a child may take for an answer: to start, open the device, and
	// resolve an address, which takes up to a second.
	callTime = 10 * time.Second
	// endTime is how long a child may take to end by itself after its lease.
	endTime = 2 * time.Second
	// reachedTime is how long a device counts as reached by a client.
	reachedTime = 15 * time.Minute
	// perSecond and burst limit the requests of one client, and maxClients the clients that are known.
	perSecond, burst = 1, 30
	maxClients       = 1 << 14
)

// A Child is a process that answers on one device. It reads requests from a connection, writes the
// answers to it, and ends with its lease.
type Child interface {
	io.ReadWriter
	SetDeadline(at time.Time) error
	// Kill ends the child. Done is closed when it has ended, and with it the connection.
	Kill()
	Done() <-chan struct{}
}

// Config configures a Responder.
type Config struct {
	// Start starts a child for a device. It must not block.
	Start func(device string) (Child, error)
	// Devices returns the devices that may be asked. It must not block.
	Devices func() []path.Device
	// Allow are the networks of clients. Empty means all.
	Allow []netip.Prefix
}

// Responder answers requests for sessions. Create it with New. Its methods are safe for
// concurrent use.
type Responder struct {
	c       Config
	mu      sync.Mutex
	leases  map[string]*lease
	clients map[netip.Addr]*client
	results map[string]uint64
	closed  bool
}

// client is a host that asks. reached is when it last received an answer, by device.
type client struct {
	address netip.Addr
	limiter *rate.Limiter
	reached map[string]time.Time
}

// lease is a child. Its mutex is held during a call.
type lease struct {
	Child
	mu   sync.Mutex
	in   *json.Decoder
	over time.Time
}

// New returns a Responder without children.
func New(c Config) *Responder {
	return &Responder{c: c, leases: make(map[string]*lease), clients: make(map[netip.Addr]*client), results: make(map[string]uint64)}
}

// Close ends the children, and waits for them, but not for one that is stuck. No more are started.
func (r *Responder) Close() {
	r.mu.Lock()
	r.closed = true
	leases := slices.Collect(maps.Values(r.leases))
	r.mu.Unlock()
	for _, l := range leases {
		l.Kill()
	}
	late := time.After(2 * endTime) // Nothing ends a process that the kernel holds.
	for _, l := range leases {
		select {
		case <-l.Done():
		case <-late:
			return
		}
	}
}

// Sessions returns the number of requests for a session by their result.
func (r *Responder) Sessions() map[string]uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.results)
}

// Devices returns the devices of a snapshot. Those that were not probed yet have no ports.
func Devices(s *state.Snapshot, c path.Config, tor func(device string) string) (list []path.Device) {
	for _, d := range s.Devices {
		if !d.Present {
			continue
		}
		device := path.Device{Name: d.Name, Rail: c.RailOf(d.Name), ToR: tor(d.Name), Ports: cmp.Or(d.Info, new(state.Device)).Ports}
		for _, p := range cmp.Or(cmp.Or(d.Hardware, new(state.HardwareState)).Latest, new(state.Hardware)).Ports {
			device.GIDs = append(device.GIDs, p.GIDs...)
		}
		list = append(list, device)
	}
	return list
}

// Handler returns the handler of the API.
func (r *Responder) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+path.DevicesPath, r.handle(http.StatusOK, r.devices))
	mux.HandleFunc("POST "+path.SessionsPath, r.handle(http.StatusCreated, r.open))
	mux.HandleFunc("GET "+path.SessionsPath+"/{id}", r.handle(http.StatusOK, r.report))
	return mux
}

// handle admits a client, and writes what f answers with a status, or the answer that its error is.
func (r *Responder) handle(status int, f func(c *client, q *http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, q *http.Request) {
		status, answer := status, any(nil)
		c, err := r.admit(q.RemoteAddr)
		if err == nil {
			answer, err = f(c, q)
		}
		if err != nil {
			e := path.ErrorOf(err)
			status, answer = e.Status, e
		}
		if q.Method == http.MethodPost {
			r.mu.Lock()
			r.results[strings.ReplaceAll(strings.ToLower(http.StatusText(status)), " ", "_")]++
			r.mu.Unlock()
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(answer) // An error means that the client is gone.
	}
}

// admit returns a client that may ask.
func (r *Responder) admit(remote string) (*client, error) {
	addrPort, err := netip.ParseAddrPort(remote)
	address := addrPort.Addr().Unmap().WithZone("")
	if len(r.c.Allow) > 0 && (err != nil || !slices.ContainsFunc(r.c.Allow, func(p netip.Prefix) bool { return p.Contains(address) })) {
		return nil, path.Refuse(http.StatusForbidden, "%s is in none of the networks of path.allow", address)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.clients[address]
	if c == nil {
		if len(r.clients) >= maxClients {
			clear(r.clients) // A new limiter allows a burst, no more.
		}
		c = &client{address, rate.NewLimiter(perSecond, burst), make(map[string]time.Time)}
		r.clients[address] = c
	}
	if !c.limiter.Allow() {
		return nil, path.Refuse(http.StatusTooManyRequests, "more than %d requests at once, or %d a second", burst, perSecond)
	}
	return c, nil
}

func (r *Responder) devices(c *client, _ *http.Request) (any, error) {
	list := r.c.Devices()
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range list {
		for _, other := range r.clients {
			list[i].Reached = list[i].Reached || other != c && time.Since(other.reached[list[i].Name]) < reachedTime
		}
	}
	return list, nil
}

func (r *Responder) open(c *client, q *http.Request) (any, error) {
	var ask path.Session
	dec := json.NewDecoder(io.LimitReader(q.Body, path.MaxBody))
	if err := errors.Join(dec.Decode(&ask), ask.Validate()); err != nil {
		return nil, path.Refuse(http.StatusBadRequest, "the request is wrong: %v", err)
	}
	if !slices.ContainsFunc(r.c.Devices(), func(d path.Device) bool { return d.Name == ask.Device }) {
		return nil, path.Refuse(http.StatusNotFound, "there is no device %q", ask.Device)
	}
	l, err := r.lease(ask.Device)
	if err != nil {
		return nil, err
	}
	answer, err := l.call(call{Client: c.address, Open: &ask})
	return answer.Opened, err
}

func (r *Responder) report(c *client, q *http.Request) (any, error) {
	id := q.PathValue("id")
	_, device, _ := strings.Cut(id, "-")
	r.mu.Lock()
	l := r.leases[device]
	r.mu.Unlock()
	if l == nil {
		return nil, noSession(id)
	}
	answer, err := l.call(call{Client: c.address, Report: id})
	if slices.ContainsFunc(answer.Report.Packets, func(p *path.Received) bool { return p != nil && p.Answered }) {
		r.mu.Lock()
		c.reached[device] = time.Now()
		r.mu.Unlock()
	}
	return answer.Report, err
}

// lease returns the child that answers on a device, or starts one. A child that ended early stays until
// its lease is over.
func (r *Responder) lease(device string) (*lease, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if l := r.leases[device]; l != nil {
		select {
		case <-l.Done():
			if time.Now().Before(l.over) {
				return l, nil
			}
		default:
			return l, nil
		}
	}
	if r.closed {
		return nil, errors.New("the exporter ends")
	}
	child, err := r.c.Start(device)
	if err != nil {
		return nil, fmt.Errorf("start a responder: %w", err)
	}
	time.AfterFunc(path.Lease+endTime, child.Kill)
	l := &lease{Child: child, in: json.NewDecoder(io.LimitReader(child, maxOutput)), over: time.Now().Add(path.Lease)}
	r.leases[device] = l
	return l, nil
}

// call asks the child, and returns an error for an answer that is one. It kills a child that does not
// answer.
func (l *lease) call(c call) (answer reply, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err = l.SetDeadline(time.Now().Add(callTime)); err == nil {
		err = json.NewEncoder(l).Encode(c)
	}
	if err == nil {
		err = l.in.Decode(&answer)
	}
	if err != nil {
		l.Kill()
		answer.Error = &path.Error{Status: http.StatusServiceUnavailable, Message: fmt.Sprintf("the responder has ended or did not answer: the next one starts within %s", path.Lease)}
		if !time.Now().Before(l.over) {
			answer.Error.Status = http.StatusTooManyRequests // At the end of its lease it should not answer.
		}
	}
	if answer.Error != nil {
		return answer, answer.Error
	}
	return answer, nil
}

// process is a Child that is a process of the operating system.
type process struct {
	child.Process
	*os.File
}

// StartProcess starts a process, whose end of the connection is [child.ExtraFD].
func StartProcess(c child.Command) (Child, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("make a pair of sockets: %w", err)
	}
	own := os.NewFile(uintptr(pair[0]), "child")
	c.Extra = os.NewFile(uintptr(pair[1]), "parent")
	output := struct {
		io.Writer
		io.Closer // at the end of the process
	}{io.Discard, own}
	return process{child.Start(c, output), own}, nil
}
