package answer

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"rdma_exporter/internal/path"
)

const (
	// callTime limits how long a child may take for an answer: to start, open the device, and
	// resolve an address, which takes up to a second.
	callTime = 10 * time.Second
	// endTime is how long a child may take to end by itself, once its input has ended.
	endTime = 2 * time.Second
	// reachedTime is how long a device counts as reached by a client.
	reachedTime = 15 * time.Minute
	// perSecond and burst limit the requests of one client, and maxClients the clients that are known.
	perSecond, burst = 1, 30
	maxClients       = 1 << 16
)

// A Child is a process that answers on one device.
type Child interface {
	io.Writer
	// CloseInput makes the child end.
	CloseInput()
	// Output is what it writes.
	Output() io.Reader
	// Kill ends it. Done is closed when it has ended.
	Kill()
	Done() <-chan struct{}
}

// Config configures a Responder.
type Config struct {
	// Start starts a child for a device. It must not block.
	Start func(device string) (Child, error)
	// Devices returns the devices that may be asked. It must not block.
	Devices func() []path.Device
	// Ended is closed when the exporter ends: the children end, and no more are started.
	Ended <-chan struct{}
	// Allow are the networks of clients. Empty means all.
	Allow []netip.Prefix
}

// Responder answers requests for sessions. Create it with New. Its methods are safe for
// concurrent use.
type Responder struct {
	c       Config
	mu      sync.Mutex
	leases  map[string]*lease
	clients map[netip.Addr]*rate.Limiter
	// reached is when clients last received an answer, by device.
	reached map[string]map[netip.Addr]time.Time
	// owners has the device and the client of each session.
	owners  map[string]owner
	results map[string]uint64
	// over is true once no child may be started.
	over    bool
	running sync.WaitGroup
}

type owner struct {
	lease  *lease
	device string
	client netip.Addr
}

// lease is a child. Its mutex is held during a call.
type lease struct {
	mu    sync.Mutex
	child Child
	lines chan []byte
	over  time.Time
	dead  error
}

// Results returns the values of the label result of [Responder.Sessions].
func Results() []string {
	return []string{"opened", "not_allowed", "not_found", "conflict", "over_budget", "failed"}
}

// New returns a Responder without children.
func New(c Config) *Responder {
	return &Responder{
		c: c, leases: make(map[string]*lease), clients: make(map[netip.Addr]*rate.Limiter),
		reached: make(map[string]map[netip.Addr]time.Time), owners: make(map[string]owner), results: make(map[string]uint64),
	}
}

// Wait waits for the children after [Config].Ended was closed, but not for one that is stuck.
func (r *Responder) Wait() {
	r.mu.Lock()
	r.over = true
	r.mu.Unlock()
	done := make(chan struct{})
	go func() { r.running.Wait(); close(done) }() // It ends with the children.
	select {
	case <-done:
	case <-time.After(2 * endTime): // Nothing ends a process that the kernel holds.
	}
}

// Sessions returns the number of requests for a session by their result.
func (r *Responder) Sessions() map[string]uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.results)
}

// Handler returns the handler of the API.
func (r *Responder) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+path.DevicesPath, r.handle(r.devices))
	mux.HandleFunc("POST "+path.SessionsPath, r.handle(r.open))
	mux.HandleFunc("GET "+path.SessionsPath+"/{id}", r.handle(r.report))
	return mux
}

// handle admits a client, and writes what f answers: a value, or a *path.Error.
func (r *Responder) handle(f func(client netip.Addr, q *http.Request) (status int, answer any, err error)) http.HandlerFunc {
	return func(w http.ResponseWriter, q *http.Request) {
		client, err := r.admit(q.RemoteAddr)
		status, answer := 0, any(nil)
		if err == nil {
			status, answer, err = f(client, q)
		}
		if q.Method == http.MethodPost {
			r.count(err)
		}
		if err != nil {
			refused := (*path.Error)(nil)
			if !errors.As(err, &refused) {
				refused = path.ErrorOf(http.StatusServiceUnavailable, err)
			}
			status, answer = refused.Status, refused
		}
		b, err := json.Marshal(answer)
		if err != nil {
			status, b = http.StatusInternalServerError, []byte("{}")
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		w.WriteHeader(status)
		_, _ = w.Write(b) // An error means that the client is gone.
	}
}

func refuse(status int, format string, args ...any) error {
	return &path.Error{Status: status, Message: fmt.Sprintf(format, args...)}
}

// admit returns the address of a client that may ask.
func (r *Responder) admit(remote string) (netip.Addr, error) {
	addrPort, err := netip.ParseAddrPort(remote)
	client := addrPort.Addr().Unmap().WithZone("")
	if len(r.c.Allow) > 0 && (err != nil || !slices.ContainsFunc(r.c.Allow, func(p netip.Prefix) bool { return p.Contains(client) })) {
		return client, refuse(http.StatusForbidden, "%s is in none of the networks of path.allow", client)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	limiter := r.clients[client]
	if limiter == nil {
		if len(r.clients) >= maxClients {
			clear(r.clients) // A new limiter allows a burst, no more.
		}
		limiter = rate.NewLimiter(perSecond, burst)
		r.clients[client] = limiter
	}
	if !limiter.Allow() {
		return client, refuse(http.StatusTooManyRequests, "more than %d requests at once, or %d a second", burst, perSecond)
	}
	return client, nil
}

func (r *Responder) count(err error) {
	result := "opened"
	if err != nil {
		result = "failed"
		if refused := (*path.Error)(nil); errors.As(err, &refused) {
			switch refused.Status {
			case http.StatusForbidden:
				result = "not_allowed"
			case http.StatusNotFound, http.StatusBadRequest:
				result = "not_found"
			case http.StatusConflict:
				result = "conflict"
			case http.StatusTooManyRequests:
				result = "over_budget"
			}
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.results[result]++
}

func (r *Responder) devices(client netip.Addr, _ *http.Request) (int, any, error) {
	list := r.c.Devices()
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range list {
		for other, at := range r.reached[list[i].Name] {
			if time.Since(at) > reachedTime {
				delete(r.reached[list[i].Name], other)
			} else if other != client {
				list[i].Reached++
			}
		}
	}
	return http.StatusOK, list, nil
}

func (r *Responder) open(client netip.Addr, q *http.Request) (int, any, error) {
	var ask path.Session
	dec := json.NewDecoder(io.LimitReader(q.Body, path.MaxBody))
	if err := errors.Join(dec.Decode(&ask), ask.Validate()); err != nil {
		return 0, nil, refuse(http.StatusBadRequest, "the request is wrong: %v", err)
	}
	if !slices.ContainsFunc(r.c.Devices(), func(d path.Device) bool { return d.Name == ask.Device }) {
		return 0, nil, refuse(http.StatusNotFound, "there is no device %q", ask.Device)
	}
	l, err := r.lease(ask.Device)
	if err != nil {
		return 0, nil, err
	}
	answer, err := l.call(call{Open: &ask})
	if err != nil {
		return 0, nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.owners[answer.Opened.ID] = owner{l, ask.Device, client}
	return answer.Status, answer.Opened, nil
}

func (r *Responder) report(client netip.Addr, q *http.Request) (int, any, error) {
	id := q.PathValue("id")
	r.mu.Lock()
	of, ok := r.owners[id]
	r.mu.Unlock()
	if !ok || of.client != client {
		return 0, nil, refuse(http.StatusNotFound, "there is no session %.32q", id)
	}
	answer, err := of.lease.call(call{Report: id})
	if err != nil {
		return 0, nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if slices.ContainsFunc(answer.Report.Packets, func(p path.Received) bool { return p.Answered }) {
		if r.reached[of.device] == nil {
			r.reached[of.device] = make(map[netip.Addr]time.Time)
		}
		r.reached[of.device][client] = time.Now()
	}
	return answer.Status, answer.Report, nil
}

// lease returns the child of a device, and starts one if it is missing. After one that failed or
// ended early, the next starts no sooner than the lease would have ended.
func (r *Responder) lease(device string) (*lease, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if l := r.leases[device]; l != nil {
		return l, nil
	}
	if r.over {
		return nil, errors.New("the exporter ends")
	}
	child, err := r.c.Start(device)
	if err != nil {
		return nil, fmt.Errorf("start a responder: %w", err)
	}
	l := &lease{child: child, lines: make(chan []byte, 1), over: time.Now().Add(path.Lease)}
	r.leases[device] = l
	r.running.Go(func() { r.keep(device, l) })
	return l, nil
}

// keep reads what a child answers, and ends it with its lease.
func (r *Responder) keep(device string, l *lease) {
	r.running.Go(func() {
		defer close(l.lines)
		for in := bufio.NewScanner(io.LimitReader(l.child.Output(), path.MaxBody)); in.Scan(); {
			select {
			case l.lines <- slices.Clone(in.Bytes()):
			default: // It was not asked.
			}
		}
		_, _ = io.Copy(io.Discard, l.child.Output()) // A child that writes too much must be able to end.
	})
	select {
	case <-l.child.Done():
	case <-r.c.Ended:
		l.child.Kill()
	case <-time.After(time.Until(l.over)):
	}
	l.child.CloseInput()
	select {
	case <-l.child.Done():
	case <-time.After(endTime):
		l.child.Kill()
		<-l.child.Done()
	}
	select {
	case <-r.c.Ended:
	case <-time.After(time.Until(l.over)):
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.leases, device)
	maps.DeleteFunc(r.owners, func(_ string, o owner) bool { return o.lease == l })
}

// call asks the child, and returns an error for an answer that is one.
func (l *lease) call(c call) (*reply, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dead != nil {
		return nil, l.dead
	}
	b, err := json.Marshal(c)
	if err == nil {
		_, err = l.child.Write(append(b, '\n'))
	}
	if err != nil {
		return nil, l.end("has ended")
	}
	ctx, cancel := context.WithTimeout(context.Background(), callTime)
	defer cancel()
	select {
	case line, ok := <-l.lines:
		var answer reply
		if !ok || json.Unmarshal(line, &answer) != nil {
			return nil, l.end("died")
		}
		if answer.Error != nil {
			answer.Error.Status = answer.Status
			return nil, answer.Error
		}
		return &answer, nil
	case <-ctx.Done():
		l.child.Kill()
		return nil, l.end("did not answer and was killed")
	}
}

// end returns the error of a child that answers no more. At the end of its lease it should not.
func (l *lease) end(why string) error {
	status := http.StatusServiceUnavailable
	if !time.Now().Before(l.over) {
		status = http.StatusTooManyRequests
	}
	l.dead = refuse(status, "the responder %s: the next one starts within %s", why, path.Lease)
	return l.dead
}
