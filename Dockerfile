# The image of rdma_exporter: the program, the C library, libibverbs with its
# providers, and what these need. It has no shell. docs/container.md tells how to
# build and run it.

# Debian with Go, and the Debian or Ubuntu whose libibverbs and providers are used:
# one of your own may have those of a vendor.
ARG BUILD_IMAGE=docker.io/library/golang:1.26-bookworm
ARG RUNTIME_IMAGE=docker.io/library/debian:bookworm-slim

FROM ${BUILD_IMAGE} AS build
RUN if ! dpkg-query -W gcc libc6-dev libibverbs-dev >/dev/null 2>&1; then \
      apt-get -q update \
      && DEBIAN_FRONTEND=noninteractive apt-get -qy install --no-install-recommends gcc libc6-dev libibverbs-dev \
      && rm -rf /var/lib/apt/lists/*; \
    fi
WORKDIR /src
# Where the modules come from; if it is not given, what Go is configured to.
ARG GOPROXY
COPY go.mod go.sum ./
RUN go mod download
COPY . .
# Without VERSION, that of the file of this name.
ARG VERSION
ARG REVISION=unknown
RUN info=github.com/prometheus/common/version \
 && CGO_ENABLED=1 go build -trimpath -buildvcs=false \
      -ldflags "-s -w -X $info.Version=${VERSION:-$(cat VERSION)} -X $info.Revision=$REVISION" \
      -o /out/usr/bin/rdma_exporter ./cmd/rdma_exporter \
 && tools/image-licences /out/usr/share/doc/rdma_exporter

FROM ${RUNTIME_IMAGE} AS root
RUN if ! dpkg-query -W libibverbs1 ibverbs-providers >/dev/null 2>&1; then \
      apt-get -q update \
      && DEBIAN_FRONTEND=noninteractive apt-get -qy install --no-install-recommends libibverbs1 ibverbs-providers \
      && rm -rf /var/lib/apt/lists/*; \
    fi
COPY tools/image-root /usr/local/sbin/
COPY --from=build /out /image
RUN image-root /image usr/bin/rdma_exporter

FROM scratch
COPY --from=root /image /
ARG VERSION
ARG REVISION=unknown
ARG SOURCE
LABEL org.opencontainers.image.title="rdma_exporter" \
      org.opencontainers.image.description="Prometheus exporter and resource auditor for RDMA devices" \
      org.opencontainers.image.version="${VERSION:-unknown}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.source="${SOURCE}"
USER 10879:10879
EXPOSE 10879
ENTRYPOINT ["/usr/bin/rdma_exporter"]
HEALTHCHECK --interval=30s --timeout=10s --start-period=10s CMD ["/usr/bin/rdma_exporter", "healthcheck"]
