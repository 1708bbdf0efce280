# The program in an image without a shell: docker build -t samestory:0.1.0 .
# The first build compiles RocksDB and librdkafka; later ones only what has changed in src/.
# `make test-image` runs the steps below without Docker, and the program that comes out.

FROM rust:1.95.0-slim-bookworm AS build
SHELL ["/bin/bash", "-o", "pipefail", "-c"]
# What the two C++ libraries and the list of contents need; versions are those of the pinned Debian release.
# hadolint ignore=DL3008
RUN apt-get update \
 && apt-get install -y --no-install-recommends g++ jq libclang-dev libssl-dev make pkg-config zlib1g-dev \
 && rm -rf /var/lib/apt/lists/*
WORKDIR /build
ENV CARGO_TARGET_DIR=/target

# Dependencies in a layer of their own, around a program that does nothing.
COPY Cargo.toml Cargo.lock ./
COPY bench/Cargo.toml bench/
COPY crates/samestory-compat/Cargo.toml crates/samestory-compat/
RUN mkdir -p src bench/src/bin crates/samestory-compat/src \
 && echo 'fn main() {}' | tee src/main.rs bench/src/main.rs bench/src/bin/kafka.rs crates/samestory-compat/src/lib.rs >src/lib.rs \
 && cargo build --release --locked --bin samestory \
 && rm -r src crates/*/src

COPY samestory.toml ./
COPY schemas schemas
COPY crates crates
COPY src src
# Cargo goes by times, and what was built above is newer than what was written by people.
RUN find src crates -name '*.rs' -exec touch {} + \
 && cargo build --release --locked --bin samestory

# Symbols stay, for traces; what a debugger needs goes: it is ten times the program.
COPY LICENSE ./
COPY dev/sbom dev/sbom
RUN mkdir -p image/usr/local/bin image/usr/lib image/usr/share/doc/samestory image/var/lib/samestory \
 && strip --strip-debug -o image/usr/local/bin/samestory "$CARGO_TARGET_DIR/release/samestory" \
 && cp -L "/usr/lib/$(uname -m)-linux-gnu/libz.so.1" image/usr/lib/ \
 && cp LICENSE image/usr/share/doc/samestory/ \
 && dev/sbom/make image/usr/local/bin/samestory >image/usr/share/doc/samestory/sbom.cdx.json

# glibc, libstdc++, OpenSSL and certificates; no shell, no package manager, nobody is root.
FROM gcr.io/distroless/cc-debian12:nonroot
ARG REVISION=unknown
LABEL org.opencontainers.image.title="samestory" \
      org.opencontainers.image.description="Exactly-once near-duplicate verdicts for article streams" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="0.1.0" \
      org.opencontainers.image.revision="$REVISION"
COPY --from=build /build/image/usr /usr
# A volume that is mounted here for the first time takes its owner from the image.
COPY --from=build --chown=65532:65532 /build/image/var/lib/samestory /var/lib/samestory
USER 65532:65532
WORKDIR /var/lib/samestory
EXPOSE 9464 9465
STOPSIGNAL SIGTERM
ENTRYPOINT ["/usr/local/bin/samestory"]
CMD ["run"]
