#!/usr/bin/env python3
"""hpclaunch lint: what is wrong in scripts and environments that people have."""
import json
import glob
import os
import re
import subprocess

import support
from support import Test, clean_env, hpclaunch

HEAD = "#!/bin/bash\n#SBATCH -N 2\n"
RUN = "srun -n 8 ./run.sh\n"


class Lint(Test):
    def findings(self, text, name="job.sh", *words):
        path = self.file(name, text.encode())
        done = hpclaunch("lint", "--format", "json", path, *words)
        self.assertIn(done.status, (0, 1), done)
        return json.loads(done.out)["findings"]

    def check(self, code, wrong, right):
        with self.subTest(code=code, wrong=wrong):
            self.assertEqual(self.codes(wrong).count(code), 1)
            self.assertNotIn(code, self.codes(right))

    def codes(self, text, name="job.sh"):
        return [one["code"] for one in self.findings(text, name)]

    def test_each_fault_and_its_correct_form(self):
        # lines between the directives and a launch: wrong, right
        for code, wrong, right in (
                ("unknown-variable", "export FI_CXI_OVFLOW_BUF_SIZE=8388608", "export FI_CXI_OFLOW_BUF_SIZE=8388608"),
                ("unknown-variable", "export FI_PROVIDR=cxi", "export MY_OWN=cxi"),
                ("bad-value", "export NCCL_IB_DISABLE=true", "export NCCL_IB_DISABLE=1"),
                ("not-exported", "CCL_WORKER_AFFINITY=1,2", "export CCL_WORKER_AFFINITY=1,2"),
                ("not-exported", "NCCL_DEBUG=INFO", "NCCL_DEBUG=INFO\nexport NCCL_DEBUG"),
                ("repeated-setting", "export NCCL_DEBUG=INFO\nexport NCCL_DEBUG=WARN", "export NCCL_DEBUG=INFO\nsrun x\nexport NCCL_DEBUG=WARN"),
                ("unquoted-semicolon", "export CCL_ALLREDUCE_SCALEOUT=direct:0-9;rabenseifner:10-max",
                 "export CCL_ALLREDUCE_SCALEOUT='direct:0-9;rabenseifner:10-max'"),
                ("blank-at-equals", "export NCCL_DEBUG = INFO", "export NCCL_DEBUG=INFO"),
                ("blank-at-equals", "NNODES =4", "if [ $NNODES = 4 ]; then :; fi"),
                ("bad-substitution", "export LD_LIBRARY_PATH=${PATH TO IT}", "export LD_LIBRARY_PATH=${PATH_TO_IT}"),
                ("export-before-module", "export FI_PROVIDER=cxi\nmodule load frameworks", "module load frameworks\nexport FI_PROVIDER=cxi"),
                ("late-directive", "date\n#SBATCH -t 5", "date"),
                ("misspelt-directive", "#SBATCH-t 5", "#SBATCH -t 5"),
                ("misspelt-directive", "# SBATCH -t 5", "# the SBATCH -t option"),
                ("variable-in-directive", "#SBATCH -o $HOME/x", "#SBATCH -o %j.out"),
                ("repeated-directive", "#SBATCH --nodes=3", "#SBATCH --nodes=2"),
                ("unknown-directive", "#SBATCH --ntask-per-node=4", "#SBATCH --ntasks-per-node=4"),
                ("secret-in-script", "export HF_TOKEN=hf_abcdefghijk", "export HF_TOKEN=$(< ~/token)"),
                ("secret-in-script", "export API_TOKEN=12345678x", "export TRAIN_TOKENS=300_000_000_000"),
                ("secret-in-script", "export WANDB_API_KEY=0a1b2c3d4e5f", "export WANDB_API_KEY=your_key_here"),
                ("secret-in-script", "wandb login 0123456789abcdef", "wandb login $WANDB_API_KEY"),
                ("secret-in-script", "hf download m --token hf_abcdefghijk", "hf download m --pad-token '<padding>'"),
                ("crlf", "date\r", "date"),
                ("not-understood", "echo \"x", "echo x")):
            self.check(code, HEAD + wrong + "\n" + RUN, HEAD + right + "\n" + RUN)
        self.assertIn("set-after-launch", self.codes(HEAD + RUN + "export NCCL_DEBUG=INFO\n"))
        self.assertIn("missing-shebang", self.codes("#SBATCH -N 2\n" + RUN))

    def test_what_ranks_and_folders_need(self):
        """The text of a job of two nodes with four tasks each: wrong, right."""
        head = "#!/bin/bash\n#SBATCH -N 2\n#SBATCH --ntasks-per-node=4\n"
        for code, wrong, right in (
                ("expanded-too-early", "srun bash -c \"x --rank $SLURM_PROCID\"", "srun bash -c 'x --rank $SLURM_PROCID'"),
                ("expanded-too-early", "export LOCAL_RANK=$SLURM_LOCALID\nsrun x", "export ID=$SLURM_JOB_ID\nsrun x"),
                ("expanded-too-early", "R=$SLURM_NODEID\nsrun x --node $R", "R=$SLURM_NNODES\nsrun x --node $R"),
                ("expanded-too-early", "cat > w.sh <<EOF\nx $SLURM_LOCALID\nEOF\nsrun w.sh", "cat > w.sh <<'EOF'\nx $SLURM_LOCALID\nEOF\nsrun w.sh"),
                ("global-rank-as-local", "L=$((PMIX_RANK % 4))\nsrun x", "L=$((STEP % 4))\nsrun x"),
                ("rank-constant", "export RANK=0\nsrun x", "export RANK=0\npython x"),
                ("world-size", "export WORLD_SIZE=4\nsrun x", "export WORLD_SIZE=8\nsrun x"),
                ("one-file-for-all", "export NCCL_DEBUG_FILE=/scratch/log\nsrun x", "export NCCL_DEBUG_FILE=/scratch/log.%h.%p\nsrun x"),
                ("one-file-for-all", "srun nsys profile -o report x", "srun nsys profile -o report.%q{SLURM_PROCID} x"),
                ("other-system", "cat $LSB_DJOB_HOSTFILE\nsrun x", "cat $FLUX_URI\nsrun x"),
                ("other-system", "N=$(wc -l < x)\ncat $PBS_NODEFILE\nsrun x", "cat ${PBS_NODEFILE:-}\nsrun x"),
                ("shared-fixed-folder", "export TRITON_CACHE_DIR=/tmp/triton\nsrun x", "export TRITON_CACHE_DIR=/tmp/triton-$USER\nsrun x"),
                ("cache-on-home", "export TRITON_CACHE_DIR=$HOME/.triton\nsrun x", "export TRITON_CACHE_DIR=$SCRATCH/.triton\nsrun x"),
                ("path-replaced", "module load cuda\nexport LD_LIBRARY_PATH=/x/lib\nsrun x", "module load cuda\nexport LD_LIBRARY_PATH=/x/lib:$LD_LIBRARY_PATH\nsrun x"),
                ("tilde-quoted", "export HF_HOME=\"~/hf\"\nsrun x", "export HF_HOME=~/hf\nsrun x"),
                ("placeholder", "source /path/to/env\nsrun x", "source /home/me/env\nsrun x"),
                ("conda-not-initialised", "conda activate e\nsrun x", "source ~/conda.sh\nconda activate e\nsrun x"),
                ("container-without-binds", "srun apptainer exec i.sif python /scratch/p/t.py", "srun apptainer exec -B /scratch i.sif python /scratch/p/t.py"),
                ("gpu-bind-flat", "export ZE_FLAT_DEVICE_HIERARCHY=FLAT\nmpiexec -n 2 --gpu-bind list:0.0:0.1 x", "export ZE_FLAT_DEVICE_HIERARCHY=COMPOSITE\nmpiexec -n 2 --gpu-bind list:0.0:0.1 x"),
                ("pmix-without-option", "export CCL_PROCESS_LAUNCHER=pmix\nmpiexec -n 2 x", "export CCL_PROCESS_LAUNCHER=pmix\nmpiexec --pmi=pmix -n 2 x"),
                ("affinity-mask-form", "export ZE_AFFINITY_MASK=0.1 ZE_FLAT_DEVICE_HIERARCHY=FLAT\nsrun x", "export ZE_AFFINITY_MASK=0.1 ZE_FLAT_DEVICE_HIERARCHY=$MODE\nsrun x"),
                ("alt-read-without-flag", "export FI_CXI_RDZV_PROTO=alt_read\nsrun --network=job_vni x", "export FI_CXI_RDZV_PROTO=alt_read\nsrun --network=$NETWORK x"),
                ("assignment-as-program", "srun A=1 python x", "srun env A=1 python x"),
                ("assignment-as-program", "srun apptainer exec i.sif A=1 python x", "A=1 srun apptainer exec i.sif python x"),
                ("placeholder", "#SBATCH --account=\nsrun x", "#SBATCH --account=me\nsrun x"),
                ("option-twice", "srun -n 4 --ntasks=8 x", "srun -n 4 -N 2 x"),
                ("let-command", "let A=$B*2", "let A=$B-2"),
                ("address-is-list", "export MASTER_ADDR=$SLURM_NODELIST\nsrun x", "export MASTER_ADDR=${SLURM_NODELIST%%,*}\nsrun x"),
                ("address-of-submitter", "export MASTER_ADDR=$SLURM_SUBMIT_HOST\nsrun x", "export MASTER_ADDR=$(hostname)\nsrun x"),
                ("interface-loopback", "export NCCL_SOCKET_IFNAME=lo\nsrun x", "export NCCL_SOCKET_IFNAME=^lo\nsrun x"),
                ("plugin-in-uenv", "export NCCL_NET_PLUGIN=ofi\nsrun --uenv=pytorch x", "export NCCL_NET_PLUGIN=ofi\nsrun x"),
                ("known-issue", "module load aws-ofi-nccl/1.9.1-aws\nexport NCCL_NET=OFI\nsrun x", "module load aws-ofi-nccl/1.14.0\nexport NCCL_NET=OFI\nsrun x"),
                ("known-issue", "module load aws-ofi-rccl/1.4\nexport NCCL_NET=OFI\nsrun x", "module load aws-ofi-rccl/1.4\nexport NCCL_NET='AWS Libfabric'\nsrun x"),
                ("retired", "module load frameworks_optimized", "module load frameworks"),
                ("cpu-list-range", "mpiexec -n 2 --ppn 1 --cpu-bind list:7-4 x", "mpiexec -n 2 --ppn 1 --cpu-bind list:4-7 x"),
                ("environment-not-passed", "srun --export=NONE x", "srun --export=ALL x"),
                ("mask-and-option", "export CUDA_VISIBLE_DEVICES=0,1\nsrun --gpus-per-task=1 x", "export CUDA_VISIBLE_DEVICES=0,1\nsrun x"),
                ("mask-twice", "export ROCR_VISIBLE_DEVICES=1 HIP_VISIBLE_DEVICES=1\nsrun -n 2 --ntasks-per-node=1 x",
                 "export ROCR_VISIBLE_DEVICES=1 HIP_VISIBLE_DEVICES=0\nsrun -n 2 --ntasks-per-node=1 x"),
                ("old-launch-module", "srun --ntasks-per-node=1 python -m torch.distributed.launch t.py", "srun --ntasks-per-node=1 python -m torch.distributed.run t.py"),
                ("ranks-too-many", "srun -N 2 -n 9 --ntasks-per-node=4 x", "srun -N 2 -n 8 --ntasks-per-node=4 x"),
                ("several-addresses", "export MASTER_ADDR=$(hostname -I)\nsrun x", "export MASTER_ADDR=$(hostname -I | cut -d' ' -f1)\nsrun x"),
                ("tasks-contradict", "#SBATCH -n 9\nsrun x", "#SBATCH -n 8\nsrun x"),
                ("options-exclude", "#SBATCH --mem=4G\n#SBATCH --mem-per-cpu=1G\nsrun x", "#SBATCH --mem=4G\nsrun --mem-per-cpu=1G x"),
                ("options-exclude", "#SBATCH --cpus-per-gpu=2 --gpus=2\nsrun -c 2 x", "#SBATCH --cpus-per-gpu=2 --gpus=2\nsrun x"),
                ("options-exclude", "#SBATCH --gpus=2\nsrun --ntasks-per-gpu=2 --ntasks-per-node=4 x", "#SBATCH --gpus=2\nsrun --ntasks-per-node=4 x"),
                ("options-exclude", "#SBATCH --gres=gpu:2 --gpus-per-node=2\nsrun x", "#SBATCH --gres=nic:2 --gpus-per-node=2\nsrun x"),
                ("option-needs", "#SBATCH --mem-per-gpu=8G\nsrun x", "#SBATCH --mem-per-gpu=8G --gres=gpu:2\nsrun x"),
                ("option-needs", "srun -m arbitrary x", "export SLURM_HOSTFILE=hosts\nsrun -m arbitrary x"),
                ("submit-in-job", "srun x\nsbatch next.sh", "srun x\nunset ${!SLURM_@}\nsbatch next.sh"),
                ("mask-from-local-rank", "export CUDA_VISIBLE_DEVICES=$PMI_LOCAL_RANK\nx", "export CUDA_VISIBLE_DEVICES=$((3 - PMI_LOCAL_RANK))\nx"),
                ("slow-setting", "export NCCL_P2P_DISABLE=1\nsrun x", "export NCCL_P2P_DISABLE=0\nsrun x"),
                ("debug-setting", "export CUDA_LAUNCH_BLOCKING=1\nsrun x", "export CUDA_LAUNCH_BLOCKING=0\nsrun x"),
                ("harmful-setting", "export FI_MR_CACHE_MONITOR=memhooks\nsrun x", "export FI_MR_CACHE_MONITOR=kdreg2\nsrun x"),
                ("harmful-setting", "export CCL_KVS_MODE=mpi CCL_ATL_TRANSPORT=ofi\nsrun x", "export CCL_KVS_MODE=mpi CCL_ATL_TRANSPORT=mpi\nsrun x"),
                ("unneeded-setting", "export FI_EFA_FORK_SAFE=1\nsrun x", "export FI_EFA_FORK_SAFE=0\nsrun x"),
                ("setting-without-effect", "export MPICH_OFI_NIC_MAPPING=\"0:0-3\"\nsrun x", "export MPICH_OFI_NIC_POLICY=USER MPICH_OFI_NIC_MAPPING=\"0:0-3\"\nsrun x")):
            self.check(code, head + wrong + "\n", head + right + "\n")
        alone = "#!/bin/bash\n#SBATCH --ntasks-per-node=1\nexport RANK=$SLURM_PROCID\nsrun x\n"
        self.assertNotIn("expanded-too-early", self.codes(alone))
        self.assertIn("expanded-too-early", self.codes(alone.replace("=1", "=4")))
        one_node = "#!/bin/bash\n#SBATCH -N %d\nexport NCCL_IB_DISABLE=1\nsrun x\n"
        self.assertNotIn("slow-setting", self.codes(one_node % 1))
        self.assertIn("slow-setting", self.codes(one_node % 2))
        many = "#!/bin/bash\n#SBATCH -N 64\nsource %s/env/bin/activate\nsrun x\n"
        self.assertIn("environment-on-home", self.codes(many % "$HOME"))
        self.assertNotIn("environment-on-home", self.codes(many % "$SCRATCH"))
        self.assertIn("other-system", self.codes("#!/bin/bash\n#PBS -l select=2\nsrun x\n"))
        self.assertIn("options-exclude", self.codes("#!/bin/bash\n#PBS -l select=2\n#PBS -l ncpus=8\nmpiexec -n 2 x\n"))

    def test_containers_of_every_engine(self):
        """A node's launcher inside a container that a step starts, by the rows of profiles/programs/engines.json."""
        head = "#!/bin/bash\n#SBATCH -N 2\n#SBATCH --ntasks-per-node=4\n"
        inner = "torchrun --nproc-per-node=4 t.py"
        for engine in ("apptainer exec --nv -B /a:/b i.sif", "singularity run i.sif", "podman-hpc run --rm --gpu -v /a:/b img", "podman run --ipc=host --device nvidia.com/gpu=all img",
                       "docker run --rm --gpus all img", "shifter --image=docker:img", "shifter", "ch-run -b /a:/b /var/tmp/img --", "ch-run -w --set-env=A=1 /var/tmp/img --",
                       "enroot start -m /a:/b img", "enroot start --env A img", "sarus run --mount=type=bind,source=/a,destination=/a img", "sarus run --mpi img",
                       "bwrap --ro-bind / / --dev-bind /dev /dev --unshare-pid --setenv A b", "bwrap --bind /i / --proc /proc --"):
            with self.subTest(engine=engine):
                self.assertIn("launcher-in-launcher", self.codes(head + "srun --ntasks-per-node=4 %s %s\n" % (engine, inner)))
                self.assertNotIn("launcher-in-launcher", self.codes(head + "srun --ntasks-per-node=1 %s %s\n" % (engine, inner)))
                self.assertIn("launcher-in-launcher", self.codes(head + "srun %s bash -c 'cd /x; %s'\n" % (engine, inner)))

    def test_models_of_devices_in_requests(self):
        """An engine without its option for devices, where the request names a model of NVIDIA's."""
        job = "#!/bin/bash\n#SBATCH -N 2\n#SBATCH %s\nsrun %s python x.py\n"
        found = "container-without-devices"
        for model in ("a2", "a10", "a30", "a40", "a100", "a100-sxm4-80gb", "nvidia_h100_80gb_hbm3", "h20", "h200", "gh200", "b200", "b300", "gb200", "gb300", "l4", "l40s", "t4",
                      "tesla_t4", "v100", "v100-32g", "p100", "rtx_6000", "rtxa6000", "rtx2080ti", "1g.10gb_nvidia", "NVIDIA-B200"):
            for request in ("--gpus-per-node=%s:4", "--gres=gpu:%s:4", "--gpus-per-task=%s:1", "-G %s:8", "--gres=gpu:4\n#SBATCH -C %s"):
                with self.subTest(model=model, request=request):
                    text = job % (request % model, "apptainer exec i.sif")
                    self.assertIn(found, self.codes(text))
                    self.assertNotIn(found, self.codes(text.replace("exec", "exec --nv")))
        for model in ("mi250", "mi300x", "amd_instinct_mi355x", "max_1550", "pvc", "gpu", "a1", "b20", "xl4", "h2000", "at4"):
            with self.subTest(model=model):
                self.assertNotIn(found, self.codes(job % ("--gpus-per-node=%s:4" % model, "apptainer exec i.sif")))
        for line, expected in (("podman-hpc run img", True), ("podman-hpc run --gpu img", False), ("singularity exec i.sif", True), ("shifter --image=i", False), ("ch-run i --", False)):
            with self.subTest(line=line):
                self.assertEqual(found in self.codes(job % ("--gpus-per-node=b200:4", line)), expected)

    def test_components_of_a_heterogeneous_job_are_apart(self):
        text = "#!/bin/bash\n#SBATCH --mem=4G\n#SBATCH hetjob\n#SBATCH --mem-per-cpu=1G\nsrun x\n"
        self.assertNotIn("options-exclude", self.codes(text))
        self.assertIn("options-exclude", self.codes(text.replace("#SBATCH hetjob\n", "")))

    def test_the_version_from_which_two_options_exclude_each_other(self):
        one, = [one for one in self.findings("#!/bin/bash\n#SBATCH --gres=gpu:2 --gpus-per-node=2\nsrun x\n") if one["code"] == "options-exclude"]
        self.assertEqual((one["severity"], one["message"]), ("warning", "--gres=gpu:2 and --gpus-per-node=2 exclude each other: sbatch from version "
                                                             "26.05 on refuses them"))

    def test_faults_of_copied_scripts(self):
        """As in public repositories: lines between the first line and a launch, wrong and right."""
        for code, wrong, right in (
                ("misspelt-directive", "!#SBATCH -t 5", "#SBATCH -t 5"),
                ("misspelt-directive", "#SBASH --time=5", "#BASH --time=5 was meant"),
                ("unknown-directive", "#SBATCH --account=my project", "#SBATCH --account='my project'  # why"),
                ("unknown-directive", "#SBATCH --gpu=4", "#SBATCH --gpus=4"),
                ("unknown-directive", "#SBATCH -N 2\n#flux: --nodes=2\n#flux: --gres=x",
                 "#SBATCH -N 2\n#flux: -N 2\n#flux: -t 1h"),
                ("unknown-directive", "#SBATCH --imagination=x", "#SBATCH --image=x\n#SBATCH hetjob"),
                ("misspelt-directive", "#SBACTH -t 5", "# #SBATCH -t 5"),
                ("conda-not-initialised", "conda activate e\nmodule load x", "module load x\nconda activate e"),
                ("misspelt-directive", "#sbatch -t 5", "# sbatch -t 5 job.sh"),
                ("redirect-in-test", "if [ $N > 0 ]; then date; fi", "if [ $N -gt 0 ] && [ -f x ] 2> /dev/null; then date; fi"),
                ("unknown-variable", "scontrol show hostnames $SLURM_JOB_NODELIS", "scontrol show hostnames $SLURM_JOB_NODELIST $SLURM_SITE_OWN"),
                ("unknown-variable", "export NCCL_OWNFOLDER=/x", "export NCCL_OWNFOLDER=/x\nls $NCCL_OWNFOLDER"),
                ("placeholder", "#SBATCH --nodes TODO", "#SBATCH --nodes 2"),
                ("placeholder", "#SBATCH --account=your_project", "#SBATCH --account=yours"),
                ("lost-continuation", "python t.py \\ # why\n  --lr 1", "python t.py \\\n  --lr 1"),
                ("lost-continuation", "python t.py \\\n  # --wd 2 \\\n  --lr 1", "A=(\n  --wd 2 # why\n  --lr 1\n)"),
                ("typeset-character", "python t.py \u2013lr 1", "python t.py -lr 1  # \u2013"),
                ("typeset-character", "export A=\u201cx\u201d", "export A='\u201cx\u201d'\necho d\u2019or"),
                ("self-assignment", "master_addr=a\nexport MASTER_ADDR=$MASTER_ADDR", "master_addr=a\nexport MASTER_ADDR=$master_addr"),
                ("variable-not-requested", "export OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK", "export OMP_NUM_THREADS=${SLURM_CPUS_PER_TASK:-1}"),
                ("variable-not-requested", "N=$((SLURM_NNODES * SLURM_NTASKS_PER_NODE))", "#SBATCH --ntasks-per-node=4\nN=$((SLURM_NNODES * SLURM_NTASKS_PER_NODE))"),
                ("rendezvous-missing", "srun torchrun --nproc-per-node 4 t.py", "srun torchrun $ARGS t.py\nsrun -N 1 torchrun --nproc-per-node 4 t.py"),
                ("option-twice", "torchrun --nproc_per_node=4 --nproc-per-node=2 t.py", "torchrun --nproc_per_node=2 --nproc-per-node=2 t.py"),
                ("devices-per-task", "srun -N 2 -n 8 --gpus-per-task=1 python x.py", "srun -N 2 -n 2 --gpus-per-task=4 ./x.sh\nsrun -n 8 --gpus-per-task=1 --gpu-bind=none ./x.sh\nsrun -N 2 -n 8 --gpus-per-task=1 ./lmp"),
                ("bad-value", "export NCCL_PROTO=simpel", "export NCCL_PROTO='^LL128;allreduce:simple'"),
                ("bad-value", "export TORCH_CPP_LOG_LEVEL=loud", "export TORCH_CPP_LOG_LEVEL=error"),
                ("not-exported", "MASTER_PORT=1\nsrun x", "MASTER_PORT=1\nsrun torchrun --nnodes=2 --rdzv-endpoint=a:1 t.py"),
                ("not-exported", "MASTER_PORT=1\necho port $MASTER_PORT", "MASTER_PORT=1\nssh a train --port $MASTER_PORT"),
                ("export-before-module", "export NCCL_CROSS_NIC=1\nmodule load PyTorch/2.2", "export NCCL_DEBUG=WARN\nmodule load PyTorch/2.2"),
                ("not-exported", "WORLD_SIZE=8\nsrun x", "WORLD_SIZE=8\npython -m torch.distributed.launch t.py"),
                ("old-variable", "export SRUN_CPUS_PER_TASK=4", "export SRUN_CPUS_PER_TASK=${SLURM_CPUS_PER_TASK:-4}"),
                ("old-variable", "export NCCL_ASYNC_ERROR_HANDLING=1", "export NCCL_ASYNC_ERROR_HANDLING=1 TORCH_NCCL_ASYNC_ERROR_HANDLING=1"),
                ("not-exported", "RANK=0\nsrun x", "RANK=0\nfor n in a b; do\n  ssh $n x $RANK\n  RANK=$((RANK + 1))\ndone"),
                ("path-replaced", "export LD_LIBRARY_PATH=LD_LIBRARY_PATH:/x/lib", "export LD_LIBRARY_PATH=/x/lib"),
                ("placeholder", "#SBATCH --time=??", "#SBATCH --time=1:00:00"),
                ("devices-per-task", "#SBATCH --tasks-per-node=4\n#SBATCH --gpus-per-task=1", "#SBATCH --tasks-per-node=1\n#SBATCH --gpus-per-task=4"),
                ("slow-setting", "export NCCL_IB_DISABLE=1", "export NCCL_IB_DISABLE=1 FI_PROVIDER=efa"),
                ("unknown-directive", "#SBATCH -- gres=gpu:1", "#SBATCH --gres=gpu:1"),
                ("nodes-unused", "torchrun --nproc-per-node=4 x.py", "torchrun --nproc-per-node=4 --nnodes=2 x.py"),
                ("lost-continuation", "srun -n 8 \\\n\n  python x.py", "srun -n 8 \\\n  python x.py\n[[ ! -r a || ! -r b ]] && exit"),
                ("lost-continuation", "python x.py --a 1\n--b 2\n--c 3", "python x.py --a 1 \\\n--b 2 \\\n--c 3"),
                ("unknown-variable", 'export NCCL_TIMEOUT="${NCCL_TIMEOUT:-1800}"', 'export NCCL_DEBUG="${NCCL_DEBUG:-WARN}"'),
                ("unknown-variable", "export NCCL_DISABLE_IB=1", "export NCCL_FASTRAK_NEW=1 RCCL_OF_A_FORK=1 NCCL_ROOT_DIR=/x"),
                ("address-is-list", 'export MASTER_ADDR="$SLURM_JOB_NODELIST"', 'export MASTER_ADDR="$HOSTNAME"'),
                ("bad-value", "export NCCL_NET_GDR_LEVEL=PBH", "export NCCL_NET_GDR_LEVEL=5"),
                ("srun-cpus-per-task", "#SBATCH -c 4\nsrun bash -c 'cp a b; python x.py'", "#SBATCH -c 4\nsrun bash -c 'cd a && cp a b'"),
                ("placeholder", "x --data /path/to/data", "echo usage: $0 /path/to/data"),
                ("harmful-setting", "export CCL_PROCESS_LAUNCHER=none\nmpiexec -n 2 x", "export CCL_PROCESS_LAUNCHER=none\ntorchrun x.py"),
                ("export-before-module", "export FI_PROVIDER=cxi\nmodule load oneapi", "export FI_PROVIDER=cxi\nmodule load PrgEnv-gnu rocm/6.2.4"),
                ("folder-on-first-node", 'D=/tmp/a\nmkdir -p "$D"', 'D=/scratch/a\nmkdir -p "$D"'),
                ("known-issue", "module load openmpi/5.0.2\nsrun x", "module load openmpi/5.0.2\nexport MASTER_ADDR=n1\nsrun x"),
                ("known-issue", "module load openmpi/5.0.2\nsrun -n 2 x", "module load openmpi/5.0.2\nsrun -n 1 x"),
                ("devices-per-task", "srun -N 2 -n 8 --gpus-per-task=1 ./wrap python x.py", "srun -N 2 -n 8 --gpus-per-task=1 ./wrap ./lmp"),
                ("path-replaced", "module load python\nexport PYTHONPATH=.", "module load cuda/12\nexport PYTHONPATH=."),
                ("pmix-without-option", "export CCL_PROCESS_LAUNCHER=pmix\nmpiexec -n 2 x", "export PALS_PMI=pmix CCL_PROCESS_LAUNCHER=pmix\nmpiexec -n 2 x")):
            end = "" if "srun" in wrong or "torchrun" in wrong or "mpiexec" in wrong else RUN
            self.check(code, HEAD + wrong + "\n" + end, HEAD + right + "\n" + end)
        port = "#!/bin/bash\n#SBATCH -N 1\n%sexport MASTER_PORT=1\nsrun x\n"
        self.assertIn("port-for-all", self.codes(port % "#SBATCH --gres=gpu:1\n"))
        for whole in ("", "#SBATCH --gres=gpu:1 --mem=0\n", "#SBATCH --gres=gpu:1 --exclusive\n"):
            self.assertNotIn("port-for-all", self.codes(port % whole))
        grade = lambda line: [one["severity"] for one in self.findings(HEAD + line + "\n" + RUN)]
        self.assertEqual(grade("export FI_CXI_OFLOW_BUF_SIZE=8388608"), ["note"])
        self.assertEqual(grade("export RCCL_DEBUG=INFO"), ["warning"])
        for program in ("python x.py", "vllm serve m"):
            self.assertNotIn("slow-setting", self.codes("#!/bin/bash\nexport NCCL_IB_DISABLE=1\n" + program + "\n"))
        self.assertIn("slow-setting", self.codes("export NCCL_IB_DISABLE=1\n"))
        self.assertNotIn("slow-setting", self.codes("#!/bin/bash\nexport NCCL_IB_DISABLE=1\ntorchrun --nproc-per-node 2 x.py\n"))
        self.assertNotIn("repeated-directive", self.codes(HEAD + "#SBATCH --mail-type=begin\n#SBATCH --mail-type=end\n" + RUN))
        self.assertEqual(self.codes(HEAD + "date\n#SBATCH -t 5\n#SBATCH -n 5\n" + RUN), ["late-directive"])
        self.assertNotIn("devices-per-task", self.codes(HEAD + "#SBATCH -n 8\n#SBATCH --gpus-per-task=1\npython x.py\n"))
        self.assertEqual(self.codes("#$ -S /bin/bash\n#$ -cwd\ndate\n"), [])
        near = self.findings(HEAD + "export NCCL_SHRIMP_DISABLE=1\n" + RUN)
        self.assertFalse("did you mean" in near[0]["message"], near)
        for line, found in (("#!/bash/bin", True), ("#!/bin/sh$", True), ("# x\n#!/bin/sh", True), ("#!bin/bash", True), ("#!/usr/bin/env -S bash -e", False), ("#! /bin/tcsh", False)):
            self.assertEqual("bad-shebang" in self.codes(line + "\nsrun x\n"), found, line)
        alone = "export NCCL_IB_DISABLE=1\n%s\n"
        for line, found in (("deepspeed t.py", False), ("torchrun --nnodes=1 t.py", False), ("deepspeed --hostfile=h t.py", True), ("torchrun --nnodes=2 t.py", True)):
            self.assertEqual("slow-setting" in self.codes(alone % line), found, line)

    def test_cautions_are_explained(self):
        done = hpclaunch("explain", "FI_CXI_OFLOW_BUF_SIZE", "--profile", "none")
        self.assertRegex(done.out, r"(?s)harmful +.*8388608.*since libfabric 2.2.0.*prov/cxi/include/cxip.h")

    def test_versions_that_do_not_work_together(self):
        text = HEAD + "module load rocm/%s\nmodule load rccl/2.22.3\n%s" + RUN
        found = lambda *words: [line for line in hpclaunch("lint", self.file("job.sh", (text % words).encode())).out.splitlines()
                                if "[known-issue]" in line]
        self.assertEqual(len(found("6.3.1", "module load craype-accel-amd-gfx90a\n")), 2)  # one is of MI300 alone
        old = found("6.3.1", "module load craype-accel-amd-gfx942\n")
        self.assertEqual(len(old), 3, old)
        self.assertTrue(all(":4:13: warning: rccl 2.22.3" in line for line in old), old)
        self.assertEqual(found("6.4.1", "export RCCL_MSCCL_ENABLE=0\n"), [])
        for undone in ("module purge", "module unload rccl", "module swap rccl/2.22.3 rccl/2.24.3", "module switch rccl mpich/4.2.1", "ml -rccl"):
            self.assertEqual(found("6.3.1", undone + "\n"), [], undone)
        text = HEAD + "module load slurm/21.08.0\nsrun %s ./x\n"
        for option, times in (("-n 4", 0), ("--hint=nomultithread", 0), ("--gpu-bind=mask_gpu:0x1", 2)):
            self.assertEqual(hpclaunch("lint", self.file("job.sh", (text % option).encode())).out.count("gpu-bind=mask_gpu is") +
                             hpclaunch("lint", self.file("job.sh", (text % option).encode())).out.count("gpu-bind=single: sets"), times, option)
        text = HEAD + "module load rocm/%s\nmodule load rccl/2.22.3\n%s" + RUN
        self.assertEqual(len(found("6.4.1", "module swap rocm rocm/6.3.1\n")), 2)
        slurm = HEAD + "module load slurm/19.05.7\n%s"
        self.assertNotIn("gpu-bind", hpclaunch("lint", self.file("job.sh", (slurm % RUN).encode())).out)
        self.assertIn("gpu-bind", hpclaunch("lint", self.file("job.sh", (slurm % "srun --gpu-bind=single:1 x\n").encode())).out)
        self.assertNotIn("known-issue", self.codes(slurm % "python x.py\n"))
        done = hpclaunch("lint", "--env", env=clean_env(LOADEDMODULES="rocm/6.3.1:rccl/2.22.3", CUDA_LAUNCH_BLOCKING="1"))
        self.assertIn("rccl 2.22.3 with rocm 6.3.1 may hang", done.out)
        self.assertIn("[debug-setting]", done.out)
        done = hpclaunch("explain", "rccl", "--profile", "none")
        self.assertRegex(done.out, r"(?s)known issues.*rccl 2.22.3, rocm before 6.4.1 may hang.*CHANGELOG.md")
        done = hpclaunch("plan", "-n", "1", "--profile", "none", env=clean_env(LOADEDMODULES="cuda/13.0:nvidia-driver/570.1"))
        self.assertIn("[known-issue]", done.err)

    def test_launch_lines_are_read(self):
        for line in ("mpiexec -n 2 -genv NCCL_DEBUG INF x", "mpirun -x NCCL_DEBUG=INF x", "srun --export=ALL,NCCL_DEBUG=INF x",
                     "mpiexec --env NCCL_DEBUG=INF x", "NCCL_DEBUG=INF srun x", "env NCCL_DEBUG=INF x"):
            with self.subTest(line):
                self.assertEqual(self.codes(HEAD + line + "\n"), ["bad-value"])

    def test_place_and_text(self):
        path = self.file("job.sh", (HEAD + "export NCCL_IB_DISABLE=true\n" + RUN).encode())
        done = hpclaunch("lint", path)
        self.assertEqual(done.status, 1)
        self.assertIn(path + ":3:24: error: NCCL_IB_DISABLE=true", done.out)
        self.assertIn("[bad-value]", done.out)
        self.assertIn("1 error in 1 file", done.out)

    def test_secrets_are_never_printed(self):
        text = HEAD + "export HF_TOKEN=hf_abcdefghijk\nexport HF_TOKEN=hf_zyxwvutsrq\nexport WANDB_API_KEY=s3cr3ts3cr3t\n" + RUN
        path = self.file("job.sh", text.encode())
        for form in ("text", "json", "sarif", "github"):
            done = hpclaunch("lint", "--format", form, path)
            for secret in ("hf_abc", "hf_zyx", "s3cr3t"):
                self.assertNotIn(secret, done.out + done.err)
        done = hpclaunch("lint", "--env", env=clean_env(HF_TOKEN="hf_abcdefghijk"))
        self.assertNotIn("hf_abc", done.out + done.err)

    def test_ignored_with_a_reason(self):
        bad = "export NCCL_IB_DISABLE=true"
        self.assertEqual(self.codes(HEAD + bad + "  # hpclaunch: ignore bad-value tested so\n" + RUN), [])
        self.assertEqual(self.codes(HEAD + "# hpclaunch: ignore bad-value tested so\n" + bad + "\n" + RUN), [])
        self.assertEqual(sorted(self.codes(HEAD + bad + "  # hpclaunch: ignore bad-value\n" + RUN)), ["bad-value", "ignore-without-reason"])
        self.assertEqual(self.codes(HEAD + "# hpclaunch: ignore bad-value not here\ndate\n" + RUN), ["ignore-unused"])
        self.assertEqual(self.codes(HEAD + "# hpclaunch: ignore nonsense why\ndate\n" + RUN), ["ignore-unknown"])

    def test_fix_writes_what_diff_shows(self):
        text = HEAD + "export CCL_ALLREDUCE_SCALEOUT=direct:0-9;rabenseifner:10-max\nCCL_WORKER_AFFINITY=1,2\nexport FI_CXI_OVFLOW_BUF_SIZE=9\n" + RUN
        path = self.file("job.sh", text.encode())
        os.chmod(path, 0o750)
        shown = hpclaunch("lint", "--diff", path).out
        with open(path) as kept:
            self.assertEqual(kept.read(), text)
        self.assertIn("+export CCL_WORKER_AFFINITY=1,2", shown)
        hpclaunch("lint", "--fix", path)
        with open(path) as written:
            after = written.read()
        self.assertEqual(after, text.replace("=direct:0-9;rabenseifner:10-max", "='direct:0-9;rabenseifner:10-max'")
                         .replace("\nCCL_W", "\nexport CCL_W").replace("OVFLOW", "OFLOW"))
        self.assertEqual(os.stat(path).st_mode & 0o777, 0o750)
        patch = shown[:shown.rindex("\n ") + 2] if "\n " in shown else shown
        self.assertEqual(len(re.findall(r"^\+[^+]", patch, re.M)), 3)
        self.assertEqual(hpclaunch("lint", "--diff", path).out.count("@@"), 0)

    def test_sarif(self):
        path = self.file("job.sh", (HEAD + "CCL_WORKER_AFFINITY=1,2\n" + RUN).encode())
        log = json.loads(hpclaunch("lint", "--format", "sarif", path).out)
        self.assertEqual(log["version"], "2.1.0")
        run = log["runs"][0]
        rules = {rule["id"]: rule for rule in run["tool"]["driver"]["rules"]}
        self.assertEqual(run["tool"]["driver"]["name"], "hpclaunch")
        for result in run["results"]:
            self.assertIn(result["ruleId"], rules)
            self.assertIn(result["level"], ("none", "note", "warning", "error"))
            self.assertTrue(result["message"]["text"])
            region = result["locations"][0]["physicalLocation"]["region"]
            self.assertGreaterEqual(region["startLine"], 1)
            for fix in result.get("fixes", ()):
                self.assertTrue(fix["artifactChanges"][0]["replacements"][0]["deletedRegion"])
        self.assertEqual(run["columnKind"], "unicodeCodePoints")
        self.assertEqual([one["column"] for one in self.findings(HEAD + "N=\u00e9\u4e2d\U0001f600; export NCCL_IB_DISABLE=true\n" + RUN)], [31])
        self.assertTrue(any("fixes" in result for result in run["results"]))

    def test_github(self):
        path = self.file("job.sh", (HEAD + "export NCCL_IB_DISABLE=true\n" + RUN).encode())
        self.assertRegex(hpclaunch("lint", "--format", "github", path).out, r"^::error file=.*,line=3,col=24,.*title=bad-value::NCCL")

    def test_other_inputs(self):
        self.assertEqual(self.codes("NCCL_IB_DISABLE=true\nA=b c\n", ".env"), ["bad-value"])
        self.assertEqual(self.codes("PWD=/x y\nPATH=/bin\nNCCL_IB_DISABLE=true\n", "dump"), ["bad-value"])
        self.assertEqual(self.codes('declare -x HOME="/x y"\ndeclare -x OLDPWD\ndeclare -x PATH="/bin"\ndeclare -x NCCL_IB_DISABLE="true"\n', "dump"), ["bad-value"])
        self.assertEqual(self.codes("export HOME='/x'\nexport PATH='/bin'\nexport NCCL_IB_DISABLE='true'\n", "dump"), ["bad-value"])
        done = hpclaunch("lint", "--env", env=clean_env(NCCL_IB_DISABLE="true"))
        self.assertEqual(done.status, 1)
        self.assertIn("NCCL_IB_DISABLE", done.out)
        self.assertEqual(hpclaunch("lint", os.path.join(support.ROOT, "profiles", "site", "polaris.json")).status, 0)
        self.assertEqual(self.codes("#!/bin/csh\nsetenv NCCL_IB_DISABLE true\nsrun x\n"), ["bad-value"])

    def test_statuses(self):
        good = self.file("good.sh", (HEAD + RUN).encode())
        self.assertEqual(hpclaunch("lint", good).status, 0)
        self.assertEqual(hpclaunch("lint").status, 2)
        self.assertEqual(hpclaunch("lint", "/nonexistent/job.sh").status, 2)
        self.assertEqual(hpclaunch("lint", "--explain", "not-exportd").status, 2)
        self.assertIn("lint --explain not-exported", hpclaunch("lint", "--explain", "not-exportd").err)
        self.assertIn("not-exported", hpclaunch("lint", "--explain", "not-exported").out)

    def test_own_scripts_are_clean(self):
        folder = os.path.join(support.ROOT, "examples", "jobs")
        scripts = [os.path.join(folder, name) for name in sorted(os.listdir(folder)) if name.endswith(".sh")]
        self.assertTrue(scripts)
        done = hpclaunch("lint", *scripts)
        self.assertEqual(done.status, 0, done)

    def test_every_rule_of_the_sources_has_a_page_and_the_other_way_round(self):
        text = ""
        for name in sorted(glob.glob(os.path.join(support.ROOT, "src", "lint", "*"))) + [os.path.join(support.ROOT, "src", "knowledge", "find.cpp")]:
            with open(name, encoding="utf-8") as source:
                text += source.read()
        raised = set(re.findall(r'\.add\(\s*"([a-z-]+)"', text)) | set(re.findall(r'"([a-z]+-setting|setting-[a-z-]+)"', text)) | {"unknown-variable", "old-variable", "bad-value", "known-issue"}
        with open(os.path.join(support.ROOT, "profiles", "lint", "rules.json"), encoding="utf-8") as file:
            raised |= set(re.findall(r'"code": "([a-z-]+)"(?:(?!"code").)*"launches"', file.read(), re.S))
        listed = {line.split()[0] for line in hpclaunch("lint", "--rules").out.splitlines()}
        self.assertEqual(raised, listed)

    def test_every_rule_has_a_case(self):
        """CONTRIBUTING.md, "A lint rule": a script with the fault, and its correct form."""
        with open(os.path.join(support.ROOT, "tests", "cli", "lint_test.py"), encoding="utf-8") as file:
            cases = set(re.findall(r'"([a-z-]+)"', file.read()))
        for name in glob.glob(os.path.join(support.ROOT, "tests", "data", "lint", "*")):
            with open(name, encoding="utf-8") as file:
                cases |= set(re.findall(r"(?m)^# expect \d+ ([a-z-]+)$", file.read()))
        listed = {line.split()[0] for line in hpclaunch("lint", "--rules").out.splitlines()}
        self.assertEqual(listed - cases, set(), "tests/cli/lint_test.py: expected a row (code, wrong, right) for each of these")

    def test_scripts_of_all_kinds(self):
        """tests/data/lint: each finding is a comment "# expect LINE CODE" at the end of the file."""
        folder = os.path.join(support.ROOT, "tests", "data", "lint")
        for name in sorted(os.listdir(folder)):
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                text = file.read()
            expected = sorted((int(line), code) for line, code in re.findall(r"(?m)^# expect (\d+) ([a-z-]+)$", text))
            done = hpclaunch("lint", "--format", "json", os.path.join(folder, name))
            found = sorted((one["line"], one["code"]) for one in json.loads(done.out)["findings"])
            self.assertEqual(found, expected, name)

    def test_what_qsub_refuses(self):
        """Each line of tests/data/qsub_lines.txt as the only directive of a script; refused ones have an error or a warning."""
        with open(os.path.join(support.ROOT, "tests", "data", "qsub_lines.txt"), encoding="utf-8") as file:
            lines = [line.rstrip("\n").split(" ", 1) for line in file if line[0] != "#"]
        self.assertGreater(len(lines), 250)
        names = [self.file("q%d.sh" % i, "#!/bin/bash -l\n#PBS %s\npython3 train.py\n" % line) for i, (_, line) in enumerate(lines)]
        found = {}
        for one in json.loads(hpclaunch("lint", "--format", "json", *names).out)["findings"]:
            if one["line"] == 2 and one["severity"] != "note" and one["code"] != "repeated-directive":
                found[one["file"]] = one["message"]
        for name, (what, line) in zip(names, lines):
            with self.subTest(line):
                self.assertEqual(name in found, what == "R", found.get(name))

    def test_torque_has_a_qsub_of_its_own(self):
        text = "#!/bin/bash\n#PBS -t 1-4\n#PBS -l nodes=1:ppn=4:gpus=1\npython3 train.py --task $%s\n"
        self.assertEqual([code for code in self.codes(text % "PBS_ARRAYID") if "directive" in code], [])
        self.assertEqual([code for code in self.codes(text % "PBS_ARRAY_INDEX") if "directive" in code], ["unknown-directive", "directive-value"])

    def test_rules_ask_for_lists_of_words_that_there_are(self):
        with open(os.path.join(support.ROOT, "profiles", "programs", "words.json"), encoding="utf-8") as file:
            lists = set(re.findall(r'"name": "([^"]+)"', file.read()))
        text = ""
        for path in glob.glob(os.path.join(support.ROOT, "src", "**", "*.cpp"), recursive=True):
            with open(path, encoding="utf-8") as file:
                text += file.read()
        asked = set(re.findall(r'\bwords_named\(\s*"([^"]*)"', text))
        self.assertEqual(asked - lists, set())
        self.assertEqual({one for one in lists if '"%s"' % one not in text}, set())

    def test_the_page_of_rules_is_current(self):
        subprocess.run([os.path.join(support.ROOT, "scripts", "lint-page"), "--check"], check=True)


if __name__ == "__main__":
    support.main()
