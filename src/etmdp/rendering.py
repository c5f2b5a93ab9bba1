"""Drawing MuJoCo scenes without a screen, and plain words where a system library for it is missing.

Imports nothing heavy: `prepare` must be able to run before Gymnasium, which imports MuJoCo, is imported.
"""

from __future__ import annotations

import ctypes
import os
import weakref
from typing import TYPE_CHECKING, Any

from etmdp.errors import UserError

if TYPE_CHECKING:
    import numpy as np

FRAME_SIZE = 480  # pixels, width and height
# What MUJOCO_GL may name, the library each needs, and the Debian package that has it.
LIBRARIES = {"egl": ("libEGL.so.1", "libegl1"), "osmesa": ("libOSMesa.so.8", "libosmesa6")}
REMEDY = "install EGL or OSMesa (on Debian: apt-get install libegl1, or libosmesa6 and MUJOCO_GL=osmesa)"


def prepare(render_mode: str | None) -> None:
    """Settles which OpenGL library draws; to be called before a simulator is imported.

    Keeps the user's MUJOCO_GL. Without it a screen is used if there is one, otherwise EGL or OSMesa.
    """
    backend, screen = os.environ.get("MUJOCO_GL", ""), bool(os.environ.get("DISPLAY"))
    if backend in LIBRARIES:
        library, package = LIBRARIES[backend]
        if not _loads(library):
            # MuJoCo would fail to import, even where nothing is to be drawn.
            raise UserError(
                f"MUJOCO_GL is {backend}, but {library} is missing; install it (on Debian: {package})"
            )
    elif backend not in ("", "glfw", "disable"):
        raise UserError(
            f"MUJOCO_GL is {backend!r}; allowed: {', '.join(LIBRARIES)}, glfw (a screen), disable"
        )
    elif render_mode is None:
        return
    elif backend == "disable" or (backend == "glfw" and not screen):
        reason = "there is no screen" if backend == "glfw" else "that is what it means"
        raise UserError(
            f"cannot render: MUJOCO_GL is {backend}, and {reason}; set it to {' or '.join(LIBRARIES)}"
        )
    elif not backend:
        found = ["glfw"] if screen else [name for name, (library, _) in LIBRARIES.items() if _loads(library)]
        if not found:
            raise UserError(f"cannot render: there is no screen and no library to do without; {REMEDY}")
        os.environ["MUJOCO_GL"] = found[0]


class Camera:
    """Draws frames of a MuJoCo simulation.

    Args:
        model, data: the simulation.
        name: one of the model's cameras.
        all_groups: also draw geoms of the groups that MuJoCo leaves out by default.
    """

    def __init__(self, model: Any, data: Any, name: str, all_groups: bool = False) -> None:
        import mujoco
        import numpy as np
        from gymnasium.envs.mujoco.mujoco_rendering import OffScreenViewer

        self.model = model
        model.vis.global_.offwidth = model.vis.global_.offheight = FRAME_SIZE
        self._id = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_CAMERA, name)
        try:
            self._viewer = OffScreenViewer(model, data)
        except (
            Exception
        ) as error:  # OpenGL's bindings fail in many ways: ImportError, AttributeError, FatalError ...
            backend = os.environ.get("MUJOCO_GL")
            raise UserError(f"cannot render (MUJOCO_GL is {backend}): {error}; {REMEDY}") from error
        if all_groups:
            # MuJoCo 2.3.3 gives numpy 2 this array with stride 0: only its first element could be set.
            groups = self._viewer.vopt.geomgroup
            np.lib.stride_tricks.as_strided(groups, strides=(groups.itemsize,))[:] = 1
        # The interpreter's end would be too late: OpenGL's bindings are gone by then.
        weakref.finalize(self, self._viewer.free)

    def frame(self) -> np.ndarray:
        self._viewer.make_context_current()  # another camera may have been in use since
        return self._viewer.render("rgb_array", self._id)


def _loads(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True
