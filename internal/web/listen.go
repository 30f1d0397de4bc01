package web

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/coreos/go-systemd/v22/activation"
	"github.com/mdlayher/vsock"
	toolkit "github.com/prometheus/exporter-toolkit/web"
)

// vsockPrefix begins the address of a virtual machine's socket.
const vsockPrefix = "vsock://"

// Listen listens at the addresses of the flags, or on the sockets of systemd. A wrong address
// is thus found before the exporter starts anything. Errors name the flag and the address.
func Listen(ctx context.Context, flags *toolkit.FlagConfig) ([]net.Listener, error) {
	if flags.WebSystemdSocket != nil && *flags.WebSystemdSocket {
		all, err := activation.Listeners()
		if err == nil && len(all) == 0 {
			err = errors.New("systemd passed no socket")
		}
		if err != nil {
			return nil, fmt.Errorf("--web.systemd-socket: %w", err)
		}
		return all, nil
	}
	var all []net.Listener
	for _, a := range *flags.WebListenAddresses {
		l, err := listen(ctx, a)
		if err != nil {
			for _, l := range all {
				_ = l.Close()
			}
			return nil, fmt.Errorf("--web.listen-address is %q: %w", a, err)
		}
		all = append(all, l)
	}
	if len(all) == 0 {
		return nil, errors.New("no address to listen at: set --web.listen-address")
	}
	return all, nil
}

func listen(ctx context.Context, address string) (net.Listener, error) {
	port, err := checkAddress(address)
	if err != nil {
		return nil, fmt.Errorf("%w: use HOST:PORT, such as :10879 or 127.0.0.1:10879", err)
	}
	var l net.Listener
	if strings.HasPrefix(address, vsockPrefix) {
		l, err = vsock.Listen(port, nil)
	} else {
		var config net.ListenConfig
		l, err = config.Listen(ctx, "tcp", address)
	}
	if err != nil {
		var network *net.OpError
		if errors.As(err, &network) {
			err = network.Err // without the address
		}
		return nil, fmt.Errorf("%w: choose another address", err)
	}
	return l, nil
}

// checkAddress returns an error if an address is malformed. It also returns the port of a
// virtual machine's socket.
func checkAddress(address string) (port uint32, err error) {
	if address == "" {
		return 0, errors.New("it is empty")
	}
	address, virtual := strings.CutPrefix(address, vsockPrefix)
	_, text, err := net.SplitHostPort(address)
	var wrong *net.AddrError
	switch {
	case errors.As(err, &wrong):
		return 0, errors.New(wrong.Err) // without the address
	case err != nil:
		return 0, err
	case text == "":
		return 0, errors.New("the port is missing")
	}
	n, err := strconv.ParseUint(text, 10, 32)
	if virtual && err != nil {
		return 0, errors.New("the port is not a number")
	}
	return uint32(n), nil
}
