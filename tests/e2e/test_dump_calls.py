"""The stand-in library itself: without a probe it calls its own functions in the documented order."""

import os
import subprocess
import sys

import pytest
from atb_host import HOSTS, SETUP_KEYS
from conftest import REPOSITORY

sys.path.insert(0, str(REPOSITORY / "tests" / "probe"))
import check_symbols

GRAPH = (
    '{"inTensorNum":3,"internalTensorNum":1,"nodes":['
    '{"inTensorIds":[0,1],"inTensorNum":2,"opName":"LinearOperation_4_0","opType":"LinearOperation",'
    '"outTensorIds":[4],"outTensorNum":1,"param":{"hasBias":false,"transposeB":true}},'
    '{"inTensorIds":[4,2],"inTensorNum":2,"opName":"ElewiseOperation_4_1","opType":"ElewiseOperation",'
    '"outTensorIds":[3],"outTensorNum":1,"param":{"elewiseType":"ELEWISE_ADD"}}],'
    '"opName":"TinyLayer_4","opType":"TinyLayer","outTensorNum":1,"param":""}'
)


def trace(tmp_path, abi, *arguments, answer="no", status=0):
    """The calls of one run of the model with a layer 4 of two operations, `PID` in place of the process id."""
    file = tmp_path / "trace"
    environment = {**os.environ, "ATB_STAND_IN_TRACE": str(file), "ATB_STAND_IN_ANSWER": answer}
    command = [HOSTS / f"abi{abi}/bin/atb_host", "--model", "spec", "--first-id", "4", *arguments]
    process = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert process.returncode == status
    pid = process.stdout.split()[1]
    return file.read_text().replace(f"_{pid}/", "_PID/").splitlines()


def saved(folder, inputs):
    lines = ["IsSaveTensorData"]
    names = [f"intensor{i}" for i in range(inputs)] + ["outtensor0"]
    return lines + [f"SaveTensor 2|1|2,3|12|{folder}/{name}.bin" for name in names]


def selected(folder):
    return ["IsExecuteCountInRange 0", f"IsSaveTensorInSpecificDir {folder}"]


def reported(folder):
    inputs = ";".join(f"float16 nd 2,3 {folder}/before/intensor{i}.bin" for i in range(2))
    return f"{inputs}|float16 nd 2,3 {folder}/before/outtensor0.bin"


def kernel_calls(operation, folder, kernel):
    """Steps a to e."""
    kernel_folder = f"{folder}/{kernel}"
    return [
        "IsExecuteCountInRange 0", "IsSaveTensorBefore", f"IsSaveTensorInSpecificDir {kernel_folder}",
        *saved(f"{kernel_folder}/before", 2),
        "IsOverflowCheck",
        "ReportKernelIOTensorEnable",
        "IsSaveTensorBefore",  # for the paths of the report
        f"ReportKernelIOTensor 0|{operation}|kernel: {kernel[2:]}|{reported(folder)}",
        "IsExecuteCountInRange 0", "IsSaveTensorAfter", f"IsSaveTensorInSpecificDir {kernel_folder}",
        *saved(f"{kernel_folder}/after", 2),
    ]  # fmt: skip


def operation_calls(operation, index, folder, kernels, param):
    """Steps 1 to 5."""
    inner = [line for kernel in kernels for line in kernel_calls(operation, folder, kernel)]
    return [
        *selected(folder), "IsSaveTensorBefore", *saved(f"{folder}/before", 2),
        *inner,
        *selected(folder), "IsSaveTensorAfter", *saved(f"{folder}/after", 2),
        *selected(folder), "IsSaveParam", f"SaveParam {param}|{folder}/op_param.json",
        "ReportOperationIOTensorEnable",
        "IsSaveTensorBefore",  # for the paths of the report
        f"ReportOperationIOTensor 0|{operation}_4_{index}|{param}|{reported(folder)}",
    ]  # fmt: skip


LAYER = "0_PID/0/4_TinyLayer"
LINEAR = f"{LAYER}/0_LinearOperation"
ELEWISE_PARAM = '{"elewiseType":"ELEWISE_ADD"}'
ELEWISE = f"{LAYER}/1_ElewiseOperation"

SETUP = [
    # Children first, kernels when their operation is prepared, the layer itself in between.
    "IsTensorNeedSave 4_0|LinearOperation", "IsTensorNeedSave 4_1|ElewiseOperation",
    "ReportOperationGraphEnable", f"ReportOperationGraph TinyLayer_4|{GRAPH}",
    "IsTensorNeedSave 4|TinyLayer",
    "IsSaveTensorDesc",
    "IsTensorNeedSave 4_0_0|LinearOperation", "UpdateConfig",
    "IsTensorNeedSave 4_1_0|ElewiseOperation", "IsTensorNeedSave 4_1_1|ElewiseOperation", "UpdateConfig",
    "UpdateConfig",
    "IsExecuteCountInRange 0", "IsSaveTiling", f"IsSaveTensorInSpecificDir {LINEAR}/0_MatMulKernel",
    f"SaveTiling 16|{LINEAR}/0_MatMulKernel/kernel_tilingdata.bin",
    "IsExecuteCountInRange 0", "IsSaveTiling", f"IsSaveTensorInSpecificDir {ELEWISE}/1_AddF16Kernel",
    f"SaveTiling 24|{ELEWISE}/1_AddF16Kernel/kernel_tilingdata.bin",
    "ReportOperationStatisticEnable",
    "ReportOperationSetupStatistic 1|TinyLayer_4|" + ", ".join(f"{key}:0" for key in SETUP_KEYS),
]  # fmt: skip

EXECUTE = [
    *selected(LAYER), "IsSaveTensorBefore", *saved(f"{LAYER}/before", 3),
    *operation_calls("LinearOperation", 0, LINEAR, ["0_MatMulKernel"], '{"hasBias":false,"transposeB":true}'),
    *operation_calls("ElewiseOperation", 1, ELEWISE, ["0_CastF16Kernel", "1_AddF16Kernel"], ELEWISE_PARAM),
    *selected(LAYER), "IsSaveTensorAfter", *saved(f"{LAYER}/after", 3),
    *selected(LAYER), "IsSaveParam",  # a graph has no parameters
    "ReportOperationIOTensorEnable",  # and no row
]  # fmt: skip

TENSORS = '"SpecModel_input_0","SpecModel_input_1","SpecModel_input_2"'
MODEL = (
    f'{{"inTensors":[{TENSORS}],"internalTensors":[],"modelName":"SpecModel","nodes":[{{"inTensors":[{TENSORS}],'
    '"opName":"TinyLayer","outTensors":["SpecModel_output_0"]}],"outTensors":["SpecModel_output_0"],"weightTensors":[]}'
)


@pytest.mark.parametrize("abi", [0, 1])
def test_calls_come_in_the_documented_order(tmp_path, abi):
    expected = ["IsOverflowCheck", "IsOverflowCheck"]  # a context, and its stream
    expected += SETUP + EXECUTE
    expected += ["IsReportModelTopoInfo SpecModel", f"ReportModelTopoInfo SpecModel|{MODEL}"]
    expected += ["IsOverflowCheck"]  # the end of the context
    assert trace(tmp_path, abi, "--rounds", "1", answer="yes") == expected


def test_a_library_without_a_probe_only_asks(tmp_path):
    kernel = ["IsOverflowCheck", "ReportKernelIOTensorEnable"]
    rounds = ["IsExecuteCountInRange 0"] * 3 + ["ReportOperationIOTensorEnable"]
    operations = ["IsExecuteCountInRange 0", *kernel, *rounds[1:]]
    operations += ["IsExecuteCountInRange 0", *kernel, *kernel, *rounds[1:]]
    assert trace(tmp_path, 1, "--rounds", "1") == [
        "IsOverflowCheck", "IsOverflowCheck",
        "IsTensorNeedSave 4_0|LinearOperation", "IsTensorNeedSave 4_1|ElewiseOperation", "ReportOperationGraphEnable",
        "IsTensorNeedSave 4|TinyLayer", "IsSaveTensorDesc", "IsTensorNeedSave 4_0_0|LinearOperation", "UpdateConfig",
        "IsTensorNeedSave 4_1_0|ElewiseOperation", "IsTensorNeedSave 4_1_1|ElewiseOperation",
        "UpdateConfig", "UpdateConfig",
        "ReportOperationStatisticEnable",
        "IsExecuteCountInRange 0", *operations, *rounds[1:],
        "IsReportModelTopoInfo SpecModel",
        "IsOverflowCheck",
    ]  # fmt: skip


def test_a_second_round_asks_only_what_may_have_changed(tmp_path):
    calls = trace(tmp_path, 1, "--rounds", "2", answer="yes")
    assert calls.count("IsTensorNeedSave 4|TinyLayer") == 2
    assert calls.count("IsTensorNeedSave 4_1|ElewiseOperation") == 1
    assert calls.count("IsTensorNeedSave 4_1_1|ElewiseOperation") == 1
    assert calls.count("ReportOperationGraphEnable") == 1
    second = calls[len(SETUP + EXECUTE) + 4 :]
    assert second[:6] == [
        "IsTensorNeedSave 4|TinyLayer", "IsSaveTensorDesc",
        "IsSaveTiling", "UpdateConfig", "IsSaveTiling", "UpdateConfig",
    ]  # fmt: skip
    assert f"SaveTensor 2|1|2,3|12|{LAYER.replace('/0/', '/1/')}/after/outtensor0.bin" in second


def test_an_overflow_ends_the_operation_when_the_probe_says_so(tmp_path):
    calls = trace(tmp_path, 1, "--rounds", "2", "--overflow", "ElewiseOperation_4_1:0:0", answer="yes", status=4)
    start = calls.index("ReportOverflowKernel ElewiseOperation_4_1:CastF16Kernel")
    assert calls[start - 1 : start + 5] == [
        "IsOverflowCheck",
        "ReportOverflowKernel ElewiseOperation_4_1:CastF16Kernel",
        "IsOverflowStop",
        *selected(ELEWISE),
        "IsSaveTensorAfter",  # the operation's own tensors are saved all the same
    ]
    assert not any("1_AddF16Kernel/after" in call for call in calls)
    assert calls[-1] == "IsOverflowCheck" and not any("IsReportModelTopoInfo" in call for call in calls)


@pytest.mark.parametrize("abi, strings", [(0, check_symbols.OLD_STRINGS), (1, check_symbols.NEW_STRINGS)])
def test_the_library_offers_the_documented_names(abi, strings):
    names = check_symbols.exported(HOSTS / f"abi{abi}/lib/libatb.so", "nm")
    offered = {name for name in names if name.startswith(("_ZN3atb5Probe", "_ZN9atb_speed10SpeedProbe"))}
    offered -= {"_ZN3atb5Probe6TensorD1Ev", "_ZN3atb5Probe6TensorD2Ev"}  # where the compiler did not inline it
    assert offered == {*check_symbols.PLAIN.split(), *strings.split()}
