"""Commands as a unit or a container would have them, without systemd and without containers: in a
mount namespace whose disk cannot be written but for some folders, by a user that is not root.
"""

import os
import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

USER = 1000
_NEEDED = ("unshare", "setpriv", "mount")


def reason_not_to() -> str | None:
    """The reason why this machine cannot confine anything; None if it can."""
    missing = [name for name in _NEEDED if shutil.which(name) is None]
    if missing:
        return f"there is no {', '.join(missing)} here"
    if os.geteuid():
        return "only root can make a disk read-only for a command"
    done = subprocess.run(_words(["true"], []), capture_output=True, text=True, check=False)
    return done.stderr.strip() or "no namespace can be had" if done.returncode else None


def confined(
    command: Sequence[str], writable: Sequence[Path], environment: Mapping[str, str]
) -> "subprocess.Popen[str]":
    """The command as a child, in the root of the disk; with this environment alone, and a home that
    is not there. It may read all: the interpreter is often in a folder of root's.
    """
    for folder in writable:
        os.chown(folder, USER, USER)
    return subprocess.Popen(
        _words(command, writable),
        cwd="/",
        env={"PATH": os.environ["PATH"], "HOME": "/proc/nohome", **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _words(command: Sequence[str], writable: Sequence[Path]) -> list[str]:
    one_right = "-all,+dac_read_search"
    user = [
        *("setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups"),
        *(f"--inh-caps={one_right}", f"--ambient-caps={one_right}", f"--bounding-set={one_right}"),
    ]
    lines = [f"mount --bind {shlex.quote(str(one))} {shlex.quote(str(one))}" for one in writable]
    lines += ["mount -o remount,ro,bind /", f"exec {shlex.join([*user, *command])}"]
    return ["unshare", "--mount", "sh", "-e", "-c", "\n".join(lines)]
