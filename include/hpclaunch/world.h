#pragma once
// Everything that is asked of a machine before a launch, as one value: facts, and questions with their answers. The
// real one asks the machine; a made-up one answers from what a golden case says, and nothing of this machine gets into it.
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hpclaunch/diagnostic.h"
#include "hpclaunch/env.h"
#include "hpclaunch/golden_case.h"
#include "hpclaunch/launches.h"
#include "hpclaunch/probe.h"
#include "hpclaunch/profile.h"
#include "hpclaunch/sys.h"

namespace hpclaunch::job {

using Diagnostics = std::vector<Diagnostic>;

/// `program`: a regular file that may be executed.
enum class FileKind { nothing, file, program, directory };

/// On this machine.
FileKind file_kind(const std::string& path);

struct World {
  EnvSnapshot env;
  std::string host;              ///< this machine's name; "" where no machine is meant
  std::string user;              ///< where neither USER nor LOGNAME says it: "uid1000"
  unsigned user_id = 0;          ///< 0: root
  std::string job_id;            ///< where no variable of `env` says it; "": none
  std::string directory;         ///< where the command was typed; "" when it has been removed
  std::string installation;      ///< directory of hpclaunch; "" where no machine is meant
  std::string port_key;          ///< in place of user, directory and job; "" for those
  std::string launcher_version;  ///< of launchers that do not say theirs: "4.1.4"; "" unknown
  std::vector<std::string>
      hosts;  ///< of the job; empty: the batch system or a host file names them
  std::shared_ptr<const Profile> profile;  ///< whatever is typed or detected; nullptr: that decides
  std::string profile_why;

  // The questions, as functions of sys.h and probe.h of these names.
  std::function<Result<std::string>(const std::string& name, std::string_view path)> find_program;
  std::function<FileKind(const std::string& path)> look;
  std::function<Result<std::string>(const std::string& path, std::size_t most)> read_file;
  std::function<Result<std::vector<std::string>>(const std::string& path)> list_directory;
  std::function<std::string(const std::string& path)> real_path;
  std::function<std::string(const std::string& path)> stamp;  ///< of a file: its size and age
  std::function<Result<sys::Captured>(const std::vector<std::string>& argv, double seconds,
                                      const EnvSnapshot* env)>
      capture;
  std::function<Result<std::vector<std::string>>(const std::string& name)> resolve;
  std::function<std::vector<std::string>()> own_addresses;
  std::function<std::optional<std::string>(const std::string& name)> outward_address;
  std::function<std::pair<int, int>()> ephemeral_ports;
  std::function<Result<sys::PortClaim>(const std::vector<int>& candidates, const std::string& host)>
      claim_port;
  std::function<std::vector<RunningLaunch>()> running_launches;
  std::function<long long()> clock;  ///< UNIX time in seconds
  std::function<std::string()> affinity;
  std::function<Result<LiveNode>(double seconds, const std::function<void()>& meanwhile)>
      probe_node;
  std::function<std::vector<DeviceFile>(bool to_open)> device_files;
  std::function<Result<Topology>(const std::string& path, double seconds)> read_topology;

  bool made_up() const { return profile != nullptr; }
  Result<std::string> program(const std::string& name) const {
    return find_program(name, env.get("PATH"));
  }
  bool has(const std::string& path) const { return look(path) != FileKind::nothing; }
  bool is_directory(const std::string& path) const { return look(path) == FileKind::directory; }
  bool is_program(const std::string& path) const { return look(path) == FileKind::program; }
  /// As absolute_from of hpclaunch/paths.h, from `directory` on.
  std::string absolute(const std::string& path) const;
};

/// This machine.
World this_world(EnvSnapshot env);

/// The profile's site, or a job there. What `files` and `programs` name is there, and nothing else; a launcher that is
/// not among them is taken to be there. Nothing can be started but `NAME --version`, and no name resolves.
World made_up_world(std::shared_ptr<const Profile> profile, const CaseWorld& said = {});

}  // namespace hpclaunch::job
