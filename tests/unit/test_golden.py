"""Training behaviour has not changed behind our back."""

import numpy as np
import pytest

from etmdp.config import TRAINING_VERSION
from etmdp.progress import read_rows
from etmdp.train import train

# episodes, train_cost, critic_loss and actor_loss in the last row of a 300-step run.
GOLDEN = {
    "td3": [11, 3, 2.5856, 0.40034],
    "context_td3": [13, 5, 3.3568, 0.21901],
}


@pytest.mark.parametrize("algorithm", ["td3", "context_td3"])
def test_a_small_run_gives_the_numbers_it_always_gave(tmp_path, make_config, algorithm):
    train(make_config(algorithm, steps=300), tmp_path / "run", tmp_path / "c")
    last = read_rows(tmp_path / "run" / "progress.csv")[-1]
    found = [float(last[key]) for key in ("episodes", "train_cost", "critic_loss", "actor_loss")]
    advice = (
        f"{algorithm} trains differently than at TRAINING_VERSION {TRAINING_VERSION}: found {found}. If this was "
        "meant, raise TRAINING_VERSION in src/etmdp/config.py, so that old results cannot pass for new ones, and "
        "put the new numbers here; if not, the change has a bug"
    )
    # Processors differ in the last digits; behaviour differs in the first ones.
    assert np.allclose(found, GOLDEN[algorithm], rtol=0.01), advice
