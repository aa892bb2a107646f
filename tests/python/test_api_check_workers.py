"""Processes that run calls: one that dies or hangs costs its own call."""

import os
import signal
import time

import pytest
from ait_llm._errors import AitError
from ait_llm.api_check.workers import run_all


def lost(job, how):
    return job, how


def squares():
    return lambda job: (job, job * job)


def odd():
    """Does what a job says."""

    def work(job):
        if job == "die":
            os.kill(os.getpid(), signal.SIGSEGV)
        if job == "exit":
            os._exit(3)
        if job == "hang":
            time.sleep(600)
        return job, os.getpid()

    return work


def test_results_come_in_the_order_of_the_jobs():
    jobs = list(range(40))
    for workers in (1, 3):
        assert list(run_all(jobs, [squares] * workers, lost, 60)) == [(job, job * job) for job in jobs]


def test_large_results_arrive_whole():
    (result,) = run_all([1], [lambda: lambda _: b"x" * (5 << 20)], lost, 60)
    assert len(result) == 5 << 20


def test_a_job_that_kills_its_process_costs_no_other():
    results = list(run_all(["a", "die", "b", "exit", "c"], [odd], lost, 60))
    assert [result[0] for result in results] == ["a", "die", "b", "exit", "c"]
    assert results[1][1] == "the process that ran it was killed by signal 11 (SIGSEGV)"
    assert results[3][1] == "the process that ran it ended with status 3"
    assert len({result[1] for result in (results[0], results[2], results[4])}) == 3


def test_a_job_that_hangs_is_ended():
    start = time.monotonic()
    results = list(run_all(["a", "hang", "b"], [odd, odd], lost, 1.0))
    assert results[1] == ("hang", "it took longer than 1 s")
    assert [result[0] for result in results] == ["a", "hang", "b"] and time.monotonic() - start < 60


def test_a_worker_that_cannot_start_is_an_error():
    def fails():
        os._exit(4)

    with pytest.raises(AitError, match="ended with status 4 before it could begin"):
        list(run_all(["a"], [fails], lost, 60))


def test_nobody_is_left_behind_when_the_reader_leaves():
    results = run_all(["a", "b", "hang"], [odd], lost, 60)
    _, pid = next(results)
    results.close()
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return
    raise AssertionError("the worker lives on")
