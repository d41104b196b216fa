"""A thread-concurrent RQ worker: one registration, many runs at once.

Agents wait on sockets, so threads are enough; one process holds hundreds of runs in the memory that forked workers
need for a few (docs/performance.md). RQ carries the doorbell only: a job is taken off its queue for good when it
arrives, because what is lost is found again in PostgreSQL.
"""

import gc
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import FrameType
from typing import Any

import django_rq
import psycopg
import structlog
from django.conf import settings
from django.db import connections
from redis import RedisError
from rq.exceptions import DequeueTimeout
from rq.job import Job
from rq.queue import Queue
from rq.timeouts import BaseDeathPenalty
from rq.worker.base import BaseWorker

from agents.engine import bell, clock, control, presence
from agents.engine.errands import Errands
from agents.engine.leases import leases
from agents.engine.sweeper import sweep
from agents.live.stream import flush
from memory import pool

log = structlog.get_logger(__name__)

POLL_SECONDS = 1
# How long runs have to write down what their calls have done once they are cut off.
CUT_OFF_SECONDS = 5.0
LONGEST_PAUSE = 15.0


def start(concurrency: int) -> None:
    """Be a worker until told to stop. One that starts while Redis is away waits for it.

    Args:
        concurrency: how many runs at once.
    """
    connection = django_rq.get_connection("default")
    queue = Queue("default", connection=connection)
    worker = until_redis_is_there(lambda: ThreadWorker([queue], connection=connection, concurrency=concurrency))
    # What was loaded so far lives as long as the process: the collector need not look at it again.
    gc.collect()
    gc.freeze()
    worker.work()


def until_redis_is_there[T](step: Callable[[], T]) -> T:
    """Do something that needs Redis, again and again until it was there."""
    while True:
        try:
            return step()
        except RedisError as error:
            log.warning("redis is away", error=str(error))
            time.sleep(POLL_SECONDS)


class NoDeathPenalty(BaseDeathPenalty):
    """Runs have their own limits, and RQ's time-outs are signals, which reach the main thread only."""

    def setup_death_penalty(self) -> None: ...
    def cancel_death_penalty(self) -> None: ...


class ThreadWorker(BaseWorker):
    """
    concurrency: how many runs at once.
    """

    death_penalty_class = NoDeathPenalty

    def __init__(self, *args: Any, concurrency: int = 100, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.concurrency = concurrency
        self.slots = threading.Semaphore(concurrency)
        self.threads = ThreadPoolExecutor(concurrency, thread_name_prefix="run")
        self.errands = Errands(settings.WAYMARK_ERRANDS, self._perform)
        self.stopped = threading.Event()

    def work(self, *args: Any, **kwargs: Any) -> bool:
        """Work until SIGTERM or SIGINT, then hand over what runs and return."""
        self._sign_on()
        control.listen()
        threading.Thread(target=self._renew, daemon=True, name="leases").start()
        threading.Thread(target=self._watch, daemon=True, name="fence").start()
        threading.Thread(target=self._keep_house, daemon=True, name="house").start()
        threading.Thread(target=clock.run, args=(self.stopped,), daemon=True, name="clock").start()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._request_stop)
        log.info("worker started", concurrency=self.concurrency, queues=self.queue_names())
        try:
            while not leases.draining.is_set():
                self._next()
        finally:
            self._drain()
        return True

    def execute_job(self, job: Job, queue: Queue) -> None:
        if job.func_name == bell.RUN:
            self.threads.submit(self._work_on, job)
        else:
            self.errands.put(job)
            self.slots.release()
        pipeline = self.connection.pipeline(transaction=False)
        pipeline.lrem(queue.intermediate_queue_key, 1, job.id)
        pipeline.delete(job.key)
        pipeline.execute()

    def _sign_on(self) -> None:
        """Register with RQ."""
        for step in (self.register_birth, self.subscribe):
            until_redis_is_there(step)

    def _next(self) -> None:
        if not self.slots.acquire(timeout=POLL_SECONDS):
            return
        got: tuple[Job, Queue] | None = None
        try:
            got = self._dequeue()
            if got:
                self.execute_job(*got)
        except RedisError as error:
            # A job that was submitted before Redis went away gives its slot back itself.
            log.warning("redis is away", error=str(error))
            leases.draining.wait(POLL_SECONDS)
        finally:
            if got is None:
                self.slots.release()

    def _dequeue(self) -> tuple[Job, Queue] | None:
        try:
            return Queue.dequeue_any(
                self.queues,
                POLL_SECONDS,
                connection=self.connection,
                job_class=self.job_class,
                serializer=self.serializer,
                death_penalty_class=self.death_penalty_class,
            )
        except DequeueTimeout:
            return None

    def _work_on(self, job: Job) -> None:
        try:
            self._perform(job)
        finally:
            self.slots.release()

    def _perform(self, job: Job) -> None:
        try:
            job.func(*job.args, **job.kwargs)
        except Exception:
            log.exception("job failed", job=job.description)
        finally:
            connections.close_all()

    def _renew(self) -> None:
        """Renew leases and do nothing else: whatever else is slow must not cost a lease."""
        while not self.stopped.wait(settings.WAYMARK_RENEW_SECONDS):
            try:
                leases.renew()
            except Exception:
                log.exception("renewal failed")

    def _watch(self) -> None:
        """Look at this process's own clock, whatever the renewal waits for."""
        while not self.stopped.wait(min(1.0, settings.WAYMARK_LEASE_SECONDS / 20)):
            try:
                leases.fence_off()
            except Exception:
                log.exception("self-fence failed")

    def _keep_house(self) -> None:
        """Say that this worker lives, and sweep."""
        while not self.stopped.is_set():
            try:
                presence.mark_alive()
                self.heartbeat()
                sweep()
            except (RedisError, psycopg.Error) as error:
                log.warning("housekeeping interrupted", error=str(error))
            except Exception:
                log.exception("housekeeping failed")
            self.stopped.wait(settings.WAYMARK_SWEEP_SECONDS)

    def _request_stop(self, number: int, frame: FrameType | None) -> None:
        """First signal: hand over at the next step. Second: give up at once; the leases run out by themselves."""
        signal.signal(number, signal.SIG_DFL)
        leases.draining.set()

    def _drain(self) -> None:
        """Hand over: at the next step, then in the middle of one, and at last whatever its thread is at."""
        _wait_for_runs(settings.WAYMARK_DRAIN_SECONDS)
        leases.cut_off()
        _wait_for_runs(CUT_OFF_SECONDS)
        for run_id in leases.give_up():
            bell.ring(run_id)
        self.threads.shutdown(wait=False, cancel_futures=True)
        left = self.errands.close()
        self.stopped.set()
        flush(timeout=2)
        try:
            for job in left:
                self.queues[0].enqueue_job(job)
            presence.mark_gone()
            self.teardown()  # type: ignore[no-untyped-call]
        except RedisError as error:
            log.warning("worker not signed off", error=str(error))
        pool.close()
        log.info("worker stopped")


def _wait_for_runs(seconds: float) -> None:
    until = time.monotonic() + seconds
    while leases.held and time.monotonic() < until:
        time.sleep(0.05)
