"""In a daemon, only the launcher's code starts processes: no library that it imports, however it goes about it."""

import subprocess
import sys

GUARDED = """
import ctypes.util, os, subprocess, sys
from handrail.launcher.child import start_program
from handrail.launcher.child_guard import refuse_other_children
refuse_other_children()
for start in (
    lambda: subprocess.run(["true"]),
    lambda: os.posix_spawn("/bin/true", ["true"], {}),
    lambda: os.execv("/bin/true", ["true"]),
    lambda: os.fork() or os._exit(0),
    lambda: os.system("true"),
):
    try:
        start()
    except PermissionError:
        print("refused")
print(ctypes.util.find_library("none-of-this-name"))
child = start_program(["/bin/true"])
print(child.wait(20), child.error)
child.close()
"""


def test_every_way_to_start_a_process_is_refused_but_the_launchers() -> None:
    done = subprocess.run(
        [sys.executable, "-c", GUARDED], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout.split() == [*["refused"] * 5, "None", "0"], done.stdout + done.stderr
