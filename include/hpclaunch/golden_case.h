#pragma once
// A golden case of a profile. docs/reference/profile-format.md, expect.
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "hpclaunch/result.h"

namespace hpclaunch {

/// What a golden case says of the machine and the job that it is for; nothing of this machine is added.
struct CaseWorld {
  std::map<std::string, std::string> env;       ///< exported
  std::vector<std::string> hosts;               ///< of the job; made up when fewer than the nodes
  std::map<std::string, std::string> programs;  ///< on PATH: name, what `NAME --version` prints
  std::map<std::string, std::string> files;     ///< that are there: absolute path, text
  std::string launcher_version;                 ///< "4.1.4"; "": its launcher does not say it
  std::string user;                             ///< "" for USER of `env`, else "user"
  std::string job_id;                           ///< in a job of the profile's batch system
};

/// The expected plan of a command line.
struct Case : CaseWorld {
  std::string name;
  std::string doc;
  std::vector<std::string> options;              ///< as typed after `hpclaunch run`
  std::vector<std::string> program;              ///< "python train.py" when absent
  std::optional<std::vector<std::string>> argv;  ///< launch line before the shim, [0] by base name
  std::vector<std::string> argv_has;             ///< each is one argument of it
  std::vector<std::string> argv_lacks;
  std::optional<std::string> cpus;                ///< lists of the first node's ranks, ':' between
  std::optional<std::string> devices;             ///< units of the first node's ranks, ':' between
  std::map<std::string, std::string> set;         ///< the same on every rank
  std::map<std::string, std::string> per_rank;    ///< on the first node, ':' between ranks
  std::vector<std::string> absent;                ///< variables that the plan leaves out or removes
  std::optional<std::vector<std::string>> batch;  ///< directives; empty: there are none
  std::optional<std::string> core_limit;
  std::optional<std::vector<std::string>> make_dirs;  ///< empty: none
  std::optional<std::vector<std::string>> reports;    ///< ids of rules that report; empty: none
  std::optional<std::string> refused;                 ///< part of the refusal's message
  Origin origin;
};

}  // namespace hpclaunch
