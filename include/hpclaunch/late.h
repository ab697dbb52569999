#pragma once
// A plan may be made before its job runs. What only the job knows is then a stand-in in a value: "/tmp/$USER-cache" for
// people to read, an expression of a shell in a text that runs in the job.
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace hpclaunch {

struct Scheduler;

/// The stand-in for a variable of the job: "USER". It is between two control bytes, which no text has by accident.
std::string stand_in(std::string_view name);

/// The stand-in for what `name` has in the job, behind a ':'; for nothing where that is empty.
inline std::string stand_in_behind(std::string_view name) {
  return stand_in(":" + std::string(name));
}

/// Stand-ins for the job's first host, and for its name without domain.
inline constexpr const char* kFirstHost = "HPCLAUNCH_FIRST_HOST";
inline constexpr const char* kShortHost = "HPCLAUNCH_SHORT_HOST";

/// `value` with them in place of `host`, an invented one.
std::string with_first_host(std::string value, const std::string& host);

/// A stretch of a value: text, or the name of a stand-in.
struct LatePart {
  std::string text;
  bool late = false;
  friend bool operator==(const LatePart&, const LatePart&) = default;
};

/// In order, none empty.
std::vector<LatePart> late_parts(std::string_view value);

bool has_late(std::string_view value);

/// "/opt/lib:$LD_LIBRARY_PATH"
std::string late_shown(std::string_view value);

/// What a text finds out in its job, where the plan was made before it. The plan has what people read: "$USER".
struct Late {
  const Scheduler* system = nullptr;  ///< of the job; nullptr: not known
  std::string job;                    ///< "Slurm job"; "" where it is not known
  std::vector<std::string> hosts;     ///< invented ones: the first and, if there is one, the second
  std::map<std::string, std::string> values;  ///< of variables, with stand-ins
  std::string wire;                           ///< Plan::wire with them
  std::vector<std::string> argv;              ///< the launch line with them
  std::vector<std::string> options;  ///< that conditions of the profile chose: "--stack NAME"
};

}  // namespace hpclaunch
