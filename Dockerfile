# An image with the program and no shell: docker build -t samestory:0.1.0 .
# The first build compiles RocksDB and librdkafka; later builds only compile what changed in src/.
# `make test-image` runs the steps below without Docker, and then the resulting program.

FROM rust:1.95.0-slim-bookworm AS build
SHELL ["/bin/bash", "-o", "pipefail", "-c"]
# Packages for the two C++ libraries and the SBOM; versions are those of the pinned Debian release.
# hadolint ignore=DL3008
RUN apt-get update \
 && apt-get install -y --no-install-recommends g++ jq libclang-dev libssl-dev make pkg-config zlib1g-dev \
 && rm -rf /var/lib/apt/lists/*
WORKDIR /build
ENV CARGO_TARGET_DIR=/target

# Dependencies get their own layer, built around an empty program.
COPY Cargo.toml Cargo.lock ./
COPY bench/Cargo.toml bench/
COPY crates/samestory-compat/Cargo.toml crates/samestory-compat/
COPY crates/samestory-engine/Cargo.toml crates/samestory-engine/
COPY crates/samestory-eval/Cargo.toml crates/samestory-eval/
COPY python/Cargo.toml python/
RUN mkdir -p src bench/src/bin crates/samestory-compat/src crates/samestory-engine/src crates/samestory-eval/src python/src \
 && echo 'fn main() {}' | tee src/main.rs bench/src/main.rs bench/src/bin/kafka.rs crates/samestory-compat/src/lib.rs \
    crates/samestory-engine/src/lib.rs crates/samestory-eval/src/lib.rs python/src/lib.rs >src/lib.rs \
 && cargo build --release --locked --bin samestory \
 && rm -r src crates/*/src

COPY samestory.toml ./
COPY schemas schemas
COPY crates crates
COPY src src
# Cargo compares timestamps, and the artefacts built above are newer than the copied sources.
RUN find src crates -name '*.rs' -exec touch {} + \
 && cargo build --release --locked --bin samestory

# Keep the symbols for backtraces; strip the debug information, which is ten times the size of the program.
COPY LICENSE ./
COPY dev/sbom dev/sbom
RUN mkdir -p image/usr/local/bin image/usr/lib image/usr/share/doc/samestory image/var/lib/samestory \
 && strip --strip-debug -o image/usr/local/bin/samestory "$CARGO_TARGET_DIR/release/samestory" \
 && cp -L "/usr/lib/$(uname -m)-linux-gnu/libz.so.1" image/usr/lib/ \
 && cp LICENSE image/usr/share/doc/samestory/ \
 && dev/sbom/make image/usr/local/bin/samestory >image/usr/share/doc/samestory/sbom.cdx.json

# glibc, libstdc++, OpenSSL and certificates; no shell, no package manager, no root user.
FROM gcr.io/distroless/cc-debian12:nonroot
ARG REVISION=unknown
LABEL org.opencontainers.image.title="samestory" \
      org.opencontainers.image.description="Exactly-once near-duplicate verdicts for article streams" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="0.1.0" \
      org.opencontainers.image.revision="$REVISION"
COPY --from=build /build/image/usr /usr
# A new volume mounted here takes its owner from the image.
COPY --from=build --chown=65532:65532 /build/image/var/lib/samestory /var/lib/samestory
USER 65532:65532
WORKDIR /var/lib/samestory
EXPOSE 9464 9465
STOPSIGNAL SIGTERM
ENTRYPOINT ["/usr/local/bin/samestory"]
CMD ["run"]
