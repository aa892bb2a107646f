"""What recording the calls of an iteration costs, and what running them again costs beside the functions themselves.

    python bench/api_check.py

A training step of a llama on the CPU, plain and recorded in turns; then every recorded call run again as run_ut does,
against the time that the same functions take alone, on the device and in the benchmark's precision. Each figure is a
ratio of two things measured side by side here.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time

import torch
import transformers
from ait_llm.api_check import checking, outcome
from ait_llm.api_check.config import Config
from ait_llm.api_check.devices import Device
from ait_llm.api_check.inputs import Skip
from ait_llm.api_check.iterations import Control
from ait_llm.api_check.legs import run_bench, run_device


def training(arguments):
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        num_hidden_layers=arguments.layers,
        hidden_size=arguments.width,
        intermediate_size=arguments.width * 11 // 4,
        num_attention_heads=max(1, arguments.width // 64),
        num_key_value_heads=max(1, arguments.width // 128),
        vocab_size=arguments.vocabulary,
    )
    model = transformers.LlamaForCausalLM(config).to(arguments.device).train()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    tokens = torch.randint(0, arguments.vocabulary, (1, arguments.tokens), device=arguments.device)

    def step():
        optimizer.zero_grad()
        model(input_ids=tokens, labels=tokens).loss.backward()
        optimizer.step()

    return step


def timed(function, synchronize):
    synchronize()
    start = time.perf_counter()
    function()
    synchronize()
    return time.perf_counter() - start


def recorded(step, folder):
    config = Config()
    config.update_config(dump_path=folder)
    control = Control(config)

    def run():
        control.set_dump_switch("ON")
        step()
        control.set_dump_switch("OFF")
        control._at_exit.clear()  # the end is no place for words

    run.files = lambda: control._recording.files
    return run


def recording(step, folder, repeats, synchronize):
    """Seconds of plain and recorded steps, in turns; and the files of the last one."""
    plain, with_recording = [], []
    for repeat in range(repeats + 2):
        place = os.path.join(folder, str(repeat))
        os.mkdir(place)
        run = recorded(step, place)
        times = timed(step, synchronize), timed(run, synchronize)
        if repeat >= 2:  # two rounds to warm up
            plain.append(times[0])
            with_recording.append(times[1])
        files = run.files()
    return plain, with_recording, files.path("forward_info"), files.path("backward_info")


def bare(forward, backward, device, settings):
    """Seconds that the functions take alone, forward and backward, on the device and in the benchmark's precision."""
    seconds = cpu_seconds = 0.0
    for key, record in forward.items():
        try:
            call, _ = outcome.prepare(key, record, backward.get(key), settings)
            run_device(call, device)  # the first time is for the device to warm up
            for run in (lambda call=call: run_device(call, device), lambda call=call: run_bench(call)):
                watch = _Watch(call)
                run()
                seconds += watch.seconds
                cpu_seconds += watch.cpu_seconds
        except (Skip, RuntimeError):
            continue
    return seconds, cpu_seconds


class _Watch:
    """Counts the time inside the function of a call, and inside its backward pass."""

    def __init__(self, call):
        self.seconds = self.cpu_seconds = 0.0
        call.function = self._watched(call.function)
        if call.wants_gradients:
            backward = torch.autograd.backward
            watched = self._watched(backward)

            def once(*args, **kwargs):
                torch.autograd.backward = backward
                return watched(*args, **kwargs)

            torch.autograd.backward = once

    def _watched(self, function):
        def run(*args, **kwargs):
            start, cpu_start = time.perf_counter(), time.process_time()
            try:
                return function(*args, **kwargs)
            finally:
                self.seconds += time.perf_counter() - start
                self.cpu_seconds += time.process_time() - cpu_start

        return run


def rerun(forward, backward, folder):
    """In a process that has used no threads yet, so that it can have workers. Prints seconds: the whole run, files and
    processes included, and the functions alone."""
    settings = outcome.Settings()
    start, cpu_start = time.perf_counter(), cpu_time()
    run = checking.Run(checking.Options(forward, backward, folder, devices=("cpu",), settings=settings))
    run.run()
    whole, cpu_whole = time.perf_counter() - start, cpu_time() - cpu_start
    device = Device()
    device.prepare(settings.seed)
    alone, cpu_alone = bare(run.forward, run.backward, device, settings)
    found = {
        "rerun_seconds": whole,
        "bare_seconds": alone,
        "rerun_cpu_seconds": cpu_whole,
        "bare_cpu_seconds": cpu_alone,
    }
    counts = run.reports.by_rounding
    print(json.dumps({**found, "passed": counts.passed, "failed": counts.failed}))


def cpu_time():
    """Of this process and of those that it has waited for."""
    uses = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(use.ru_utime + use.ru_stime for use in uses)


def ratio(name, times, baselines):
    """The median over neighbouring runs, and from the lowest to the highest."""
    found = [time / baseline for time, baseline in zip(times, baselines)]
    return {f"{name}_ratio": statistics.median(found), f"{name}_spread": max(found) - min(found)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--tokens", type=int, default=256)
    parser.add_argument("--vocabulary", type=int, default=32000)
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--rerun-repeats", type=int, default=3)
    parser.add_argument("--device", default="cpu", help="of the training step; calls are run again on the CPU alone")
    parser.add_argument("--rerun", nargs=3, metavar=("FORWARD", "BACKWARD", "FOLDER"), help="only this part")
    arguments = parser.parse_args()
    if arguments.rerun:
        rerun(*arguments.rerun)
        return
    synchronize = torch.cuda.synchronize if arguments.device.startswith("cuda") else (lambda: None)
    with tempfile.TemporaryDirectory() as folder:
        step = training(arguments)
        plain, with_recording, forward, backward = recording(step, folder, arguments.repeats, synchronize)
        found = {
            "plain_seconds": statistics.median(plain),
            "recorded_seconds": statistics.median(with_recording),
            **ratio("recording", with_recording, plain),
        }
        if arguments.device == "cpu":
            reruns = []
            for repeat in range(arguments.rerun_repeats):
                place = os.path.join(folder, f"rerun{repeat}")
                command = [sys.executable, __file__, "--rerun", forward, backward, place]
                reruns.append(json.loads(subprocess.run(command, check=True, capture_output=True).stdout))
            found.update(min(reruns, key=lambda one: one["rerun_seconds"]))
            for kind in ("", "cpu_"):
                parts = ([one[f"{part}_{kind}seconds"] for one in reruns] for part in ("rerun", "bare"))
                found.update(ratio(f"rerun_{kind}".rstrip("_"), *parts))
    print(json.dumps(found))


if __name__ == "__main__":
    main()
