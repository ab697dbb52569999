#pragma once
// --stage: software copied to every node before the program starts. Here, which way of it; the room `start` does it.
#include <optional>
#include <string>

#include "world/site.h"

namespace hpclaunch::job {

/// What is known before the choice.
struct StageFacts {
  int nodes = 1;
  bool requirements = false;  ///< the source is a requirements file
  std::string source;         ///< "" for none
  bool tree = false;          ///< the source is a directory
  std::string no_sbcast;      ///< why sbcast cannot be used; "": it can
  bool copper = false;        ///< its start script is on PATH
};

struct StageMethod {
  std::string name;  ///< "none", "sbcast", "copy", "venv", "copper"
  std::string why;
};

/// `typed`: --stage. Errors: `usage` for a method that cannot be used here.
Result<StageMethod> choose_stage(const std::string& typed, const StageFacts& facts);

struct ChosenStage {
  Stage stage;                    ///< without a method: none
  std::optional<Setting> choice;  ///< for the plan; nullopt where --stage is not typed
};

/// In a world whose environment is activated. Errors: as choose_stage; `not_found` for the source.
Result<ChosenStage> find_stage(const Request& request, const Site& site, const World& world);

/// What to type for staging that helps here: "--stage sbcast".
std::string useful_stage(const Request& request, const Site& site, const World& world);

/// `env` with the paths of the old environment replaced by those of the staged one, which is active.
EnvSnapshot staged_environment(const EnvSnapshot& env, const Stage& stage);

/// `resolved` where it is staged; a bare name for a program that was not found.
std::string staged_program(const std::string& typed, const std::string& resolved,
                           const Stage& stage);

}  // namespace hpclaunch::job
