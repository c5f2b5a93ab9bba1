"""The Slurm profile on a real cluster: one node with two pretended GPUs, on this machine, as root."""

import os
import shutil
import socket
import subprocess
import time
from pathlib import Path

import pytest

CONFIG = Path("/etc/slurm/slurm.conf")  # the job step plugin finds no other place
PROGRAMS = ("munged", "slurmctld", "slurmd", "squeue")

pytestmark = [
    pytest.mark.xdist_group("workflow"),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can start a cluster"),
    pytest.mark.skipif(not all(map(shutil.which, PROGRAMS)), reason="Slurm or munge is not installed"),
    pytest.mark.skipif(CONFIG.exists(), reason="this machine has a Slurm configuration of its own"),
]

SLURM_CONF = """\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmdParameters=config_overrides
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
AccountingStorageType=accounting_storage/none
ReturnToService=2
KillWait=5
MinJobAge=300
GresTypes=gpu
NodeName=node NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]} CPUs=4 RealMemory=64000 Gres=gpu:2
PartitionName=main Nodes=node Default=YES
"""


def free_ports(count):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def wait_until(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "the cluster does not come up"
        time.sleep(0.5)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    folder = tmp_path_factory.mktemp("slurm")
    host = socket.gethostname().split(".")[0]
    gpus = [Path(f"/dev/etmdp_test_gpu{number}") for number in range(2)]
    for gpu in gpus:
        # A character device, as a GPU is; this one is /dev/null.
        subprocess.run(["mknod", gpu, "c", "1", "3"], check=True)
    for name in ("state", "spool"):
        (folder / name).mkdir()
    CONFIG.parent.mkdir(exist_ok=True)
    CONFIG.write_text(SLURM_CONF.format(host=host, folder=folder, ports=free_ports(2)))
    gres = CONFIG.with_name("gres.conf")
    gres.write_text("AutoDetect=off\n" + "".join(f"NodeName=node Name=gpu File={gpu}\n" for gpu in gpus))
    munge = Path("/run/munge")
    munge.mkdir(exist_ok=True)
    shutil.chown(munge, "munge", "munge")

    daemons = []

    def start(*command):
        log = (folder / f"{Path(command[-1]).name}{len(daemons)}.log").open("w")
        daemons.append(
            subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, start_new_session=True)
        )

    def node_is_idle():
        result = subprocess.run(["sinfo", "--noheader", "--format=%T"], capture_output=True, text=True)
        return result.stdout.strip() == "idle"

    try:
        start("runuser", "-u", "munge", "--", "munged", "--foreground")
        wait_until(lambda: subprocess.run(["munge", "-n"], capture_output=True).returncode == 0)
        start("slurmctld", "-D")
        start("slurmd", "-D", "-N", "node")
        wait_until(node_is_idle)
        yield
    finally:
        subprocess.run(["scancel", "--user=root"], capture_output=True)
        for daemon in reversed(daemons):
            daemon.terminate()
        for daemon in reversed(daemons):
            daemon.wait(30)
        for path in (CONFIG, gres, *gpus):
            path.unlink()


def submit(project, ok=True):
    """Runs the workflow with the profile, but looks at the jobs sooner, since these are short."""
    command = (
        "snakemake",
        "--profile",
        "workflow/profiles/slurm",
        "--slurm-init-seconds-before-status-checks",
        "10",
    )
    return project.run("timeout", "-s", "INT", "-k", "30", "400", *command, ok=ok)


def test_runs_are_submitted_with_a_gpu_and_all_is_made(cluster, fresh):
    output = submit(fresh)
    assert len(fresh.finished()) == 2
    assert "report.html" in fresh.results()
    assert output.count("submitted with SLURM jobid") == 2
    jobs = subprocess.run(["scontrol", "show", "jobs"], capture_output=True, text=True).stdout
    assert jobs.count("JobState=COMPLETED") == 2
    assert jobs.count("gres:gpu:1") == 2 or jobs.count("gres/gpu=1") >= 2
    assert not jobs.count("JobState=FAILED")


def test_a_failing_run_is_tried_twice_and_harms_no_other(cluster, fresh):
    fresh.change("environments.maze_1.id", "etmdp/Nowhere-v0")
    output = submit(fresh, ok=False)
    assert output.count("submitted with SLURM jobid") == 3
    assert "etmdp: error: there is no environment" in output
    assert [name.split("/")[0] for name in fresh.finished()] == ["nav_easy"]
    assert (fresh.root / "results/smoke/tables/success_rate.csv").exists()
