# One image for everything. As it is, it runs all of Waymark with the built-in servers on the volume /data:
#   docker run -p 127.0.0.1:8000:8000 -v waymark:/data waymark
# deploy/ shows how web and workers run apart, on servers of your own.
FROM python:3.13-slim

# Commands of agents run inside bubblewrap, where the container may make namespaces (docs/operations.md).
RUN apt-get update -qq && apt-get install -qq --yes --no-install-recommends bubblewrap \
    && rm -rf /var/lib/apt/lists/*

# PostgreSQL wants a user with a name.
RUN useradd --system --uid 10001 --home-dir /data --shell /usr/sbin/nologin waymark \
    && install -d -o waymark -g waymark -m 700 /data

WORKDIR /app
COPY requirements.txt .
RUN pip install --no-cache-dir --require-hashes --no-deps -r requirements.txt
# What commands of agents find beside Python, apart from the packages of Waymark itself.
COPY requirements-sandbox.txt .
RUN python -m venv /opt/sandbox \
    && /opt/sandbox/bin/pip install --no-cache-dir --require-hashes --no-deps -r requirements-sandbox.txt
COPY . .
RUN python -m compileall -q agents config goals memory tools

# MALLOC_ARENA_MAX: glibc's arena per thread would cost the workers tens of MB.
ENV PYTHONUNBUFFERED=1 \
    MALLOC_ARENA_MAX=2 \
    WAYMARK_DATA=/data \
    WAYMARK_COMMAND_FOLDERS=/opt/sandbox \
    WAYMARK_LOG_FORMAT=json
USER waymark
VOLUME /data
EXPOSE 8000
STOPSIGNAL SIGTERM
CMD ["python", "manage.py", "up", "--host", "0.0.0.0", "--verbose"]
