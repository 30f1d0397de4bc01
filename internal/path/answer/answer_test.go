package answer_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"rdma_exporter/internal/path"
	"rdma_exporter/internal/path/answer"
	"rdma_exporter/internal/path/ask"
	"rdma_exporter/internal/probe/session"
	"rdma_exporter/internal/state"
	"rdma_exporter/internal/wire"
	"rdma_exporter/test/fabric"
	"rdma_exporter/verbs"
)

const (
	delay  = 5 * time.Microsecond // of a packet
	client = "10.0.0.7:1"
)

// network has the devices a and b, and a responder for b.
type network struct {
	*fabric.Fabric
	a, b      *fabric.Device
	ask       ask.Options
	responder *answer.Responder
	inUse     *state.Reduced
	slow      slow
	lose      func(p fabric.Packet) bool // which packets are lost
	stuck     bool                       // children cannot be killed
	mu        sync.Mutex
	children  []*child
	alive     atomic.Int32
	answers   []fabric.Packet // from b
}

func gid(last byte) verbs.GID            { return verbs.GID{10: 0xff, 11: 0xff, 12: 10, 15: last} }
func (n *network) down(d *fabric.Device) { n.Set(func() { d.State = verbs.PortDown }) }

func newNetwork() *network {
	n := &network{
		a: &fabric.Device{Name: "a", GID: gid(1), MTU: 1024, Offset: time.Hour}, b: &fabric.Device{Name: "b", GID: gid(2), MTU: 1024},
		lose: func(fabric.Packet) bool { return false },
	}
	n.Fabric = fabric.New(delay, n.a, n.b)
	n.ask = ask.Options{Path: state.Path{Peer: "b:9879", Rail: "r1"}, Base: "http://b:9879", HasFlowLabels: true}
	n.instead("none", 0, "")
	n.respond()
	n.Rule = func(p fabric.Packet) bool {
		n.mu.Lock()
		defer n.mu.Unlock()
		if p.From == n.b.GID {
			n.answers = append(n.answers, p)
		}
		return n.lose(p)
	}
	return n
}

func (n *network) respond(allow ...netip.Prefix) {
	devices := func() []path.Device { return []path.Device{{Name: "b", Rail: "r1", ToR: "t1"}} }
	n.responder = answer.New(answer.Config{Start: n.start, Devices: devices, Allow: allow})
}

// bubble runs a test with a network, and verifies that nothing is left in the end.
func bubble(t *testing.T, name string, f func(t *testing.T, n *network)) {
	t.Run(name, func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			n := newNetwork()
			f(t, n)
			n.end(t, 0)
		})
	})
}

func (n *network) end(t *testing.T, children int32) {
	n.responder.Close()
	if objects, _ := n.Live(); n.alive.Load() != children || objects != 0 && children == 0 {
		t.Errorf("%d objects and %d children are left", objects, n.alive.Load())
	}
}

// child is an answer.Child that is a goroutine.
type child struct {
	net.Conn
	done, killed chan struct{}
	kill         func()
}

func (n *network) start(device string) (answer.Child, error) {
	ctx, cancel := context.WithCancel(context.Background())
	conn, own := net.Pipe()
	c, process := &child{conn, make(chan struct{}), make(chan struct{}), func() {}}, n.Process(nil)
	if !n.stuck {
		c.kill = sync.OnceFunc(func() { process.Kill(); close(c.killed); cancel(); own.Close() })
	}
	n.children = append(n.children, c)
	n.alive.Add(1)
	go func() {
		n.serve(ctx, n.provider(process, device, c.killed), own)
		own.Close()
		cancel()
		n.alive.Add(-1)
		close(c.done)
	}()
	return c, nil
}

func (n *network) serve(ctx context.Context, p func(verbs.Tracer) verbs.Provider, parent io.ReadWriter) {
	answer.Serve(ctx, session.Options{Device: "b", Provider: p}, func(context.Context) *state.Reduced { return n.inUse }, parent)
}

func (c *child) Done() <-chan struct{} { return c.done }
func (c *child) Kill()                 { c.kill() }

// slow makes a verb take a time, or until the process is killed.
type slow struct {
	verbs.Tracer
	device string
	verb   verbs.Verb
	takes  time.Duration
	killed chan struct{}
}

func (s *slow) Begin(v verbs.Verb) {
	if s.Tracer.Begin(v); v == s.verb {
		select {
		case <-s.killed:
		case <-time.After(s.takes):
		}
	}
}

func (n *network) provider(p *fabric.Process, device string, killed chan struct{}) func(verbs.Tracer) verbs.Provider {
	return func(t verbs.Tracer) verbs.Provider {
		s := n.slow
		if s.Tracer, s.killed, p.Tracer = t, killed, t; device == s.device {
			p.Tracer = &s
		}
		return p
	}
}

func (n *network) do(client, method, where, body string) *httptest.ResponseRecorder {
	q, w := httptest.NewRequest(method, where, strings.NewReader(body)), httptest.NewRecorder()
	q.RemoteAddr = client
	n.responder.Handler().ServeHTTP(w, q)
	return w
}

// transport does without a connection, and answers itself if method and path begin with instead.
type transport struct {
	n             *network
	instead, body string
	status        int // 0 is an error
}

func (tr *transport) RoundTrip(q *http.Request) (*http.Response, error) {
	if !strings.HasPrefix(q.Method+" "+q.URL.Path, tr.instead) {
		b, err := io.ReadAll(q.Body)
		return tr.n.do("10.0.0.1:1", q.Method, q.URL.Path, string(b)).Result(), err
	} else if tr.status == 0 {
		return nil, errors.New("no route")
	}
	return &http.Response{StatusCode: tr.status, Status: "?", Body: io.NopCloser(strings.NewReader(tr.body))}, nil
}

func (n *network) instead(what string, status int, body string) {
	n.ask.Client = &http.Client{Transport: &transport{n, what, body, status}}
}

// run lets a ask b, and returns the report as the parent reads it.
func (n *network) run(t *testing.T) state.Path {
	var out bytes.Buffer
	o := n.ask
	o.Options = session.Options{Device: "a", Out: wire.NewWriter(&out), Provider: n.provider(n.Process(nil), "a", nil)}
	r := state.Run{Device: "a", Path: &state.Path{}}
	if err := errors.Join(ask.Run(t.Context(), o), wire.Read(&out, &r)); err != nil || r.Error != "" {
		t.Error(err, r.Error)
	}
	return *r.Path
}

// request returns one for a session of a node that the fabric does not know.
func request(change func(s *path.Session)) string {
	to := path.Address{GID: gid(7).String(), Type: "RoCE v2"}
	s := path.Session{Device: "b", Addresses: []path.Address{to}, QPNs: []uint32{100}, QKey: 0x1234, Packets: 9, Life: 5, MTU: 1024}
	if change != nil {
		change(&s)
	}
	b, _ := json.Marshal(s)
	return string(b)
}

func (n *network) open(t *testing.T, from string, change func(s *path.Session)) (status int, o path.Opened) {
	w := n.do(from, http.MethodPost, path.SessionsPath, request(change))
	if err := json.Unmarshal(w.Body.Bytes(), &o); err != nil {
		t.Error(err)
	}
	return w.Code, o
}

type datagram struct {
	request path.Packet
	fabric.Packet
	length int
}

// send sends a datagram of a session, after a change, and returns the number of answers. It
// verifies that they go to the address of the session and are no longer than the datagram.
func (n *network) send(t *testing.T, o path.Opened, sequence uint32, change func(d *datagram)) int {
	d := datagram{path.Packet{Type: path.TypeRequest, Session: path.SessionOf(o.ID), Sequence: sequence}, fabric.Packet{}, path.PacketSize}
	d.Packet = fabric.Packet{From: gid(7), To: n.b.GID, SrcQPN: 100, DstQPN: o.QPN, QKey: o.QKey}
	change(&d)
	payload := make([]byte, max(d.length, path.PacketSize))
	d.request.Put(payload)
	d.Payload = payload[:d.length]
	n.Send(d.Packet)
	time.Sleep(time.Millisecond)
	n.mu.Lock()
	defer n.mu.Unlock()
	answers := n.answers
	for _, p := range answers {
		if p.To != gid(7) || p.DstQPN != 100 || p.QKey != 0x1234 || len(p.Payload) > d.length {
			t.Errorf("the answer to %d bytes is %d long: %+v", d.length, len(p.Payload), p)
		}
	}
	n.answers = nil
	return len(answers)
}

// TestHostilePackets verifies that what a session does not allow is not answered.
func TestHostilePackets(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(d *datagram)
		want   int
	}{
		"the same again":     {func(d *datagram) { d.request.Sequence = 8 }, 0},
		"another session":    {func(d *datagram) { d.request.Session++ }, 0},
		"another queue pair": {func(d *datagram) { d.SrcQPN++ }, 0},
		"beyond the packets": {func(d *datagram) { d.request.Sequence = 9 }, 0},
		"an answer":          {func(d *datagram) { d.request.Type = path.TypeReply }, 0},
		"wrong key":          {func(d *datagram) { d.QKey++ }, 0},
		"too short":          {func(d *datagram) { d.length = path.PacketSize - 1 }, 0},
		"as long as may be":  {func(d *datagram) { d.length = 1024 }, 1},
		"forged route":       {func(d *datagram) { d.From = gid(9) }, 1},
	} {
		bubble(t, name, func(t *testing.T, n *network) {
			_, o := n.open(t, client, nil)
			same := func(*datagram) {}
			got := n.send(t, o, 8, same)
			for range 50 { // more than there are buffers
				got += n.send(t, o, 1, tt.change)
			}
			if got += n.send(t, o, 2, same); got != 2+tt.want {
				t.Errorf("%d packets were answered, want %d", got, 2+tt.want)
			}
			time.Sleep(5 * time.Second)
			if got := n.send(t, o, 3, same); got != 0 {
				t.Error("a session that is over was answered")
			}
		})
	}
}

// TestFlood verifies the budget of a lease and of each client: addresses tried, packets answered,
// queue pairs created.
func TestFlood(t *testing.T) {
	for name, tt := range map[string]struct {
		clients int
		change  func(s *path.Session)
		errno   syscall.Errno
		want    string
	}{
		"packets":   {1, nil, 0, "map[201:4 429:8] 36 answers 1 queue pairs"},
		"clients":   {12, nil, 0, "map[201:10 429:2] 90 answers 1 queue pairs"},
		"messages":  {12, func(s *path.Session) { s.RC, s.Packets = 100, 1 }, 0, "map[201:1 429:11] 1 answers 2 queue pairs"},
		"addresses": {12, nil, syscall.ETIMEDOUT, "map[429:2 503:10] 0 answers 1 queue pairs"},
	} {
		bubble(t, name, func(t *testing.T, n *network) {
			n.b.Fails = map[verbs.Verb]syscall.Errno{verbs.CreateAH: tt.errno}
			opened, answered := make(map[int]int), 0
			for i := range 12 {
				status, o := n.open(t, fmt.Sprintf("10.0.1.%d:1", i%tt.clients), tt.change)
				opened[status]++
				for i := range uint32(100) {
					answered += n.send(t, o, i, func(*datagram) {})
				}
			}
			_, pairs := n.Live()
			if got := fmt.Sprintf("%d %d answers %d queue pairs", opened, answered, pairs); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

// TestRequests verifies that requests which are wrong start no child.
func TestRequests(t *testing.T) {
	good := request(func(s *path.Session) { s.RC = 100 })
	for old, list := range map[string][]string{
		good:    {"", "<", "null", good[:20], `{"device":"` + strings.Repeat("x", path.MaxBody), "[" + good + "]"},
		`"b"`:   {`""`, `7`},
		`:9`:    {`:0`, `:-1`, `:41`, `:1e999`},
		`:5`:    {`:0`, `:11`},
		`[100]`: {`[]`, `[-1]`, `[1]`, `[16777216]`, `[2,2,2,2,2,2,2,2,2]`},
		`:4660`: {`:2147483648`, `:-1`},
		`:1024`: {`:0`, `:1500`, `:8192`},
		`:100`:  {`:16777216`},
		`[{`:    {`[],"x":[{`, `[` + strings.Repeat("{},", 256) + `{`},
	} {
		for _, b := range list {
			bubble(t, fmt.Sprintf("%.20s %.20s", old, b), func(t *testing.T, n *network) {
				w := n.do(client, http.MethodPost, path.SessionsPath, strings.Replace(good, old, b, 1))
				if w.Code != http.StatusBadRequest || len(n.children) > 0 {
					t.Errorf("the status is %d: %s", w.Code, w.Body)
				}
			})
		}
	}
}

// TestClients verifies that clients have their own sessions, and their own 30 requests at once.
func TestClients(t *testing.T) {
	bubble(t, "", func(t *testing.T, n *network) {
		_, o := n.open(t, client, nil)
		for from, want := range map[string]int{"10.0.0.7:2": 200, "[::ffff:10.0.0.7]:3": 200, "10.0.0.8:1": 404, "": 404} {
			if w := n.do(from, http.MethodGet, path.SessionsPath+"/"+o.ID, ""); w.Code != want {
				t.Errorf("%q receives %d, want %d", from, w.Code, want)
			}
		}
		var got []int
		for range 29 {
			got = append(got, n.do(client, http.MethodGet, path.DevicesPath, "").Code)
		}
		for _, from := range []string{client, "10.0.0.8:1", client} {
			got = append(got, n.do(from, http.MethodPost, path.SessionsPath, request(nil)).Code)
			time.Sleep(time.Second)
		}
		got = append(got, n.do(client, http.MethodPost, path.SessionsPath, request(func(s *path.Session) { s.Device = "../b" })).Code)
		want, counts := append(slices.Repeat([]int{200}, 27), 429, 429, 429, 201, 201, 404), fmt.Sprint(n.responder.Sessions())
		if !slices.Equal(got, want) || counts != "map[created:3 not_found:1 too_many_requests:1]" {
			t.Errorf("got  %d\nwant %d\nsessions %s", got, want, counts)
		}
	})
}

// TestLease verifies that a child ends with its lease, even a killed one, and what runs find then.
func TestLease(t *testing.T) {
	for kill, want := range map[bool]string{false: "ok-refused-refused-ok-", true: "target_device-target_device-ok-ok-"} {
		bubble(t, fmt.Sprint(kill), func(t *testing.T, n *network) {
			n.slow = slow{device: "b", verb: verbs.DestroyQP, takes: time.Second}
			_, o := n.open(t, client, nil)
			var got string
			if kill {
				n.children[0].Kill()
			}
			for _, wait := range []time.Duration{0, path.Lease - 4*time.Second, 9 * time.Second / 2, 2 * time.Second} {
				time.Sleep(wait)
				if objects, _ := n.Live(); n.alive.Load() == 0 && objects != 0 || n.alive.Load() > 1 {
					t.Errorf("%d objects, %d children", objects, n.alive.Load())
				}
				p := n.run(t)
				got += string(p.Result) + map[bool]string{false: "-", true: " (reached by others) "}[p.PeerReached]
			}
			if w := n.do(client, http.MethodGet, path.SessionsPath+"/"+o.ID, ""); got != want || w.Code != 404 || len(n.children) != 2 {
				t.Errorf("%d children, %s, %s", len(n.children), got, w.Body)
			}
		})
	}
}

// TestThousandSessions verifies that they leave nothing, with one child and queue pair at a time.
func TestThousandSessions(t *testing.T) {
	bubble(t, "", func(t *testing.T, n *network) {
		most := int32(0)
		for opened := 0; opened < 1000; most = max(most, n.alive.Load()) {
			if status, _ := n.open(t, fmt.Sprintf("10.0.1.%d:1", opened%4), func(s *path.Session) { s.Packets, s.Life = 1, 1 }); status == http.StatusCreated {
				opened++
			} else {
				time.Sleep(5 * time.Second)
			}
		}
		time.Sleep(path.Lease)
		if objects, qps := n.Live(); objects != 0 || qps != len(n.children) || most != 1 {
			t.Errorf("%d objects are left of %d queue pairs in %d leases, %d at once", objects, qps, len(n.children), most)
		}
	})
}

// TestEnd verifies that children end with the exporter, which does not wait for a stuck one.
func TestEnd(t *testing.T) {
	for name, stuck := range map[string]bool{"ends": false, "stuck": true} {
		bubble(t, name, func(t *testing.T, n *network) {
			n.slow, n.stuck = slow{device: "b", verb: verbs.DestroyQP, takes: time.Minute}, stuck
			n.open(t, client, nil)
			n.end(t, map[bool]int32{true: 1}[stuck])
			time.Sleep(path.Lease + time.Minute)
			if status, _ := n.open(t, client, nil); status/100 == 2 || len(n.children) != 1 {
				t.Errorf("a request receives %d after the end", status)
			}
		})
	}
}

// TestInUse verifies that a device in use is asked no more in the lease, while it is.
func TestInUse(t *testing.T) {
	bubble(t, "", func(t *testing.T, n *network) {
		var got []int
		for _, n.inUse = range []*state.Reduced{nil, {}, nil} {
			status, _ := n.open(t, client, nil)
			got = append(got, status)
		}
		if !slices.Equal(got, []int{201, 429, 201}) {
			t.Errorf("the statuses are %d", got)
		}
	})
}

// TestServeEnds verifies that a child whose input stays open ends with its lease.
func TestServeEnds(t *testing.T) {
	bubble(t, "", func(t *testing.T, n *network) {
		conn, own := net.Pipe()
		n.serve(context.Background(), n.provider(n.Process(nil), "b", nil), own)
		_, _ = conn.Write([]byte("{}")) // It comes too late.
	})
}

// TestCauses verifies the result of a run for each way in which a path does not work.
func TestCauses(t *testing.T) {
	type packet = fabric.Packet
	back := func(p packet) bool { return p.From == gid(2) }
	type faults = map[verbs.Verb]syscall.Errno
	fourth := func(f func()) func(packet) bool { // It calls f when a sends its fourth packet.
		return func(p packet) bool {
			if p.From == gid(1) && p.Payload[19] == 3 {
				f()
			}
			return false
		}
	}
	sequences := func(lost ...byte) func(packet) bool {
		return func(p packet) bool { return p.From == gid(1) && slices.Contains(lost, p.Payload[19]) }
	}
	rc := func(p packet) bool { return p.RC }
	forged := func(p packet, at int, qpn uint32) packet { // It changes a byte, and the queue pair.
		p.Payload, p.From, p.SrcQPN = slices.Clone(p.Payload), gid(9), p.SrcQPN+qpn
		p.Payload[at] ^= byte(min(at, 1))
		return p
	}
	for name, tt := range map[string]struct {
		set  func(n *network)
		want string // the result, suspect, packets lost on both ways, flows that failed, verb, errno, message
	}{
		"one packet lost":      {func(n *network) { n.lose = sequences(4) }, "ok  1 0 0"},
		"lost there":           {func(n *network) { n.lose = func(p packet) bool { return p.From == gid(1) } }, "lost_forward path 9 0 3"},
		"lost on the way back": {func(n *network) { n.lose = back }, "lost_reverse path 0 9 3"},
		"large ones lost":      {func(n *network) { n.lose = func(p packet) bool { return len(p.Payload) > 500 } }, "mtu path 3 0 0"},
		"flow label lost": {func(n *network) {
			n.lose = func(p packet) bool { return p.From == gid(1) && (p.FlowLabel-1)/0x1111 == 1 }
		}, "flow path 3 0 1"},
		"queue pair lost": {func(n *network) {
			n.ask.HasFlowLabels, n.lose = false, func(p packet) bool { return p.SrcQPN == 19 }
		}, "flow path 3 0 1"},
		"address of the peer":     {func(n *network) { n.a.Fails = faults{verbs.CreateAH: syscall.ETIMEDOUT} }, "address path 0 0 0 ibv_create_ah ETIMEDOUT"},
		"address of the asker":    {func(n *network) { n.b.Fails = faults{verbs.CreateAH: syscall.EHOSTUNREACH} }, "address path 0 0 0 ibv_create_ah EHOSTUNREACH"},
		"no more address handles": {func(n *network) { n.a.Fails = faults{verbs.CreateAH: syscall.ENOMEM} }, "source_device device 0 0 0 ibv_create_ah ENOMEM"},
		"no UD":                   {func(n *network) { n.a.Fails = faults{verbs.CreateQP: syscall.EOPNOTSUPP} }, "unsupported  0 0 0 ibv_create_qp EOPNOTSUPP"},
		"own port down":           {func(n *network) { n.a.State = verbs.PortDown }, "source_device device 0 0 0"},
		"own port goes down":      {func(n *network) { n.lose = fourth(func() { n.down(n.a) }) }, "source_device device 6 0 0"},
		"peer's port down":        {func(n *network) { n.b.State = verbs.PortDown }, "target_device peer 0 0 0"},
		"peer's port down later":  {func(n *network) { n.do(client, "POST", path.SessionsPath, request(nil)); n.down(n.b) }, "target_device peer 0 0 0"},
		"peer's port goes down":   {func(n *network) { n.lose = fourth(func() { n.down(n.b) }) }, "target_device peer 6 0 0"},
		"responder dies":          {func(n *network) { n.lose = fourth(func() { n.children[0].Kill() }) }, "target_device peer 6 0 0"},
		"responder hangs":         {func(n *network) { n.slow = slow{device: "b", verb: verbs.CreateCQ, takes: time.Hour} }, "target_device peer 0 0 0"},
		"answers late and lost": {func(n *network) {
			n.lose, n.slow = back, slow{device: "b", verb: verbs.PostSend, takes: time.Second / 5}
		}, "lost_reverse path 0 9 3"},
		"answers of others": {func(n *network) {
			n.lose = func(p packet) bool { // Each comes twice: with another session, and from another queue pair.
				if back(p) {
					go n.Send(forged(p, 15, 0))
					go n.Send(forged(p, 0, 1))
				}
				return back(p)
			}
		}, "lost_reverse path 0 9 3"},
		"small ones of a label": {func(n *network) { n.lose = sequences(0, 3, 4) }, "lost_forward path 3 0 0"},
		"a label, and others":   {func(n *network) { n.lose = sequences(0, 3, 6, 1, 5) }, "lost_forward path 5 0 1"},
		"a label, and one more": {func(n *network) { n.lose = sequences(0, 3, 6, 1) }, "flow path 4 0 1"},
		"answers late":          {func(n *network) { n.slow = slow{device: "b", verb: verbs.PostSend, takes: time.Second / 5} }, "ok  0 0 0"},
		"too late":              {func(n *network) { n.slow = slow{device: "a", verb: verbs.PostSend, takes: 1200 * time.Millisecond} }, "control_unreachable  1 0 0"},
		"no time left":          {func(n *network) { n.slow = slow{device: "a", verb: verbs.CreateAH, takes: path.MaxLife} }, "control_unreachable  0 0 0"},
		"peer cannot open":      {func(n *network) { n.b.Fails = faults{verbs.OpenDevice: syscall.ENOMEM} }, "target_device peer 0 0 0 ibv_open_device ENOMEM"},
		"peer in use":           {func(n *network) { n.inUse = new(state.Reduced) }, "refused  0 0 0"},
		"not allowed":           {func(n *network) { n.respond(netip.MustParsePrefix("10.9.0.0/16")) }, "refused  0 0 0"},
		"allowed":               {func(n *network) { n.respond(netip.MustParsePrefix("10.0.0.0/16")) }, "ok  0 0 0"},
		"another rail":          {func(n *network) { n.instead("GET", 200, `[{"name":"b"},{"name":"c"}]`) }, "refused  0 0 0"},
		"no HTTP":               {func(n *network) { n.instead("GET", 0, "") }, "control_unreachable  0 0 0"},
		"no HTTP after a loss":  {func(n *network) { n.lose = back; n.instead("GET /api/v1/path/s", 0, "") }, "control_unreachable  9 0 3"},
		"session forgotten":     {func(n *network) { n.lose = back; n.instead("GET /api/v1/path/s", 404, `{"error":"gone"}`) }, "target_device peer 9 0 3"},
		"another server":        {func(n *network) { n.instead("GET", 404, "<html>") }, "control_unreachable  0 0 0"},
		"a proxy":               {func(n *network) { n.instead("POST", 503, "<html>") }, "control_unreachable  0 0 0"},
		"a proxy after a loss":  {func(n *network) { n.lose = back; n.instead("GET /api/v1/path/s", 502, "{}") }, "control_unreachable  9 0 3"},
		"password":              {func(n *network) { n.instead("GET", 401, "") }, "refused  0 0 0"},
		"peer without UD":       {func(n *network) { n.b.Fails = faults{verbs.CreateQP: syscall.EOPNOTSUPP} }, "unsupported  0 0 0 ibv_create_qp EOPNOTSUPP"},
		"odd errors":            {func(n *network) { n.instead("POST", 503, `{"error":"é\u0000","verb":"rm -rf","errno":"a/b"}`) }, "target_device peer 0 0 0 rm -rf a/b"},
		"odd address":           {func(n *network) { n.instead("POST", 201, `{"address":{"gid":"x"},"source":7,"mtu_bytes":1024}`) }, "refused  0 0 0"},
		"odd MTU":               {func(n *network) { n.instead("POST", 201, `{"address":{"gid":"::ffff:10.0.0.2","type":"RoCE v2"}}`) }, "refused  0 0 0"},
		"message":               {func(n *network) { n.ask.RC = true }, "ok  0 0 0   success"},
		"message, smaller MTU":  {func(n *network) { n.ask.RC, n.a.MTU = true, 4096 }, "ok  0 0 0   success"},
		"message, larger MTU":   {func(n *network) { n.ask.RC, n.b.MTU = true, 4096 }, "ok  0 0 0   success"},
		"message lost":          {func(n *network) { n.ask.RC, n.lose = true, rc }, "ok path 0 0 0   retry_exc_err"},
		"message without end":   {func(n *network) { n.ask.RC, n.a.LateSends = true, time.Hour }, "ok path 0 0 0   no_completion"},
		"message before answers": {func(n *network) {
			n.ask.RC, n.lose, n.slow = true, rc, slow{device: "b", verb: verbs.PostSend, takes: time.Second / 5}
		}, "ok path 0 0 0   retry_exc_err"},
	} {
		bubble(t, name, func(t *testing.T, n *network) {
			tt.set(n)
			p := n.run(t)
			synctest.Wait()
			most := 2 // queue pairs: one of the asker, one of the lease
			if !n.ask.HasFlowLabels {
				most++
			}
			if n.ask.RC {
				most += 2
			}
			if _, qps := n.Live(); qps > most {
				t.Errorf("%d queue pairs were created, at most %d should be", qps, most)
			}
			got := strings.TrimSpace(fmt.Sprintln(p.Result, p.Suspect, p.LostForward, p.LostReverse, p.FlowsFailed, p.Verb, p.Errno, p.RC))
			if got != tt.want || strings.HasPrefix(name, "responder") && n.alive.Load() != 0 ||
				p.Failed() != (p.Result != state.PathOK || p.Suspect != "") || p.Failed() && p.Result != "" && p.Detail == "" {
				t.Errorf("got %q, want %q: %s", got, tt.want, p.Detail)
			}
		})
	}
}

// TestTimes verifies that round trips have neither the time of the peer nor the offset of clocks.
func TestTimes(t *testing.T) {
	const all, rtt = 1<<64 - 1, 2 * delay
	const waits = rtt + 2*time.Millisecond // Two answers wait for others before their time counts.
	for name, tt := range map[string]struct {
		maskA, kHzA, maskB, kHzB uint64
		offset, late, hold       time.Duration
		refused                  syscall.Errno
		clock                    string
		min, max                 time.Duration
	}{
		"software":        {clock: "software", min: rtt, max: waits},
		"device":          {maskA: all, kHzA: 1e6, maskB: all, kHzB: 1e6, clock: "device", min: rtt, max: rtt},
		"device of one":   {maskA: all, kHzA: 1e6, clock: "device", min: rtt, max: waits},
		"other rates":     {maskA: all, kHzA: 2e5, maskB: all, kHzB: 5e5, clock: "device", min: rtt, max: rtt},
		"it wraps":        {maskA: 1<<32 - 1, kHzA: 1e6, maskB: all, kHzB: 1e6, offset: 1<<32 - time.Second, hold: time.Second, clock: "device", min: rtt, max: rtt + time.Second},
		"late sends":      {maskA: all, kHzA: 2e5, maskB: all, kHzB: 1e6, late: 200 * time.Millisecond, clock: "device", min: rtt, max: rtt},
		"sends never end": {maskA: all, kHzA: 1e6, maskB: all, kHzB: 1e6, late: time.Hour, clock: "device"},
		"short counter":   {maskA: 1<<17 - 1, kHzA: 1e6, clock: "software", min: rtt, max: waits},
		"no extended CQs": {maskA: all, kHzA: 1e6, refused: syscall.EOPNOTSUPP, clock: "software", min: rtt, max: waits},
	} {
		bubble(t, name, func(t *testing.T, n *network) {
			n.a.TimestampMask, n.a.CoreClock, n.b.TimestampMask, n.b.CoreClock = tt.maskA, tt.kHzA, tt.maskB, tt.kHzB
			n.a.Offset, n.a.LateSends, n.a.Fails = tt.offset, tt.late, map[verbs.Verb]syscall.Errno{verbs.CreateCQEx: tt.refused}
			n.slow = slow{device: "b", verb: verbs.PostSend, takes: time.Millisecond}
			n.lose = func(p fabric.Packet) bool { // The first one takes longer.
				if p.From == n.a.GID && p.Payload[19] == 0 {
					time.Sleep(tt.hold)
				}
				return false
			}
			p := n.run(t)
			if p.Clock != tt.clock || p.RTTMin != tt.min || p.RTTMax != tt.max || p.Result != state.PathOK || p.Sent != 9 || p.MTU != 1024 || p.Flows != 3 {
				t.Errorf("want %s, up to %s, got %+v", tt.clock, tt.max, p)
			}
		})
	}
}

// TestOverHTTP verifies that two runs may ask at once, and that clients learn that others did.
func TestOverHTTP(t *testing.T) {
	n := newNetwork()
	server := httptest.NewServer(n.responder.Handler())
	defer server.Close()
	n.ask.Client, n.ask.Base = server.Client(), server.URL
	var running sync.WaitGroup
	for range 2 {
		running.Go(func() {
			if p := n.run(t); p.Result != state.PathOK || p.PeerReached {
				t.Errorf("got %+v", p)
			}
		})
	}
	running.Wait()
	n.instead("none", 0, "")
	if p := n.run(t); !p.PeerReached || p.PeerToR != "t1" || p.PeerRail != "r1" {
		t.Errorf("got %+v", p)
	}
	n.end(t, 0)
}
