package web

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	toolkit "github.com/prometheus/exporter-toolkit/web"
)

const (
	// shutdownTimeout is how long requests in flight may go on after the end was
	// asked for.
	shutdownTimeout = 3 * time.Second
	// closeTimeout is how long closed listeners may take to be given up.
	closeTimeout = time.Second
)

// Serve serves handler on listeners, or if there are none listens as flags say, until ctx
// is cancelled. Then it
// takes no new connections, gives requests in flight 3 seconds to end, cuts those
// that have not, and returns nil: within 5 seconds in all. If it cannot listen,
// or listening ends by itself, it returns the error.
//
// The web configuration, which flags need not name, and the files that it names are read
// again for each connection and request, so that certificates and passwords can be
// replaced.
//
// Connections, and what is kept for clients that do not read it, are bounded: those
// that are beyond a limit cost others, not the exporter and not who comes next.
func Serve(ctx context.Context, handler http.Handler, listeners []net.Listener, flags *toolkit.FlagConfig, config *ConfigFile, logger *slog.Logger) error {
	return serve(ctx, handler, listeners, flags, config, logger, shutdownTimeout)
}

// serve is Serve that gives requests in flight some time to end.
func serve(ctx context.Context, handler http.Handler, listeners []net.Listener, flags *toolkit.FlagConfig, config *ConfigFile, logger *slog.Logger, timeout time.Duration) error {
	connections := bounded(logger, time.Now)
	clients := newClients(connections)
	server := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams:          maxStreams,
			MaxReadFrameSize:              maxFrame,
			MaxReceiveBufferPerConnection: connectionReceives,
			MaxReceiveBufferPerStream:     streamReceives,
			WriteByteTimeout:              stallTimeout,
		},
		ConnState: func(conn net.Conn, state http.ConnState) {
			// This comes before the toolkit reads it: for the handshake, and for the request.
			if state == http.StateNew || state == http.StateActive {
				config.refresh()
			}
			clients.connState(conn, state)
		},
		ErrorLog: slog.NewLogLogger(connections.Handler(), slog.LevelWarn),
	}
	ended := make(chan error, 1)
	// The toolkit has a count of its own: what it says of the configuration is not to be
	// lost among messages about connections.
	go func() { ended <- listenAndServe(server, listeners, flags, config, bounded(logger, time.Now)) }()

	select {
	case err := <-ended:
		return fmt.Errorf("serve HTTP: %w", err)
	case <-ctx.Done():
	}

	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	if err := server.Shutdown(grace); err != nil {
		logger.Warn("Requests in flight did not end in time and were cut", "err", err)
		if err := server.Close(); err != nil {
			logger.Warn("Cannot close all connections", "err", err)
		}
	}
	select {
	case err := <-ended:
		if !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serve HTTP: %w", err)
		}
	case <-time.After(closeTimeout):
		logger.Warn("Listening did not end in time")
	}
	return nil
}

// listenAndServe has the toolkit serve.
func listenAndServe(server *http.Server, listeners []net.Listener, flags *toolkit.FlagConfig, config *ConfigFile, logger *slog.Logger) error {
	path := config.toolkitPath()
	own := toolkit.FlagConfig{WebListenAddresses: flags.WebListenAddresses, WebSystemdSocket: flags.WebSystemdSocket, WebConfigFile: &path}
	if listeners == nil {
		return toolkit.ListenAndServe(server, &own, logger)
	}
	return toolkit.ServeMultiple(listeners, server, &own, logger)
}
