"""Holds the probe's library against what hosts rely on: its names, the C library it asks for, the libraries it needs.

    check_symbols.py LIBRARY [NM [OBJDUMP]]

Prints one line for each thing that is wrong, and fails if there is any.
"""

import re
import subprocess
import sys

# Names without a string among their parameters.
PLAIN = """
_ZN3atb5Probe16IsSaveTensorDataEv _ZN3atb5Probe16IsSaveTensorDescEv _ZN3atb5Probe21IsExecuteCountInRangeEm
_ZN3atb5Probe18IsSaveTensorBeforeEv _ZN3atb5Probe17IsSaveTensorAfterEv _ZN3atb5Probe12IsSaveTilingEv
_ZN3atb5Probe11IsSaveParamEv _ZN3atb5Probe29ReportOperationIOTensorEnableEv
_ZN3atb5Probe30ReportOperationStatisticEnableEv _ZN3atb5Probe26ReportKernelIOTensorEnableEv
_ZN3atb5Probe26ReportOperationGraphEnableEv _ZN3atb5Probe15IsOverflowCheckEv _ZN3atb5Probe14IsOverflowStopEv
_ZN3atb5Probe12UpdateConfigEv
"""

# _GLIBCXX_USE_CXX11_ABI=0
OLD_STRINGS = """
_ZN3atb5Probe16IsTensorNeedSaveERKSt6vectorIlSaIlEERKSs
_ZN3atb5Probe10SaveTensorERKSsS2_S2_PKvmS2_
_ZN3atb5Probe10SaveTilingEPKhmRKSs
_ZN3atb5Probe9SaveParamERKSsS2_
_ZN3atb5Probe23ReportOperationIOTensorEmRKSsS2_RKSt6vectorINS0_6TensorESaIS4_EES8_
_ZN3atb5Probe20ReportKernelIOTensorEmRKSsS2_RKSt6vectorINS0_6TensorESaIS4_EES8_
_ZN3atb5Probe29ReportOperationSetupStatisticEmRKSsS2_
_ZN3atb5Probe31ReportOperationExecuteStatisticEmRKSsS2_
_ZN3atb5Probe20ReportOperationGraphERKSsS2_
_ZN3atb5Probe20ReportOverflowKernelERKSs
_ZN3atb5Probe25IsSaveTensorInSpecificDirERKSs
_ZN9atb_speed10SpeedProbe21IsReportModelTopoInfoERKSs
_ZN9atb_speed10SpeedProbe19ReportModelTopoInfoERKSsS2_
"""

# _GLIBCXX_USE_CXX11_ABI=1
NEW_STRINGS = """
_ZN3atb5Probe16IsTensorNeedSaveERKSt6vectorIlSaIlEERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE
_ZN3atb5Probe10SaveTensorERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEES8_S8_PKvmS8_
_ZN3atb5Probe10SaveTilingEPKhmRKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE
_ZN3atb5Probe9SaveParamERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEES8_
_ZN3atb5Probe23ReportOperationIOTensorEmRKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEES8_RKSt6vectorINS0_6TensorESaISA_EESE_
_ZN3atb5Probe20ReportKernelIOTensorEmRKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEES8_RKSt6vectorINS0_6TensorESaISA_EESE_
_ZN3atb5Probe29ReportOperationSetupStatisticEmRKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEES8_
_ZN3atb5Probe31ReportOperationExecuteStatisticEmRKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEES8_
_ZN3atb5Probe20ReportOperationGraphERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEES8_
_ZN3atb5Probe20ReportOverflowKernelERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE
_ZN3atb5Probe25IsSaveTensorInSpecificDirERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE
_ZN9atb_speed10SpeedProbe21IsReportModelTopoInfoERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE
_ZN9atb_speed10SpeedProbe19ReportModelTopoInfoERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEES8_
"""

EXPECTED = {*PLAIN.split(), *OLD_STRINGS.split(), *NEW_STRINGS.split()}

# Machines with accelerators often have no newer one, and their loader then ignores the probe.
NEWEST_GLIBC = (2, 28)

LIBC = re.compile(r"lib(c\.so\.6|pthread\.so\.0|dl\.so\.2|rt\.so\.1)|ld-linux[-\w]*\.so\.\d")


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def exported(library, nm):
    """Dynamic symbols that the library defines, without what the linker itself adds."""
    lines = output(nm, "--dynamic", "--defined-only", "--format=posix", library).splitlines()
    return {line.split()[0].split("@")[0] for line in lines}


def problems(library, nm="nm", objdump="objdump"):
    names = exported(library, nm)
    found = [f"{name} is not exported" for name in sorted(EXPECTED - names)]
    found += [f"{name} is exported and should not be" for name in sorted(names - EXPECTED)]

    symbols = re.findall(r"^\S+ (.{7}) \*UND\*\s+\S+\s+(\S+)\s+(\S+)$", output(objdump, "-T", library), re.M)
    if not any("GLIBC_2" in version for _, version, _ in symbols):
        found.append("no symbol of the C library was read")
    for flags, version, name in symbols:
        numbers = re.fullmatch(r"\(?GLIBC_(\d+)\.(\d+)(?:\.\d+)?\)?", version)
        # Weak ones may be missing: the compiler's start-up code asks for some and does without.
        if numbers is None and "w" not in flags:
            found.append(f"{name} is not of the C library ({version})")
        if numbers is not None and tuple(map(int, numbers.groups())) > NEWEST_GLIBC:
            found.append(f"{name} needs {version.strip('()')}")

    needed = re.findall(r"^\s*NEEDED\s+(\S+)", output(objdump, "-p", library), re.M)
    if not needed:
        found.append("no needed library was read")
    found += [f"{name} is needed" for name in needed if not LIBC.fullmatch(name)]
    return found


if __name__ == "__main__":
    wrong = problems(*sys.argv[1:])
    for line in wrong:
        print(line)
    sys.exit(1 if wrong else 0)
