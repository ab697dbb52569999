// Container engines: how each is recognised, and its words. Sources: the engines' own documents and sources of 2026;
// what was run is in tests/engines/container_test.py.
#include "hpclaunch/text.h"
#include "launcher/line.h"

namespace hpclaunch {

namespace {

// Apptainer and SingularityCE. `exec` needs no shell in the image. The host's variables arrive where the image does
// not set them; APPTAINERENV_ would be evaluated by a shell.
constexpr ContainerEngine kApptainer = {.name = "apptainer",
                                        .programs = "apptainer singularity",
                                        .start = "exec",
                                        .directory = "{}",
                                        .files = ".sif .simg",
                                        .names = "docker:// oras:// library:// instance://",
                                        .bind = "--bind={from}:{to}",
                                        .nvidia = "--nv",
                                        .amd = "--rocm"};

constexpr ContainerEngine named(ContainerEngine engine, std::string_view name,
                                std::string_view programs) {
  engine.name = name;
  engine.programs = programs;
  return engine;
}

// A program that is process 1 of its container ignores signals without a handler, hence --init. The rank's network and
// memory are the host's: NCCL and workers of DataLoader share /dev/shm. An image's entry point must not see the shim.
constexpr ContainerEngine kPodman = {
    .name = "podman",
    .programs = "podman",
    .start =
        "run --rm --init --interactive --pull=never --network=host --ipc=host --log-driver=none "
        "--entrypoint=",
    .directory = "--rootfs {}",
    .names = "*",
    .lookup = "image exists {}",
    .bind = "--volume={from}:{to}",
    .env = "--env={}",
    .patterns =
        "HPCLAUNCH_* SLURM_* PMI_* PMIX_* PALS_* OMPI_* PRTE_* FLUX_* MPI_* JSM_* PBS_* "
        "LSB_* SLINGSHOT_*",
    .limit = "--ulimit={name}={soft}:{hard}",
    .nvidia = "--device=nvidia.com/gpu=all",
    .amd = "--device=/dev/kfd --device=/dev/dri --group-add=keep-groups",
    .intel = "--device=/dev/dri --group-add=keep-groups"};

// Its images are squashed and in a store; ranks of a node see one another's processes, as its own modules have it.
constexpr ContainerEngine podman_hpc() {
  ContainerEngine engine = named(kPodman, "podman-hpc", "podman-hpc");
  engine.start =
      "run --rm --interactive --network=host --ipc=host --pid=host --log-driver=none --entrypoint=";
  engine.directory = {};
  engine.nvidia = "--gpu";
  engine.amd = engine.intel = {};
  return engine;
}

constexpr std::string_view kSh = "/bin/sh";

constexpr ContainerEngine kEngines[] = {
    kApptainer,
    named(kApptainer, "singularity", "singularity apptainer"),
    podman_hpc(),
    kPodman,
    {.name = "pyxis",
     .srun_option = "--container-image",
     .start = "--no-container-entrypoint",
     .image = "--container-image={}",
     .files = ".sqsh .squashfs",
     .names = "*",
     .bind = "--container-mounts={from}:{to}",
     .env = "--container-env={}",
     .shell = kSh},
    {.name = "ce",
     .srun_option = "--environment",
     .image = "--environment={}",
     .files = ".toml",
     .names = "*",
     .elsewhere = "\"mounts\" of the environment file",
     .sees_host = true,
     .shell = kSh},
    {.name = "enroot",
     .programs = "enroot",
     .start = "start",
     .files = ".sqsh .squashfs",
     .names = "*",
     .bind = "--mount={from}:{to}:none:x-create=auto,bind",
     .env = "--env={}",
     .shell = kSh},
    // These two take the host's variables as they are, with its search paths.
    {.name = "charliecloud",
     .programs = "ch-run",
     .start = "--bind=/tmp:/tmp --unset-env=LD_* "
              "--set-env=PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
     .directory = "{} --",
     .bind = "--bind={from}:{to}",
     .shares = "/tmp /dev /proc /sys",
     .write = "--write"},
    {.name = "bubblewrap",
     .programs = "bwrap",
     .start = "--die-with-parent --unsetenv LD_LIBRARY_PATH --unsetenv LD_PRELOAD --unsetenv "
              "TMPDIR --setenv PATH "
              "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
     .image_first = true,  // its binds go on top of its root, which is one
     .directory = "--bind {} / --dev-bind /dev /dev --proc /proc --ro-bind /sys /sys",
     .bind = "--bind {from} {to}"},
    {.name = "shifter",
     .programs = "shifter",
     .image = "--image={}",
     .names = "docker: id:",
     .bind = "--volume={from}:{to}",
     .sees_host = true,
     .nvidia = "--module=gpu"},
    {.name = "sarus",
     .programs = "sarus",
     .start = "run",
     .names = "*",
     .bind = "--mount=type=bind,source={from},destination={to}"},
    {.name = "docker",
     .programs = "docker",
     .refused = "its daemon starts containers outside the job, without the job's CPUs, devices and "
                "limits"},
};

std::string replaced(std::string_view word, std::string_view what, std::string_view value) {
  std::string text(word);
  if (const std::size_t at = text.find(what); at != std::string::npos)
    text.replace(at, what.size(), value);
  return text;
}

// The words of `pattern`, each as `fill` has it.
template <class Fill>
void add(std::string_view pattern, Argv& words, Fill fill) {
  for (const std::string_view word : split(pattern, ' '))
    if (!word.empty()) words.push_back(fill(word));
}

// srun takes an option once, with a list: what follows '=' joins the last word where that is the same option.
void join_last(Argv& words, std::size_t from) {
  for (std::size_t i = words.size(); i-- > from + 1;) {
    const std::size_t equal = words[i].find('=');
    if (equal == std::string::npos || words[i - 1].compare(0, equal + 1, words[i], 0, equal + 1))
      continue;
    words[i - 1] += "," + words[i].substr(equal + 1);
    words.erase(words.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

}  // namespace

std::span<const ContainerEngine> container_engines() { return kEngines; }

const ContainerEngine* find_engine(std::string_view name) {
  for (const ContainerEngine& engine : kEngines)
    if (engine.name == name) return &engine;
  return nullptr;
}

Argv container_words(const ContainerUse& use) {
  const ContainerEngine& engine = *use.engine;
  Argv words;
  if (!use.program.empty()) words.push_back(use.program);
  const auto same = [](std::string_view word) { return std::string(word); };
  const auto image = [&](std::string_view word) { return replaced(word, "{}", use.image); };
  add(engine.start, words, same);
  if (engine.image_first) add(engine.directory, words, image);
  words.insert(words.end(), use.options.begin(), use.options.end());
  if (use.writes) add(engine.write, words, same);
  for (const ResourceLimit& limit : use.limits)
    add(engine.limit, words, [&](std::string_view word) {
      return replaced(
          replaced(replaced(word, "{name}", limit.name), "{soft}", std::to_string(limit.soft)),
          "{hard}", std::to_string(limit.hard));
    });
  const std::size_t lists = words.size();
  for (const auto& bind : use.binds)
    add(engine.bind, words, [&](std::string_view word) {
      return replaced(replaced(word, "{from}", bind.first), "{to}", bind.second);
    });
  for (const std::string& name : use.env)
    add(engine.env, words, [&](std::string_view word) { return replaced(word, "{}", name); });
  if (!engine.srun_option.empty()) join_last(words, lists);
  if (!engine.image_first) add(use.is_directory ? engine.directory : engine.image, words, image);
  return words;
}

}  // namespace hpclaunch
