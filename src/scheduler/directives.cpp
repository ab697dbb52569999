// Options as in sbatch(1) of Slurm 24.11, qsub(1B) of OpenPBS, bsub(1), flux-batch(1), qsub(1) of SGE and Cobalt.
#include <algorithm>

#include "hpclaunch/scheduler.h"

namespace hpclaunch {

namespace {

constexpr DirectiveOptions kSystems[] = {
    {"slurm", "#SBATCH", true,
     "contiguous exclusive get-user-env hold ignore-pbs no-kill no-requeue nice overcommit "
     "oversubscribe parsable propagate "
     "quiet reboot requeue spread-job stepmgr test-only use-min-nodes verbose wait "
     "help usage version",
     "a array|A account|b begin|B extra-node-info|c cpus-per-task|C constraint|d dependency|D "
     "chdir|e error|F nodefile|G gpus|"
     "H hold|i input|J job-name|k no-kill|L licenses|m distribution|M clusters|n ntasks|N nodes|o "
     "output|O overcommit|"
     "p partition|q qos|Q quiet|s oversubscribe|S core-spec|t time|v verbose|W wait|w nodelist|x "
     "exclude",
     "array account acctg-freq batch bb bbf begin chdir cluster cluster-constraint clusters "
     "comment "
     "constraint container container-id "
     "core-spec cores-per-socket cpu-freq cpus-per-gpu cpus-per-task deadline delay-boot "
     "dependency distribution error "
     "exclude exclusive export export-file extra extra-node-info gid gpu-bind gpu-freq gpus "
     "gpus-per-node gpus-per-socket "
     "gpus-per-task gres gres-flags hint immediate input job-name kill-on-invalid-dep licenses "
     "mail-type "
     "mail-user mcs-label mem "
     "mem-bind mem-per-cpu mem-per-gpu mincores mincpus minsockets minthreads network nice "
     "nodefile nodelist nodes ntasks "
     "ntasks-per-core "
     "ntasks-per-gpu ntasks-per-node ntasks-per-socket open-mode output partition power prefer "
     "priority profile propagate "
     "qos reservation resv-ports segment signal sockets-per-node switches thread-spec "
     "threads-per-core time time-min tmp "
     "tres-bind tres-per-task uid wait-all-nodes wckey wrap x11 workdir tasks-per-node share umask",
     "quotatype image module volume entrypoint clearenv uenv view repo environment container-image "
     "container-mounts container-workdir container-name container-save container-mount-home "
     "no-container-mount-home container-remap-root no-container-remap-root container-entrypoint "
     "no-container-entrypoint container-writable container-readonly container-env"},
    {"pbs", "#PBS", false, "V h z I X f", "", "a A c C e j J k l m M N o p P q r R S u v W"},
    {"lsf", "#BSUB", false, "x K r rn B N H Is", "", ""},
    {"flux", "#FLUX:|#flux:|# FLUX:|# flux:", true,
     "exclusive unbuffered verbose dry-run flags label-io",
     "n nslots|N nodes|c cores-per-slot|g gpus-per-slot|t time-limit|B bank|q queue|x exclusive|o "
     "setopt|S setattr|l label-io|u unbuffered|v verbose",
     "nslots nodes cores-per-slot gpus-per-slot time-limit bank queue job-name output error input "
     "setopt setattr env "
     "env-remove env-file rlimit cwd urgency conf requires dependency begin-time signal "
     "broker-opts dump exclusive"},
    {"cobalt", "#COBALT|#Cobalt", false, "", "", ""},
    {"sge", "#$", false, "cwd V notify", "", ""},
};

}  // namespace

std::span<const DirectiveOptions> directive_options() { return kSystems; }

const DirectiveOptions* find_directive_options(std::string_view name) {
  const auto found = std::ranges::find(kSystems, name, &DirectiveOptions::name);
  return found == std::end(kSystems) ? nullptr : &*found;
}

}  // namespace hpclaunch
