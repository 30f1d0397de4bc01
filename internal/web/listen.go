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

func listen(ctx context.Context, address string) (l net.Listener, err error) {
	rest, virtual := strings.CutPrefix(address, vsockPrefix)
	_, port, err := net.SplitHostPort(rest)
	number, notNumber := strconv.ParseUint(port, 10, 32)
	switch {
	case err != nil:
	case port == "": // It would be any port.
		err = errors.New("the port is missing")
	case virtual && notNumber != nil:
		err = errors.New("the port is not a number")
	case virtual:
		l, err = vsock.Listen(uint32(number), nil)
	default:
		l, err = new(net.ListenConfig).Listen(ctx, "tcp", address)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: use another HOST:PORT", err)
	}
	return l, nil
}
