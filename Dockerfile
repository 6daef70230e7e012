# `make demo` and every command, in a container: docs/long_runs.md#in-a-container.
FROM python:3.12-slim

# A compiler and make; no version of theirs matters.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends gcc libc6-dev make \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --uid 1000 user && install -d -o user /app
USER 1000
WORKDIR /app

# The packages first: a change of the sources does not install them again.
COPY --chown=user Makefile requirements.txt requirements-dev.txt constraints.txt ./
RUN PIP_NO_CACHE_DIR=1 make .venv/.installed
ENV PATH=/app/.venv/bin:$PATH

COPY --chown=user . .
# The requirements may be copied with a newer date than the packages have.
RUN touch .venv/.installed
CMD ["make", "demo"]
