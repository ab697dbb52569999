// The table of batch systems, innermost first.
//
// Sources: flux-environment(7), qsub(1B) of OpenPBS, sbatch(1), IBM Spectrum LSF "Environment variables
// set for job execution", Cobalt's qsub(1), SGE's qsub(1) and sge_pe(5).
#include <fmt/format.h>

#include "hpclaunch/cpuset.h"
#include "hpclaunch/device_vendor.h"
#include "hpclaunch/hosts.h"
#include "hpclaunch/text.h"
#include "scheduler/rows.h"

namespace hpclaunch {
namespace {

using Words = std::string_view;
constexpr Words kFluxHosts[] = {"flux", "hostlist", "local"};
constexpr Words kFluxGrants[] = {"flux", "resource", "R", "--states=up"};
constexpr Words kFluxJob[] = {"flux", "getattr", "jobid"};
constexpr Words kFluxTimeLeft[] = {"flux", "job", "timeleft"};
constexpr Words kPbsTimeLeft[] = {"qstat", "-f", "{job}"};
constexpr Words kPbsNode[] = {"pbsnodes", "-H", "{host}"};
constexpr Words kSlurmHosts[] = {"SLURM_JOB_NODELIST", "SLURM_NODELIST"};
constexpr Words kSlurmTimeLeft[] = {"squeue", "-h", "-j", "{job}", "-o", "%L"};
constexpr Words kLsfHosts[] = {"LSB_MCPU_HOSTS", "LSB_HOSTS"};
constexpr Words kLsfTimeLeft[] = {"bjobs", "-noheader", "-o", "time_left", "{job}"};

constexpr Words kFluxState[] = {
    "flux",
    "jobs",
    "-n",
    "-o",
    "{state}|{result}|{returncode}|{exception.type}|{contextual_info}|{exception.note}",
    "{job}"};
constexpr Words kPbsState[] = {"qstat", "-x", "-f", "{job}"};
constexpr Words kPbsActive[] = {"qstat", "-f", "{job}"};
constexpr Words kSlurmState[] = {"scontrol", "show", "job", "{job}"};
constexpr Words kSlurmAccounting[] = {"sacct", "-X",    "-n", "-P",
                                      "-j",    "{job}", "-o", "State,ExitCode"};
// By priority, the highest first; flux-jobs(1) lists pending jobs so by itself.
constexpr Words kSlurmQueue[] = {"squeue", "-h",      "-t", "PENDING", "--sort=-p,i",
                                 "-p",     "{queue}", "-o", "%A"};
constexpr Words kFluxQueue[] = {"flux", "jobs", "-A",      "-n", "-c",
                                "0",    "-f",   "pending", "-o", "{id}"};
constexpr StateQuestion kAskFlux[] = {{kFluxState, flux_state}};
constexpr StateQuestion kAskPbs[] = {
    {kPbsState, pbs_state, "not configured to maintain job history"}, {kPbsActive, pbs_state}};
constexpr StateQuestion kAskSlurm[] = {{kSlurmState, slurm_state},
                                       {kSlurmAccounting, slurm_accounting}};

// PBS: mom sets both to ompthreads, else to ncpus, of the first chunk (start_exec.c; PBS Professional User's Guide).
constexpr OwnVariable kPbsOwn[] = {
    {.name = "OMP_NUM_THREADS", .same_as = "NCPUS", .unless = "ompthreads"}};
// flux-environment(7) and flux-shell's gpubind: of the initial program of an instance too.
constexpr OwnVariable kFluxOwn[] = {{.name = "CUDA_VISIBLE_DEVICES", .devices = true},
                                    {.name = "CUDA_DEVICE_ORDER", .value = "PCI_BUS_ID"}};
// gres_common_gpu_set_env of Slurm's src/interfaces/gres.c.
constexpr Words kOfSlurmGpus = "SLURM_JOB_GPUS SLURM_STEP_GPUS SLURM_GPUS_ON_NODE";
constexpr OwnVariable kSlurmOwn[] = {
    {.name = "CUDA_VISIBLE_DEVICES", .beside = kOfSlurmGpus, .devices = true},
    {.name = "GPU_DEVICE_ORDINAL", .beside = kOfSlurmGpus, .devices = true},
    {.name = "ROCR_VISIBLE_DEVICES", .beside = kOfSlurmGpus, .devices = true},
    {.name = "ZE_AFFINITY_MASK", .beside = kOfSlurmGpus, .devices = true}};
// bsub -gpu of IBM Spectrum LSF.
constexpr OwnVariable kLsfOwn[] = {{.name = "CUDA_VISIBLE_DEVICES", .devices = true}};
// A resource map of GPUs in Univa's and Altair's Grid Engine.
constexpr OwnVariable kSgeOwn[] = {
    {.name = "CUDA_VISIBLE_DEVICES", .beside = "SGE_HGR_gpu", .devices = true}};

constexpr Words kPbsConfigurations[] = {"/etc/pbs.conf"};
constexpr Words kSlurmConfigurations[] = {"/etc/slurm/slurm.conf", "/run/slurm/conf/slurm.conf"};
constexpr Words kFluxConfigurations[] = {"/run/flux/local"};

constexpr Scheduler kSchedulers[] = {
    {.name = "flux",
     .title = "Flux",
     .job_variable = "FLUX_JOB_ID",
     .instance_variable = "FLUX_URI",
     .outer_variable = "FLUX_ENCLOSING_ID",
     .nested = true,
     .ask_hosts = kFluxHosts,
     .ask_grants = kFluxGrants,
     .ask_job = kFluxJob,
     .hosts = flux_hosts,
     .own_variables = kFluxOwn,
     .ask_time_left = kFluxTimeLeft,
     .time_left = flux_time_left,
     .launcher = "flux",
     .directives = {.sentinel = "# flux: ",
                    .nodes = "-N {}",
                    .time = "-t {}",
                    .time_text = minutes_time,
                    .account = "-B {}",
                    .queue = "-q {}",
                    .name = "--job-name={}",
                    .output = "--output={}",
                    .constraint = "--requires={}",
                    .devices = "-g {}",
                    .dependency = "--dependency={}",
                    .exclude = "--requires=-host:{}",
                    .error = "--error={}",
                    .in_folder = "flux-{{id}}"},
     .allocate = "flux alloc {}",
     .submit = "flux batch",
     .ask_state = kAskFlux,
     .ask_queue = kFluxQueue,
     .unknown_job = "unknown",
     .output_name = "flux-{id}.out",
     .cancel = "flux cancel",
     .first_host = "flux hostlist --nth=0 local",
     .configurations = kFluxConfigurations},
    {.name = "pbs",
     .title = "PBS",
     .job_variable = "PBS_JOBID",
     .hosts_file = "PBS_NODEFILE",
     .one_per_line = true,
     .own_variables = kPbsOwn,
     .ask_time_left = kPbsTimeLeft,
     .time_left = pbs_time_left,
     .grants = pbs_grants,
     .ask_node = kPbsNode,
     .node = pbs_node,
     .task_folder = "pbs.",
     .directives = {.sentinel = "#PBS ",
                    .nodes = "-l select={}",
                    .time = "-l walltime={}",
                    .time_text = clock_text,
                    .account = "-A {}",
                    .queue = "-q {}",
                    .name = "-N {}",
                    .output = "-o {}",
                    .filesystems = "-l filesystems={}",
                    .constraint = ":{}",
                    .devices = ":ngpus={}",
                    .memory = ":mem={}B",
                    .dependency = "-W depend={}",
                    .array = "-J {}",
                    .reservation = "-q {}",
                    .mail = "-m abe -M {}",
                    .error = "-e {}",
                    .join = "-j oe",
                    .spread = "-l place=scatter",
                    .cpus = ":ncpus={}",
                    .ranks = ":mpiprocs={}",
                    .whole = "-l place=scatter:excl",
                    .live = "-k doe"},
     .allocate = "qsub -I {}",
     .submit = "qsub",
     .enter_directory = "cd \"$PBS_O_WORKDIR\" || exit 1",
     .ask_state = kAskPbs,
     .unknown_job = "Unknown Job Id",
     .output_name = "{name}.o{number}",
     .output_in = "{id}.OU",
     .forgets = true,
     .killed = "=>> PBS: job killed: ",
     .cancel = "qdel",
     .requeue = "qrerun",
     .first_host = "head -n 1 \"$PBS_NODEFILE\"",
     .configured_by = "PBS_CONF_FILE",
     .configurations = kPbsConfigurations},
    {.name = "slurm",
     .title = "Slurm",
     .job_variable = "SLURM_JOB_ID",
     .hosts_variables = kSlurmHosts,
     .nodes_variable = "SLURM_JOB_NUM_NODES",
     .hosts = slurm_hosts,
     .cpus_variable = "SLURM_JOB_CPUS_PER_NODE",
     .device_lists = kSlurmGpuLists,
     .device_count = kSlurmGpuCount,
     .own_variables = kSlurmOwn,
     .end_variable = "SLURM_JOB_END_TIME",
     .ask_time_left = kSlurmTimeLeft,
     .time_left = slurm_time_left,
     .launcher = "slurm",
     .broadcast = "sbcast",
     .directives = {.sentinel = "#SBATCH ",
                    .nodes = "-N {}",
                    .time = "-t {}",
                    .time_text = clock_text,
                    .account = "-A {}",
                    .queue = "-p {}",
                    .name = "-J {}",
                    .output = "-o {}",
                    .constraint = "-C {}",
                    .devices = "--gpus-per-node={}",
                    .memory = "--mem={}",
                    .dependency = "-d {}",
                    .array = "-a {}",
                    .reservation = "--reservation={}",
                    .exclude = "-x {}",
                    .mail = "--mail-type=BEGIN,END,FAIL --mail-user={}",
                    .error = "-e {}",
                    .in_folder = "slurm-%j"},
     .allocate = "salloc {}",
     .submit = "sbatch",
     .submit_options = "--parsable",
     .account_variable = "SBATCH_ACCOUNT",
     .enter_directory = "cd \"$SLURM_SUBMIT_DIR\" || exit 1",
     .clean_environment = "export SLURM_EXPORT_ENV=ALL",
     .ask_state = kAskSlurm,
     .ask_queue = kSlurmQueue,
     .unknown_job = "Invalid job id",
     .cancel = "scancel",
     .requeue = "scontrol requeue",
     .first_host = "scontrol show hostnames \"$SLURM_JOB_NODELIST\" | head -n 1",
     .configured_by = "SLURM_CONF",
     .configurations = kSlurmConfigurations,
     .daemon = "slurmstepd",
     .ports_setting = "SrunPortRange",
     .inherited_prefix = "SLURM_",
     .inherited_why = "set by the Slurm job that submitted this job; mpiexec would start there"},
    {.name = "lsf",
     .title = "LSF",
     .job_variable = "LSB_JOBID",
     .task_variable = "LSB_JOBINDEX",
     .task_form = "{}[{}]",
     .hosts_file = "LSB_DJOB_HOSTFILE",
     .hosts_variables = kLsfHosts,
     .launch_node = true,
     .hosts = lsf_hosts,
     .own_variables = kLsfOwn,
     .ask_time_left = kLsfTimeLeft,
     .time_left = lsf_time_left,
     .launcher = "jsrun",
     .directives = {.sentinel = "#BSUB ",
                    .nodes = "-nnodes {}",
                    .time = "-W {}",
                    .time_text = hours_time,
                    .account = "-P {}",
                    .queue = "-q {}",
                    .name = "-J {}",
                    .output = "-o {}",
                    .constraint = "-alloc_flags {}",
                    .devices = "-gpu num={}",
                    .memory = "-R \"rusage[mem={}B]\"",
                    .dependency = "-w {}",
                    .array = "[{}]",
                    .reservation = "-U {}",
                    .mail = "-B -N -u {}",
                    .error = "-e {}",
                    .in_folder = "%J"},
     .allocate = "bsub {} -Is $SHELL",
     .submit = "bsub",
     .enter_directory = "cd \"$LS_SUBCWD\" || exit 1",
     .cancel = "bkill"},
    {.name = "cobalt",
     .title = "Cobalt",
     .job_variable = "COBALT_JOBID",
     .hosts_file = "COBALT_NODEFILE",
     .one_per_line = true,
     .directives = {.sentinel = "#COBALT ",
                    .nodes = "-n {}",
                    .time = "-t {}",
                    .time_text = clock_text,
                    .account = "-A {}",
                    .queue = "-q {}",
                    .name = "--jobname {}",
                    .output = "-o {}",
                    .filesystems = "--attrs filesystems={}",
                    .dependency = "--dependencies={}",
                    .mail = "-M {}",
                    .error = "-e {}"},
     .allocate = "qsub -I {}",
     .submit = "qsub",
     .submits_stdin = false,
     .cancel = "qdel",
     .first_host = "head -n 1 \"$COBALT_NODEFILE\""},
    {.name = "sge",
     .title = "SGE",
     .job_variable = "JOB_ID",
     .task_variable = "SGE_TASK_ID",
     .task_form = "{}.{}",
     .common_variable = true,
     .hosts_file = "PE_HOSTFILE",
     .hosts = sge_hosts,
     .own_variables = kSgeOwn,
     .directives = {.sentinel = "#$ ",
                    .time = "-l h_rt={}",
                    .time_text = clock_text,
                    .account = "-P {}",
                    .queue = "-q {}",
                    .name = "-N {}",
                    .output = "-o {}",
                    .constraint = "-l {}",
                    .dependency = "-hold_jid {}",
                    .array = "-t {}",
                    .reservation = "-ar {}",
                    .mail = "-m bea -M {}",
                    .error = "-e {}",
                    .always = "-cwd",
                    .join = "-j y"},
     .allocate = "qlogin {}",
     .submit = "qsub",
     .submit_options = "-terse",
     .output_in = "{name}.o{id}",
     .cancel = "qdel",
     .first_host = "head -n 1 \"$PE_HOSTFILE\" | cut -d ' ' -f 1"},
};

}  // namespace

std::span<const Scheduler> schedulers() { return kSchedulers; }

}  // namespace hpclaunch
