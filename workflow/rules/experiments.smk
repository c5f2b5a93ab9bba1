# `snakemake mazes`: one target for each experiment.
for name in grid.experiments:

    rule:
        name:
            name
        input:
            files_of(name),
