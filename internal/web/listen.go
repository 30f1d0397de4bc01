package web

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	toolkit "github.com/prometheus/exporter-toolkit/web"
)

// vsock is what an address of a virtual machine's socket begins with.
const vsock = "vsock://"

// Listen listens at the addresses that flags say, so that one which is wrong is found
// before anything is begun. It returns no listeners where that is left to the toolkit: for
// sockets of systemd, and if an address is that of a virtual machine. Errors name the flag
// and the address.
func Listen(ctx context.Context, flags *toolkit.FlagConfig) ([]net.Listener, error) {
	if flags.WebSystemdSocket != nil && *flags.WebSystemdSocket {
		return nil, nil
	}
	addresses := *flags.WebListenAddresses
	for _, a := range addresses {
		if err := checkAddress(a); err != nil {
			return nil, fmt.Errorf("--web.listen-address is %q: %w: use HOST:PORT, such as :10879 or 127.0.0.1:10879", a, err)
		}
	}
	if slices.ContainsFunc(addresses, func(a string) bool { return strings.HasPrefix(a, vsock) }) {
		return nil, nil
	}
	var all []net.Listener
	for _, a := range addresses {
		var config net.ListenConfig
		l, err := config.Listen(ctx, "tcp", a)
		if err != nil {
			for _, l := range all {
				_ = l.Close()
			}
			var network *net.OpError
			if errors.As(err, &network) {
				err = network.Err // without the address
			}
			return nil, fmt.Errorf("--web.listen-address is %q: %w: choose another address", a, err)
		}
		all = append(all, l)
	}
	return all, nil
}

// checkAddress returns what is wrong with the form of an address.
func checkAddress(address string) error {
	if address == "" {
		return errors.New("it is empty")
	}
	virtual := strings.HasPrefix(address, vsock)
	if virtual {
		u, err := url.Parse(address)
		if err != nil {
			return err
		}
		address = u.Host
	}
	_, port, err := net.SplitHostPort(address)
	var wrong *net.AddrError
	switch {
	case errors.As(err, &wrong):
		return errors.New(wrong.Err) // without the address
	case err != nil:
		return err
	case port == "":
		return errors.New("the port is missing")
	}
	if _, err := strconv.ParseUint(port, 10, 32); virtual && err != nil {
		return errors.New("the port is not a number")
	}
	return nil
}
