# The run table and what the rules look up in it. Parsed again by every cluster job: nothing heavy is imported here.
import os
import sys
from pathlib import Path

from snakemake.exceptions import WorkflowError

from etmdp.errors import UserError
from etmdp.grid import Grid

# The commands are this environment's, also when it has not been activated.
os.environ.update(
    PATH=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
)

unknown = set(config) - {"scale"}
if unknown:
    raise WorkflowError(
        f"--config knows only `scale`, not {sorted(unknown)}; all else is set in params.yaml"
    )
try:
    grid = Grid.load("params.yaml", config.get("scale"))
except UserError as error:
    raise WorkflowError(str(error))

RUNS = {run.name: run for run in grid.runs()}
RUN = "{env}/{method}/{variant}-{digest}/seed{seed}"


wildcard_constraints:
    env=r"[A-Za-z]\w*",
    method=r"[A-Za-z]\w*",
    variant=r"[A-Za-z]\w*",
    digest="[0-9a-f]{8}",
    seed=r"\d+",
    scale=grid.scale,
    experiment="|".join(grid.experiments),


def config_of(wildcards):
    """The resolved config of a run, as JSON."""
    name = RUN.format(**wildcards)
    if name not in RUNS:
        raise WorkflowError(
            f"no experiment of the scale {grid.scale} has the run {name}; see `etmdp runs`"
        )
    return RUNS[name].config.to_json()


def outputs_of(experiment):
    return set(grid.params["experiments"][experiment]["outputs"])


def curves_of(experiment):
    """The experiment's curves as a list: empty if it trains nothing."""
    return (
        [f"results/{grid.scale}/curves/{experiment}.csv"]
        if grid.runs(experiment)
        else []
    )


def files_of(experiment):
    """The figure and the table that the experiment's `outputs` ask for."""
    files = curves_of(experiment)
    if outputs_of(experiment) & {"curves", "visitation", "environments"}:
        files += expand(
            f"results/{grid.scale}/figures/{experiment}.{{kind}}", kind=["pdf", "png"]
        )
    if outputs_of(experiment) & {"curves", "success_table"}:
        files += expand(
            f"results/{grid.scale}/tables/{experiment}.{{kind}}", kind=["csv", "md"]
        )
    return files


def sources(*names):
    """A cheap rule is done again when its own code changes; training is not (see TRAINING_VERSION)."""
    return [f"src/etmdp/analysis/{name}" for name in names]
