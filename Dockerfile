# The image runs `paceline`: docker build -t paceline . && docker run --rm paceline version
# It is built from the Debian package, and has no compiler.
FROM debian:bookworm AS build
WORKDIR /paceline
COPY scripts/install_dependencies scripts/
RUN scripts/install_dependencies && apt-get install -y --no-install-recommends git
COPY . .
RUN cmake --preset release && cmake --build --preset release --target package

FROM debian:bookworm-slim
COPY --from=build /paceline/build/release/paceline_*.deb /tmp/
RUN apt-get update && apt-get install -y --no-install-recommends /tmp/paceline_*.deb && \
    rm -rf /tmp/paceline_*.deb /var/lib/apt/lists/* && \
    useradd --create-home --home-dir /srv/paceline --uid 1000 paceline
USER paceline
WORKDIR /srv/paceline
ENTRYPOINT ["paceline"]
CMD ["--help"]
