"""Which library draws, and what a missing one is told."""

import gymnasium.envs.mujoco.mujoco_rendering as gymnasium_rendering
import pytest

from etmdp import rendering
from etmdp.errors import UserError


@pytest.fixture
def machine(monkeypatch):
    """A function that pretends a machine with these libraries, screen and MUJOCO_GL."""

    def pretend(libraries=(), display=None, backend=None):
        monkeypatch.setattr(rendering, "_loads", lambda library: library in libraries)
        for name, value in (("DISPLAY", display), ("MUJOCO_GL", backend)):
            monkeypatch.setenv(name, value or "")  # restored at the end, also if it did not exist
            if value is None:
                del rendering.os.environ[name]

    return pretend


@pytest.mark.parametrize(
    ("libraries", "display", "chosen"),
    [
        (["libEGL.so.1", "libOSMesa.so.8"], None, "egl"),
        (["libOSMesa.so.8"], None, "osmesa"),
        (["libEGL.so.1"], ":0", "glfw"),
    ],
)
def test_choice(machine, libraries, display, chosen):
    machine(libraries, display)
    rendering.prepare("rgb_array")
    assert rendering.os.environ["MUJOCO_GL"] == chosen


def test_nothing_is_chosen_where_nothing_is_drawn(machine):
    machine()
    rendering.prepare(None)
    assert "MUJOCO_GL" not in rendering.os.environ


def test_no_library_at_all(machine):
    machine()
    with pytest.raises(UserError, match="libegl1, or libosmesa6"):
        rendering.prepare("rgb_array")


@pytest.mark.parametrize("render_mode", [None, "rgb_array"])
def test_the_library_that_mujoco_gl_names_is_missing(machine, render_mode):
    machine(["libEGL.so.1"], backend="osmesa")
    with pytest.raises(UserError, match=r"MUJOCO_GL is osmesa.*libosmesa6"):
        rendering.prepare(render_mode)


@pytest.mark.parametrize(
    ("backend", "reason"), [("glfw", "no screen"), ("disable", "set it to egl or osmesa")]
)
def test_a_setting_that_cannot_draw(machine, backend, reason):
    machine(["libEGL.so.1"], backend=backend)
    rendering.prepare(None)
    with pytest.raises(UserError, match=reason):
        rendering.prepare("rgb_array")


def test_a_value_of_mujoco_gl_that_does_not_exist(machine):
    machine(["libEGL.so.1"], backend="elg")
    with pytest.raises(UserError, match="'elg'; allowed: egl, osmesa, glfw"):
        rendering.prepare(None)


def test_a_library_that_fails_is_explained(monkeypatch):
    import mujoco

    def fail(*_):
        raise ImportError("Cannot initialize a EGL device display")

    monkeypatch.setattr(gymnasium_rendering, "OffScreenViewer", fail)
    model = mujoco.MjModel.from_xml_string("<mujoco/>")
    with pytest.raises(UserError, match=r"EGL device display.*apt-get install"):
        rendering.Camera(model, mujoco.MjData(model), "track")
