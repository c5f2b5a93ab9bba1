# From finished runs to figures, tables and claims: seconds each. What they say depends on params.yaml too (labels, titles).
rule curves:
    input:
        sources("curves.py", "load.py"),
        params="params.yaml",
        runs=lambda wildcards: [
            f"results/runs/{run.name}/progress.csv"
            for run in grid.runs(wildcards.experiment)
        ],
    output:
        "results/{scale}/curves/{experiment}.csv",
    log:
        "results/logs/{scale}/curves/{experiment}.log",
    conda:
        "../envs/etmdp.yaml"
    shell:
        "etmdp curves {wildcards.experiment} --scale {wildcards.scale} --runs results/runs --out {output} 2> {log}"


rule figure:
    input:
        sources("figures.py", "maps.py", "style.py"),
        params="params.yaml",
        curves=lambda wildcards: curves_of(wildcards.experiment),
    output:
        pdf="results/{scale}/figures/{experiment}.pdf",
        png=report(
            "results/{scale}/figures/{experiment}.png",
            caption="../report/figure.rst",
            category="Figures",
            labels={"experiment": "{experiment}", "scale": "{scale}"},
        ),
    log:
        "results/logs/{scale}/figures/{experiment}.log",
    conda:
        "../envs/etmdp.yaml"
    params:
        curves=lambda wildcards, input: (
            f"--curves {input.curves}" if input.curves else ""
        ),
    shell:
        "etmdp figure {wildcards.experiment} --scale {wildcards.scale} {params.curves} --out {output} 2> {log}"


rule table:
    input:
        sources("tables.py"),
        params="params.yaml",
        curves="results/{scale}/curves/{experiment}.csv",
    output:
        csv=report(
            "results/{scale}/tables/{experiment}.csv",
            caption="../report/table.rst",
            category="Tables",
            labels={"experiment": "{experiment}", "scale": "{scale}"},
        ),
        md="results/{scale}/tables/{experiment}.md",
    log:
        "results/logs/{scale}/tables/{experiment}.log",
    conda:
        "../envs/etmdp.yaml"
    shell:
        "etmdp table {wildcards.experiment} --scale {wildcards.scale} --curves {input.curves} --out {output} 2> {log}"


rule claims:
    input:
        sources("claims.py", "rules.py", "verdicts.py"),
        params="params.yaml",
        curves=[path for name in grid.experiments for path in curves_of(name)],
    output:
        md=report(
            "results/{scale}/claims.md",
            caption="../report/claims.rst",
            category="Claims",
        ),
        json="results/{scale}/claims.json",
    log:
        "results/logs/{scale}/claims.log",
    conda:
        "../envs/etmdp.yaml"
    shell:
        "etmdp claims --scale {wildcards.scale} --curves results/{wildcards.scale}/curves --out {output} 2> {log}"


rule metrics:
    input:
        sources("metrics.py"),
        params="params.yaml",
        curves=[path for name in grid.experiments for path in curves_of(name)],
    output:
        "results/{scale}/metrics.json",
    log:
        "results/logs/{scale}/metrics.log",
    conda:
        "../envs/etmdp.yaml"
    shell:
        "etmdp metrics --scale {wildcards.scale} --curves results/{wildcards.scale}/curves --out {output} 2> {log}"


rule report:
    input:
        sources("report.py", "report.html", "report.css", "report.js"),
        "results/{scale}/claims.json",
        "results/{scale}/metrics.json",
        [path for name in grid.experiments for path in files_of(name)],
        params="params.yaml",
    output:
        "results/{scale}/report.html",
    log:
        "results/logs/{scale}/report.log",
    conda:
        "../envs/etmdp.yaml"
    shell:
        "etmdp report --scale {wildcards.scale} --results results/{wildcards.scale} --runs results/runs"
        " --out {output} 2> {log}"
