"""Running normalisation of observations without bounds, kept as the affine map that `Spaces` is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from etmdp.spaces import Spaces

SMALLEST_STD = 1e-2  # a coordinate that hardly ever moves must not explode when it does


class Normaliser:
    """Gives the coordinates that a `Spaces` passes unchanged their running mean and standard deviation.

    Those are the coordinates without bounds; bounded ones are scaled already. (One bounded by -1 and 1 passes
    unchanged too, and is normalised with the rest.)

    Attributes:
        spaces: a copy of the environment's that follows the moments; a policy that holds it saves them.
        moments: count, mean and variance of each coordinate.
    """

    def __init__(self, spaces: Spaces) -> None:
        centre, radius = spaces.observation_centre.copy(), spaces.observation_radius.copy()
        self.spaces = replace(spaces, observation_centre=centre, observation_radius=radius)
        self.chosen = (centre == 0) & (radius == 1)
        self.moments = np.zeros((3, len(centre)))

    def update(self, scaled: np.ndarray) -> None:
        """Takes in more observations, scaled as the map is now."""
        spaces, (count, mean, variance) = self.spaces, self.moments
        raw = scaled.astype(np.float64) * spaces.observation_radius + spaces.observation_centre
        # The moments of two samples together (Chan et al., 1979).
        total, shift = count + len(raw), raw.mean(0) - mean
        variance = (count * variance + len(raw) * (raw.var(0) + shift**2 * count / total)) / total
        self.load(np.stack([total, mean + shift * len(raw) / total, variance]))

    def load(self, moments: np.ndarray) -> None:
        self.moments = moments
        count, mean, variance = moments[:, self.chosen]
        if count.any():
            self.spaces.observation_centre[self.chosen] = mean
            self.spaces.observation_radius[self.chosen] = np.maximum(np.sqrt(variance), SMALLEST_STD)
