# The only rule that takes long, and the only one for a GPU. A run's path holds the digest of its config, so what exists
# is right: nothing is an input. The checkpoint is no output, since Snakemake deletes the outputs of a job that failed.
rule train:
    output:
        config=f"results/runs/{RUN}/config.json",
        progress=f"results/runs/{RUN}/progress.csv",
        timing=f"results/runs/{RUN}/timing.csv",
        policy=f"results/runs/{RUN}/policy.safetensors",
    log:
        f"results/logs/{RUN}.log",
    conda:
        "../envs/etmdp.yaml"
    threads: 1
    resources:
        gpu=1,
    params:
        config=config_of,
        out=lambda wildcards: f"results/runs/{RUN}".format(**wildcards),
        checkpoint=lambda wildcards: f"results/checkpoints/{RUN}".format(**wildcards),
    shell:
        "etmdp train --config {params.config:q} --out {params.out} --checkpoint {params.checkpoint} 2> {log}"
