"""Programs that start processes themselves are refused with the command that is meant; MPI programs get a launcher that
their library knows. profiles/programs/launchers.json has the names."""
import json
import os
import re
import struct
import sys

import support
from support import ROOT, Test, clean_env, hpclaunch, need

DATA = os.path.join(ROOT, "profiles", "programs", "launchers.json")


def words(text):
    return text.split()


class Programs(Test):
    MEANT = {
        "torchrun --nproc_per_node=8 train.py --lr 1": "hpclaunch run --ppn 8 -- python train.py --lr 1",
        "torchrun --standalone --nproc-per-node 4 -m pkg.train": "hpclaunch run --ppn 4 -- python -m pkg.train",
        "torchrun --nnodes=2 --nproc_per_node=8 --rdzv_backend c10d --rdzv_endpoint h:1 train.py": "hpclaunch run -N 2 --ppn 8 -- python train.py",
        "torchrun --no-python --nproc-per-node 2 ./a.out x": "hpclaunch run --ppn 2 -- ./a.out x",
        "torchrun --nproc_per_node gpu train.py": "hpclaunch run -- python train.py",
        "/opt/venv/bin/torchrun train.py": "hpclaunch run -- python train.py",
        "python -m torch.distributed.run --nproc_per_node=8 train.py": "hpclaunch run --ppn 8 -- python train.py",
        "/opt/py/bin/python3.11 -u -X dev -m torch.distributed.launch --nproc_per_node 2 train.py": "hpclaunch run --ppn 2 -- /opt/py/bin/python3.11 train.py",
        "python /opt/venv/bin/torchrun --nproc_per_node 2 train.py": "hpclaunch run --ppn 2 --",
        "accelerate launch --num_processes 16 --num_machines 2 --mixed_precision bf16 train.py": "hpclaunch run -n 16 -N 2 -- python train.py",
        "accelerate-launch --multi_gpu train.py": "hpclaunch run -- python train.py",
        "deepspeed --num_gpus=4 train.py --deepspeed ds.json": "hpclaunch run --ppn 4 -- python train.py --deepspeed ds.json",
        "srun -N 2 -n16 --ntasks-per-node=8 ./prog": "hpclaunch run -N 2 -n 16 --ppn 8 -- ./prog",
        "mpiexec -n 4 -ppn 2 ./prog": "hpclaunch run -n 4 --ppn 2 -- ./prog",
        "mpirun --mca btl self -np 4 ./prog": "hpclaunch run -n 4 -- ./prog",
        "mpiexec.hydra -n 4 ./prog": "hpclaunch run -n 4 -- ./prog",
        "flux run -N2 -n8 ./prog": "hpclaunch run -N 2 -n 8 -- ./prog",
        "ray start --head": "hpclaunch run --agent -- ray start --head",
        "vllm serve model": "hpclaunch run --agent -- vllm serve model",
        "vllm serve model --tensor-parallel-size 4 --data-parallel-size 2 --headless": "hpclaunch run --agent -- vllm serve model --tensor-parallel-size 4",
        "python -m vllm.entrypoints.cli.main serve model": "hpclaunch run --agent -- python -m vllm.entrypoints.cli.main serve model",
        "sglang serve --model-path m --tp 2": "hpclaunch run --agent -- sglang serve --model-path m --tp 2",
        "python3 -m sglang.launch_server --model-path m": "hpclaunch run --agent -- python3 -m sglang.launch_server --model-path m",
        "trl vllm-serve --model m": "hpclaunch run --agent -- trl vllm-serve --model m",
        "trl sft --config c.yaml": "hpclaunch run --agent -- trl sft --config c.yaml",
        "python3 -m dynamo.vllm --model m": "hpclaunch run --agent -- python3 -m dynamo.vllm --model m",
        "uv run rl @ rl.toml": "hpclaunch run --agent -- uv run rl @ rl.toml",
        "python -m prime_rl.entrypoints.sft @ c.toml": "hpclaunch run --agent -- python -m prime_rl.entrypoints.sft @ c.toml",
        "nemo llm pretrain --factory f": "hpclaunch run --agent -- nemo llm pretrain --factory f",
        "python3 -m areal.infra.launcher.local train.py --config c.yaml": "hpclaunch run --agent -- python3 -m areal.infra.launcher.local train.py",
        "ray job submit --address=a -- python3 train.py": "hpclaunch run --agent -- ray job submit --address=a -- python3 train.py",
        "env -u X A=1 torchrun train.py": "hpclaunch run -- env -u X A=1 python train.py",
        "numactl -N 0 --membind=0 torchrun train.py": "hpclaunch run -- numactl -N 0 --membind=0 python train.py",
        "timeout -k 5 1h torchrun train.py": "hpclaunch run -- timeout -k 5 1h python train.py",
        "numactl -l torchrun train.py": "hpclaunch run -- numactl -l python train.py",
        "nsys profile -x true -otorch torchrun train.py": "hpclaunch run -- nsys profile -x true -otorch python train.py",
        "uv run --project deepspeed torchrun train.py": "hpclaunch run -- uv run --project deepspeed python train.py",
        "env HF_TOKEN=abc vllm serve --api-key def": "hpclaunch run --agent -- env HF_TOKEN=<hidden> vllm serve --api-key <hidden>",
        "uv run torchrun train.py": "hpclaunch run -- uv run python train.py",
        "apptainer exec --nv -B /a:/b image.sif torchrun train.py": "hpclaunch run -- apptainer exec --nv -B /a:/b image.sif python train.py",
        "hpclaunch run -n 2 -- ./prog": "hpclaunch run -n 2 -- ./prog",
        "python3 /usr/bin/torchrun t.py": "hpclaunch run -- python3 t.py",
        "python3 -u /usr/bin/torchrun --nproc_per_node=2 -m pkg.t": "hpclaunch run --ppn 2 -- python3 -m pkg.t",
        "python3 -um torch.distributed.run t.py": "hpclaunch run -- python3 t.py",
        "python3 -OOm torch.distributed.run t.py": "hpclaunch run -- python3 t.py",
        "python3 -m coverage run /usr/bin/torchrun t.py": "hpclaunch run -- python3 t.py",
        "torchrun": "hpclaunch run -- PROGRAM",
        "nice -5 torchrun t.py": "hpclaunch run -- nice -5 python t.py",
        "chrt -o 0 torchrun t.py": "hpclaunch run -- chrt -o 0 python t.py",
        "shifter --image=x torchrun t.py": "hpclaunch run -- shifter --image=x python t.py",
        "podman-hpc run --rm img torchrun t.py": "hpclaunch run -- podman-hpc run --rm img python t.py",
        "ch-run -b /a:/b --set-env=A=1 /img -- torchrun t.py": "hpclaunch run -- ch-run -b /a:/b --set-env=A=1 /img -- python t.py",
        "enroot start -m /a:/b img torchrun t.py": "hpclaunch run -- enroot start -m /a:/b img python t.py",
        "sarus run --mpi img torchrun t.py": "hpclaunch run -- sarus run --mpi img python t.py",
        "bwrap --ro-bind / / --unshare-pid torchrun t.py": "hpclaunch run -- bwrap --ro-bind / / --unshare-pid python t.py",
        "docker run -it img torchrun t.py": "hpclaunch run -- docker run -it img python t.py",
    }
    SHELLS = {
        "torchrun --nproc_per_node=4 t.py": "hpclaunch run --ppn 4 -- python t.py",
        "cd /work && exec torchrun t.py": "hpclaunch run -- python t.py",
        "A=1 torchrun t.py; echo done": "hpclaunch run -- python t.py",
        "source env/bin/activate\nsrun ./prog": "hpclaunch run -- ./prog",
    }
    FINE = ["python train.py torchrun", "python -m train torchrun", "./train --strategy deepspeed", "python -c 'import torch'", "accelerate config",
            "ray status", "flux version", "timeout 1h ./train deepspeed", "env", "env -u X", "numactl -N 0 ./prog srun", "torchrunner x", "hpclaunch topo",
            "python -c 1#/bin/srun", "./composer x", "/tmp/own/deepspeed x", "ds2 x", "uv run --project composer python train.py", "strace -f ./x srun",
            "uv run --unheard-of deepspeed python train.py", "apptainer exec --env-file e /images/composer python train.py", "numactl -l ./run.sh srun",
            "nsys profile -o torchrun ./prog", "apptainer exec image.sif ./prog torchrun", "uv sync", "vllm bench", "sglang router", "trl env", "rl train", "./sft --lr 1", "python -m dynamo.frontend", "nemo experiment"]

    def plan(self, command, *options):
        return hpclaunch("plan", "--launcher", "local", "-n", "2", "--oversubscribe", *options, "--", *words(command))

    def test_what_is_meant(self):
        for command, meant in self.MEANT.items():
            with self.subTest(command):
                done = self.plan(command)
                self.assertEqual(done.status, 1, str(done))
                self.has(done, "program-is-launcher", "try: " + meant)

    def test_texts_of_shells(self):
        for text, meant in self.SHELLS.items():
            for shell in (["bash", "-c"], ["sh", "-ec"], ["bash", "-lc"], ["apptainer", "exec", "img", "bash", "-c"]):
                with self.subTest([shell, text]):
                    done = hpclaunch("plan", "--launcher", "local", "-n", "2", "--oversubscribe", "--", *shell, text)
                    self.has(done, "program-is-launcher", "try: " + meant)
        for text in ("python t.py", "echo torchrun", "./torchrun-like x", "module load srun"):
            self.assertNotIn("program-is-launcher", hpclaunch("plan", "--launcher", "local", "-n", "2", "--oversubscribe", "--", "bash", "-c", text).err)

    def test_one_on_each_of_several_nodes(self):
        """Without their number each node would train by itself."""
        for command, wrong in (("torchrun --nproc_per_node=4 t.py", True), ("torchrun --standalone t.py", True), ("torchrun --nnodes=4 t.py", True),
                               ("torchrun --nnodes=2 --node_rank=0 t.py", False), ("torchrun --nproc_per_node 4 t.py --nnodes 2", True), ("torchrun --nnodes 1:4 t.py", False), ("accelerate launch t.py", True),
                               ("accelerate launch --num_machines 2 t.py", False), ("accelerate launch --config_file c.yaml t.py", False),
                               ("deepspeed --num_gpus 8 t.py", True), ("vllm serve m", False)):
            with self.subTest(command):
                done = hpclaunch("plan", "--profile", "perlmutter", "-N", "2", "--ppn", "1", "--", *words(command))
                self.assertEqual("program-is-launcher" in done.err, wrong, done.err)

    def test_programs_with_such_words(self):
        for command in self.FINE:
            with self.subTest(command):
                self.assertNotIn("program-is-launcher", self.plan(command).err)

    def test_a_script_from_a_pipe_is_left_to_the_program(self):
        python = need("python3")
        done = support.execute([need("bash"), "-c", "%s run -n 1 -- %s <(echo 'print(41 + 1)')" % (support.HPCLAUNCH, python)], clean_env())
        self.assertEqual(self.ok(done).out, "42\n")

    def test_run_stops_unless_forced(self):
        torchrun = self.file("bin/torchrun", "#!/bin/sh\necho started\n", 0o755)
        done = self.ok(hpclaunch("run", "-n", "2", "--oversubscribe", "--", torchrun, "train.py"), 125)
        self.has(done, "torchrun starts ranks itself; hpclaunch would start it 2 times", "not started")
        self.assertNotIn("started\n", done.out)
        self.assertEqual(self.ok(hpclaunch("run", "-n", "2", "--oversubscribe", "--force", "--", torchrun, "train.py")).out, "started\n" * 2)
        self.ok(hpclaunch("verify", "-n", "2", "--oversubscribe", "--", torchrun, "train.py"), 2)

    def test_one_on_each_node(self):
        for command in ("torchrun --nproc_per_node 8 train.py", "ray start --head", "accelerate launch train.py"):
            with self.subTest(command):
                self.assertNotIn("program-is-launcher", hpclaunch("plan", "--launcher", "local", "--ppn", "1", "--", *words(command)).err)
        self.has(hpclaunch("plan", "--launcher", "local", "--ppn", "1", "--", "srun", "./prog"), "program-is-launcher")

    def test_each_name_of_the_data(self):
        with open(DATA) as file:
            data = json.loads(re.sub(r"(?m)^\s*//.*$", "", file.read()))
        names = []
        for row in data["launchers"]:
            self.assertIn(row["starts"], ("ranks", "agent"))
            for program in row.get("programs", []):
                words_behind = row.get("words", {}).get(program, [""])
                for word in words_behind:
                    names.append(program)
                    self.has(self.plan("%s %s x" % (program, word)), "program-is-launcher")
            for module in row.get("modules", []):
                self.has(self.plan("python3 -m %s x" % module), "program-is-launcher")
        self.assertGreater(len(set(names)), 30)


def elf(*needed):
    """A shared object of 64 bits with nothing but names of libraries."""
    strings, dynamic = b"\0", b""
    for name in needed:
        dynamic += struct.pack("<QQ", 1, len(strings))
        strings += name.encode() + b"\0"
    base, at = 0x1000, 64 + 2 * 56
    size = len(dynamic) + 32
    dynamic += struct.pack("<QQ", 5, base + at + size) + struct.pack("<QQ", 0, 0)
    total = at + size + len(strings)
    head = b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 64, 0, 0, 64, 56, 2, 0, 0, 0)
    load = struct.pack("<IIQQQQQQ", 1, 4, 0, base, base, total, total, 4096)
    dyn = struct.pack("<IIQQQQQQ", 2, 4, at, base + at, base + at, size, size, 8)
    return head + load + dyn + dynamic + strings


class OwnMasks(Test):
    """Scripts that choose their device by the local rank. Polaris numbers its GPUs against its cores."""

    def says(self, text, *words, profile="polaris", name="set_gpu.sh"):
        path = self.file(name, text.encode(), 0o755)
        program = ["python3", path] if name.endswith(".py") else [path, "python3", "train.py"]
        done = hpclaunch("run", "--dry-run", "--force", "--profile", profile, "-N", "2", *words, "--", *program)
        return done.err if "program-sets-devices" in done.err else ""

    def test_a_wrapper(self):
        text = "#!/bin/bash\nexport CUDA_VISIBLE_DEVICES=%s\nexec \"$@\"\n"
        said = self.says(text % "$PMI_LOCAL_RANK")
        for part in ("set_gpu.sh sets CUDA_VISIBLE_DEVICES from the local rank (line 2)", "rank 0 takes device 0, and device 3 is beside its cores",
                     "--gpu-view own"):
            self.assertIn(part, said)
        self.assertEqual(self.says(text % "$((3 - PMI_LOCAL_RANK))"), "")
        self.assertEqual(self.says(text % "0,1,2,3"), "")
        self.assertEqual(self.says(text % "$PMI_LOCAL_RANK", profile="jupiter"), "")  # numbered as the cores

    def test_by_another_variable(self):
        text = "#!/bin/bash\nnum_gpus=4\ngpu=%s\nexport CUDA_VISIBLE_DEVICES=$gpu\nexec \"$@\"\n"
        self.assertIn("line 4", self.says(text % "$((PALS_LOCAL_RANKID % num_gpus))"))
        self.assertEqual(self.says(text % "$((${num_gpus} - 1 - ${PMI_LOCAL_RANK} % ${num_gpus}))"), "")  # the site's own script

    def test_in_python(self):
        text = 'import os\nos.environ["CUDA_VISIBLE_DEVICES"] = os.environ["PMI_LOCAL_RANK"]\n'
        self.assertIn("(line 2)", self.says(text, name="train.py"))
        self.assertEqual(self.says("# " + text.replace("\nos", "\n# os"), name="train.py"), "")


class Mpi(Test):
    """Which library a program is linked with, and the launcher that fits."""

    def choice(self, *command, options=(), env=None):
        done = hpclaunch("plan", "--json", "-n", "2", "--oversubscribe", *options, "--", *command, env=env)
        plan = json.loads(done.out)
        return plan, [one["id"] for one in plan["diagnostics"]]

    def launcher(self, plan):
        return next(one["value"] for one in plan["choices"] if one["name"] == "launcher")

    def test_a_fitting_launcher_is_chosen(self):
        need("mpiexec.hydra")
        need("mpirun.openmpi")
        for library, launcher in (("libmpi.so.12", "hydra"), ("libmpich.so.12", "hydra"), ("libmpi.so.40", "openmpi"), ("libc.so.6", "local")):
            with self.subTest(library):
                plan, rules = self.choice(self.file("prog", elf("libm.so.6", library), 0o755))
                self.assertEqual(self.launcher(plan), launcher)
                self.assertNotIn("mpi-mismatch", rules)

    def test_a_typed_one_that_does_not_fit(self):
        for library, launcher, wrong in (("libmpi.so.12", "local", True), ("libmpi.so.40", "local", True), ("libmpi.so.40", "hydra", True),
                                         ("libmpi.so.12", "openmpi", True), ("libmpi.so.12", "hydra", False), ("libmpi.so.40", "openmpi", False)):
            with self.subTest([library, launcher]):
                _, rules = self.choice(self.file("prog", elf(library), 0o755), options=("--launcher", launcher))
                self.assertEqual("mpi-mismatch" in rules, wrong)

    def test_none_is_here(self):
        env = clean_env(PATH=self.folder)
        plan, rules = self.choice(self.file("prog", elf("libmpi.so.12"), 0o755), env=env)
        self.assertEqual(self.launcher(plan), "local")
        self.assertIn("mpi-mismatch", rules)

    def test_mpi4py_in_the_interpreters_environment(self):
        python = os.path.join(self.folder, "venv", "bin", "python3")
        os.makedirs(os.path.dirname(python))
        os.symlink(os.path.realpath(sys.executable), python)
        self.file("venv/pyvenv.cfg", "home = /usr/bin\ninclude-system-site-packages = false\n")
        self.file("venv/lib/python3.11/site-packages/mpi4py/MPI.cpython-311-x86_64-linux-gnu.so", elf("libmpi.so.40"))
        uses, does_not = self.file("a.py", "import os\nfrom mpi4py import MPI\n"), self.file("b.py", "import os  # no mpi4py\n")
        _, rules = self.choice(python, "-u", uses, options=("--launcher", "local"))
        self.assertIn("mpi-mismatch", rules)
        _, rules = self.choice(python, does_not, options=("--launcher", "local"))
        self.assertNotIn("mpi-mismatch", rules)
        _, rules = self.choice(python, "-m", "mpi4py.futures", uses, options=("--launcher", "local"))
        self.assertIn("mpi-mismatch", rules)
        self.file("more/mpi4py/MPI.cpython-311-x86_64-linux-gnu.so", elf("libmpi.so.12"))
        plan, _ = self.choice(python, uses, env=clean_env(PYTHONPATH=os.path.join(self.folder, "more")))
        self.assertEqual(self.launcher(plan), "hydra")

    def test_mpi4py_of_another_python_does_not_decide(self):
        """The interpreter that would run, behind its links, has folders of its own version, the user's before its own."""
        self.file("opt/bin/python3.10", "#!/bin/sh\n", 0o755)
        python = os.path.join(self.folder, "opt/bin/python3")
        os.symlink("python3.10", python)
        uses = self.file("a.py", "from mpi4py import MPI\n")
        home = os.path.join(self.folder, "home")
        local, opt = "home/.local/lib/python%s/site-packages/mpi4py/MPI.cpython-%s-x86_64-linux-gnu.so", "opt/lib/python3.10/site-packages/mpi4py/MPI.abi3.so"
        mismatch = lambda *command, **env: "mpi-mismatch" in self.choice(*command, uses, options=("--launcher", "hydra"), env=clean_env(HOME=home, **env))[1]
        self.file(local % ("3.9", "39"), elf("libmpi.so.40"))
        self.assertFalse(mismatch(python))
        self.file(opt, elf("libmpi.so.12"))
        self.file(local % ("3.10", "310"), elf("libmpi.so.40"))
        self.assertTrue(mismatch(python))
        for flags in (["-s"], ["-I"], ["-Xdev", "-sW", "ignore"], ["-S"]):
            with self.subTest(flags):
                self.assertFalse(mismatch(python, *flags))
        self.assertFalse(mismatch(python, PYTHONNOUSERSITE="1"))
        self.assertTrue(mismatch(python, "-E", PYTHONNOUSERSITE="1"))
        self.file("more/mpi4py/MPI.cpython-310-x86_64-linux-gnu.so", elf("libmpi.so.12"))
        self.assertFalse(mismatch(python, PYTHONPATH=os.path.join(self.folder, "more")))
        self.assertTrue(mismatch(python, "-E", PYTHONPATH=os.path.join(self.folder, "more")))
        self.assertTrue(mismatch(python, "-X", "dev"))  # the script is the word after its value
        venv = self.file("venv/bin/python", "#!/bin/sh\n", 0o755)  # a copy, which has no version in its name
        for system in ("false", "true"):
            self.file("venv/pyvenv.cfg", "home = %s/opt/bin\ninclude-system-site-packages = %s\nversion_info = 3.10.4.final.0\n" % (self.folder, system))
            self.assertEqual(mismatch(venv), system == "true")
        self.file("venv/lib/python3.10/site-packages/mpi4py/MPI.cpython-39-x86_64-linux-gnu.so", elf("libmpi.so.40"))
        self.assertFalse(mismatch(venv))  # nothing that this version can load
        self.file("venv/lib/python3.10/site-packages/mpi4py/MPI.cpython-310-x86_64-linux-gnu.so", elf("libmpi.so.40"))
        self.assertTrue(mismatch(venv))

    def test_srun_without_a_configuration_is_not_chosen(self):
        """As in a container that a job's variables reach: srun is there, and no Slurm."""
        self.file("bin/srun", "#!/bin/sh\necho 'srun: fatal: Could not establish a configuration source' >&2\nexit 1\n", 0o755)
        program = self.file("prog", elf("libmpi.so.12"), 0o755)
        here = dict(SLURM_JOB_ID="7", SLURM_JOB_NODELIST=os.uname().nodename.split(".")[0], SLURM_JOB_NUM_NODES="1")
        for path, launcher in (("", "local"), (":/usr/bin:/bin", "hydra")):
            with self.subTest(launcher):
                env = clean_env(PATH=os.path.join(self.folder, "bin") + path, **here)
                plan, rules = self.choice(program, options=("--profile", "none"), env=env)
                self.assertEqual(self.launcher(plan), launcher)
                self.assertEqual("mpi-mismatch" in rules, launcher == "local")
        self.file("bin/srun", "#!/bin/sh\n[ \"$1\" = --mpi=list ] && echo none\necho slurm 24.11.5\n", 0o755)
        plan, _ = self.choice(program, options=("--profile", "none"), env=env)
        self.assertEqual(self.launcher(plan), "hydra")  # srun would start each rank as 0 of 1

    def test_srun_has_no_plugin_that_serves(self):
        env = clean_env(PATH=os.path.join(self.folder, "bin"), SLURM_JOB_ID="7", SLURM_JOB_NODELIST="n[1-2]", SLURM_JOB_NUM_NODES="2")
        mpich, open_mpi = (self.file(name, elf(library), 0o755) for name, library in (("m", "libmpi.so.12"), ("o", "libmpi.so.40")))
        for types, program, more, typed, wrong in (
                ("none", mpich, {}, (), True), ("none", open_mpi, {}, (), True), ("none\npmix\npmix_v4", mpich, {}, (), True), ("none\npmix_v4", open_mpi, {}, (), False),
                ("none\npmi2", open_mpi, {}, (), True), ("none\npmi2\ncray_shasta", mpich, {}, (), False), ("pmix\npmi2", open_mpi, {"SLURM_MPI_TYPE": "pmi2"}, (), True),
                ("pmix\npmi2", mpich, {"SLURM_MPI_TYPE": "pmi2"}, (), False), ("pmix\npmi2", open_mpi, {}, ("--launcher-arg=--mpi=none",), True)):
            with self.subTest([types, os.path.basename(program), more, typed]):
                self.file("bin/srun", "#!/bin/sh\n[ \"$1\" = --mpi=list ] && { echo 'MPI plugin types are...'; printf '%s\n'; exit; }\necho slurm 24.11.5\n" % types.replace("\n", "\\n"), 0o755)
                plan, rules = self.choice(program, options=("--profile", "none", "-N", "2", *typed), env=dict(env, **more))
                self.assertEqual("mpi-mismatch" in rules, wrong)
        self.file("bin/srun", "#!/bin/sh\n[ \"$1\" = --mpi=list ] && { printf 'none\ncray_shasta\npmi2\n'; exit; }\necho slurm 24.11.5\n", 0o755)
        for library, best in (("libmpi.so.12", "pmi2"), ("libmpi_cray.so.12", "cray_shasta")):
            plan, _ = self.choice(self.file("prog", elf(library), 0o755), options=("--profile", "none", "-N", "2"), env=env)
            self.assertIn("--mpi=" + best, plan["argv"])

    def test_behind_other_programs(self):
        program = self.file("prog", elf("libmpi.so.12"), 0o755)
        for front in (["env", "A=1"], ["timeout", "9"], ["nice", "-n", "1"], ["taskset", "-c", "0"], ["nice", "-5"]):
            with self.subTest(front):
                _, rules = self.choice(*front, program, options=("--launcher", "local"))
                self.assertIn("mpi-mismatch", rules)

    def test_python_in_other_forms(self):
        python = self.file("venv/bin/python3", "#!/bin/sh\n", 0o755)
        self.file("venv/pyvenv.cfg", "home = /usr/bin\ninclude-system-site-packages = false\nversion = 3.11.2\n")
        self.file("venv/lib/python3.11/site-packages/mpi4py/MPI.cpython-311-x86_64-linux-gnu.so", elf("libmpi.so.40"))
        texts = ["try: from mpi4py import MPI\nexcept ImportError: pass\n", "def f():\n    from mpi4py import MPI\n", "import os, sys, mpi4py\n",
                 "\ufefffrom mpi4py import MPI\n"]
        for number, text in enumerate(texts):
            with self.subTest(text):
                _, rules = self.choice(python, self.file("t%d.py" % number, text), options=("--launcher", "local"))
                self.assertIn("mpi-mismatch", rules)
        for text in ("# import mpi4py\n", "print('import mpi4py')\n".replace("'", '"'), "mpi4py = 1\n"):
            with self.subTest(text):
                _, rules = self.choice(python, self.file("fine.py", text), options=("--launcher", "local"))
                self.assertNotIn("mpi-mismatch", rules)
        for first in (python, "/usr/bin/env python3"):
            with self.subTest(first):
                script = self.file("x.py", "#!%s\nfrom mpi4py import MPI\n" % first, 0o755)
                _, rules = self.choice(script, options=("--launcher", "local"), env=clean_env(PATH=os.path.dirname(python) + ":/usr/bin:/bin"))
                self.assertIn("mpi-mismatch", rules)

    def test_srun_gets_a_plugin(self):
        srun = "#!/bin/sh\n[ \"$1\" = --mpi=list ] && { echo 'MPI plugin types are...'; echo '\tnone'; echo '\tpmi2'; exit; }\necho slurm 24.11.5\n"
        self.file("bin/srun", srun, 0o755)
        env = clean_env(PATH=os.path.join(self.folder, "bin") + ":/usr/bin:/bin", SLURM_JOB_ID="7", SLURM_JOB_NODELIST="n[1-2]", SLURM_JOB_NUM_NODES="2")
        for library, option in (("libmpi.so.12", True), ("libmpi.so.40", False), ("libc.so.6", False)):
            with self.subTest(library):
                plan, _ = self.choice(self.file("prog", elf(library), 0o755), options=("--profile", "none", "-N", "2"), env=env)
                self.assertEqual("--mpi=pmi2" in plan["argv"], option, plan["argv"])

    def test_broken_files(self):
        whole = elf("libmpi.so.40")
        for size in range(0, len(whole), 7):
            with self.subTest(size):
                self.choice(self.file("prog", whole[:size] or b"x", 0o755), options=("--launcher", "local"))


if __name__ == "__main__":
    support.main()
