"""safety-gymnasium's Goal task with its hot functions replaced; the trajectories stay as they are.

Where its time goes, and what is done about it:

- a reset writes a model as XML, compiles it and decodes 191 MB of sky: the model is compiled once, without
  the sky unless it is to be seen, and a reset moves its bodies;
- every reading of a position looks a name up: names are looked up once;
- the lidar makes some twenty small arrays per object: it is plain arithmetic on floats.

What looks superfluous but is kept, since trajectories depend on it: three `mj_forward` per step and five per
reset (each changes the solver's warm start), and the random number drawn for the length of each step.

Imported only after etmdp.envs.safety_gym has made safety-gymnasium importable.
"""

from __future__ import annotations

import math
import re
from typing import Any

import mujoco
import numpy as np
from safety_gymnasium import world
from safety_gymnasium.builder import Builder
from safety_gymnasium.tasks.safe_navigation.goal.goal_level1 import GoalLevel1
from safety_gymnasium.utils.common_utils import rot2quat

TAU = 2 * math.pi


class FastBuilder(Builder):
    """Like its parent, with the task below."""

    def __init__(self, task_id: str, config: dict[str, Any], render_mode: str | None = None) -> None:
        super().__init__(task_id, config, render_mode)
        self.task.sky = render_mode is not None

    def _get_task(self) -> FastGoal:
        task = FastGoal(config=self.config)
        task.build_observation_space()
        return task


class FastGoal(GoalLevel1):
    """GoalLevel1 on one compiled model. Has the parent's methods, so that its callers need not change."""

    sky = False  # whether the model has the sky, 191 MB of it
    world: Any

    def _build(self) -> None:
        """A new layout in the compiled model, by the same random numbers as the parent's."""
        if self.world is None:
            self._build_placements_dict()
            conf = self.placements_conf
            self.random_generator.set_placements_info(conf.placements, conf.extents, conf.margin)
        self.world_info.layout = self.random_generator.build_layout()
        config = self._build_world_config(self.world_info.layout)
        self.world_info.world_config_dict = config
        if self.world is None:
            self.world = World(self.agent, self._obstacles, config, self.sky)
            self.world.build()
            self._look_up_names()
        self._place(config)
        mujoco.mj_forward(self.model, self.data)
        mujoco.mj_forward(self.model, self.data)

    def _place(self, config: dict[str, Any]) -> None:
        """Leaves the model as if it had been compiled with these places, and its state as at the start."""
        model, data = self.model, self.data
        poses = {"agent": (np.append(config["agent_xy"], self.agent.z_height), config["agent_rot"])}
        for kind in ("geoms", "free_geoms"):
            poses |= {name: (spec["pos"], spec["rot"]) for name, spec in config[kind].items()}
        for name, (position, angle) in poses.items():
            body, free = self._bodies[name]
            quaternion = rot2quat(angle)
            quaternion /= math.sqrt(quaternion[0] ** 2 + quaternion[3] ** 2)  # as the compiler does
            model.body_pos[body], model.body_quat[body] = position, quaternion
            if free is not None:  # a free body's position is a coordinate too
                for start in (model.qpos0, model.qpos_spring):
                    start[free : free + 3], start[free + 3 : free + 7] = position, quaternion
        mujoco.mj_setConst(model, data)
        mujoco.mj_resetData(model, data)

    def _look_up_names(self) -> None:
        model, data = self.model, self.data
        self._bodies = {}  # name -> its number, and where its coordinates begin if it moves freely
        for name in self.world_info.layout:
            body = model.body(name)
            joint = body.jntadr[0]
            is_free = joint >= 0 and model.jnt_type[joint] == mujoco.mjtJoint.mjJNT_FREE
            self._bodies[name] = body.id, int(model.jnt_qposadr[joint]) if is_free else None
        self._agent, self._goal = model.body("agent").id, model.body("goal").id
        self._hazards = [model.body(f"hazard{i}").id for i in range(self.hazards.num)]
        self._vases = [model.body(f"vase{i}").id for i in range(self.vases.num)]
        # Views, which show the present state without a look-up.
        self._positions, self._rotation = data.xpos, data.body("agent").xmat
        self._control, self._control_range = data.ctrl, model.actuator_ctrlrange.tolist()
        info = self.agent.sensor_info
        plain = [*self.agent.sensor_conf.sensors, *info.hinge_vel_names, *info.ballangvel_names]
        self._plain_sensors = np.concatenate([_addresses(model, name) for name in plain])
        self._sensor_data = data.sensordata
        self._quaternions = [data.sensor(name).data for name in info.ballquat_names]

    def simulation_forward(self, action: np.ndarray) -> bool:
        for i, (low, high) in enumerate(self._control_range):
            self._control[i] = min(max(action[i], low), high)
        conf = self.sim_conf
        steps = self.random_generator.binomial(conf.frameskip_binom_n, conf.frameskip_binom_p)
        mujoco.mj_step(self.model, self.data, steps)
        mujoco.mj_forward(self.model, self.data)
        return False

    def dist_goal(self) -> float:
        positions = self._positions
        dx = positions.item(self._goal, 0) - positions.item(self._agent, 0)
        dy = positions.item(self._goal, 1) - positions.item(self._agent, 1)
        return math.sqrt(dx * dx + dy * dy)

    def calculate_cost(self) -> dict[str, float]:
        mujoco.mj_forward(self.model, self.data)
        positions = self._positions.tolist()
        x, y, _ = positions[self._agent]
        size, cost = self.hazards.size, 0.0
        for hazard in self._hazards:
            hazard_x, hazard_y, _ = positions[hazard]
            dx, dy = hazard_x - x, hazard_y - y
            distance = math.sqrt(dx * dx + dy * dy)
            if distance <= size:
                cost += self.hazards.cost * (size - distance)
        return {"cost_hazards": cost, "cost_sum": cost}

    def obs(self) -> np.ndarray:
        mujoco.mj_forward(self.model, self.data)
        parts = [self._sensor_data[self._plain_sensors]]
        for quaternion in self._quaternions:
            matrix = np.empty(9)
            mujoco.mju_quat2Mat(matrix, quaternion)
            parts.append(matrix)
        positions = self._positions.tolist()
        readings: list[float] = []
        for bodies in ([self._goal], self._hazards, self._vases):
            readings += self._lidar([positions[body] for body in bodies], positions[self._agent])
        return np.concatenate([*parts, readings])

    def _lidar(self, objects: list[list[float]], agent: list[float]) -> list[float]:
        """Closeness of the nearest object in each bin; an object also shows in the bins beside its own."""
        bins, reach = self.lidar_conf.num_bins, self.lidar_conf.max_dist
        width = TAU / bins
        x, y, z = agent
        r00, r01, _, r10, r11, _, r20, r21, _ = self._rotation.tolist()
        readings = [0.0] * bins
        for object_x, object_y, _ in objects:
            # Into the agent's frame; the lidar takes objects to be on the floor.
            dx, dy = object_x - x, object_y - y
            ego_x = dx * r00 + dy * r10 - z * r20
            ego_y = dx * r01 + dy * r11 - z * r21
            closeness = (reach - math.hypot(ego_x, ego_y)) / reach
            if closeness <= 0:
                continue
            angle = math.atan2(ego_y, ego_x) % TAU
            bin_ = int(angle / width)
            share = (angle - width * bin_) / width  # of the way from this bin to the next
            after, before = (bin_ + 1) % bins, bin_ - 1
            readings[bin_] = max(readings[bin_], closeness)
            readings[after] = max(readings[after], share * closeness)
            readings[before] = max(readings[before], (1 - share) * closeness)
        return readings


class World(world.World):
    """A world without sky, unless it is to be seen."""

    def __init__(self, agent: Any, obstacles: list[Any], config: dict[str, Any], sky: bool) -> None:
        self._sky = sky
        super().__init__(agent, obstacles, config)

    @property
    def xml_string(self) -> str | None:
        """What `build` has written and is about to compile."""
        return self._xml_string

    @xml_string.setter
    def xml_string(self, xml: str | None) -> None:
        without_sky = xml and re.sub(r'<texture type="skybox"[^>]*></texture>', "", xml)
        self._xml_string = xml if self._sky else without_sky


def _addresses(model: Any, sensor: str) -> np.ndarray:
    start = model.sensor(sensor).adr[0]
    return np.arange(start, start + model.sensor(sensor).dim[0])
