// Programs that choose their device by themselves, in a wrapper script or in Python:
//   export CUDA_VISIBLE_DEVICES=$PMI_LOCAL_RANK
// Where the cores are numbered the other way round, each rank takes the device that is farthest.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "hpclaunch/device_vendor.h"
#include "hpclaunch/launcher.h"
#include "hpclaunch/text.h"
#include "world/programs.h"

namespace hpclaunch::job {

namespace {

constexpr std::size_t kMostOfText = 256u << 10;

struct OwnMask {
  std::string_view variable;
  int line = 0;
  bool backwards = false;  // the highest device first
};

std::string_view trimmed_name(std::string_view text) {
  constexpr std::string_view kAround = " \t\"'[](){}$;";
  const std::size_t begin = text.find_first_not_of(kAround);
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(kAround) + 1 - begin);
}

// The last assignment of a device mask from the local rank, also by one variable between them.
std::optional<OwnMask> find_mask(std::string_view text) {
  std::optional<OwnMask> found;
  std::map<std::string, std::string, std::less<>> values;
  int number = 0;
  for (const std::string_view raw : split(text, '\n')) {
    ++number;
    const std::string_view line = trim(raw);
    const std::size_t equals = line.find('=');
    if (line.starts_with('#') || equals == line.npos || equals == 0 ||
        line.substr(equals).starts_with("=="))
      continue;
    const std::string_view target = trimmed_name(line.substr(0, equals));
    std::string value(line.substr(equals + 1));
    if (const auto known = values.find(trimmed_name(value)); known != values.end())
      value = known->second;
    const auto is_target = [&](std::string_view mask) {
      return !mask.empty() && target.ends_with(mask);  // "export NAME", os.environ["NAME"]
    };
    const auto& masks = device_masks();
    const auto mask = std::ranges::find_if(masks, is_target);
    const std::size_t rank = find_local_rank(value);
    if (mask == masks.end())
      values[std::string(target.substr(target.rfind(' ') + 1))] = value;
    else if (rank != value.npos)
      found = OwnMask{*mask, number, value.substr(0, rank).find('-') != value.npos};
  }
  return found;
}

// A program that is a script, or the script of an interpreter.
std::optional<std::string> script_text(const std::string& word, const World& world) {
  if (word.starts_with('-') || word.find('=') != std::string::npos) return std::nullopt;
  if (word.find('/') == std::string::npos && !word.ends_with(".py") && !word.ends_with(".sh"))
    return std::nullopt;
  Result<std::string> text = world.read_file(world.absolute(word), kMostOfText);
  const bool is_script = word.ends_with(".py") || word.ends_with(".sh");
  if (!text || (!is_script && !text->starts_with("#!"))) return std::nullopt;
  return *std::move(text);
}

}  // namespace

void check_own_mask(const Request& request, const Plan& plan, const World& world,
                    Diagnostics& diagnostics) {
  constexpr std::size_t kWords = 4;  // wrapper, interpreter, script
  const std::vector<std::string>& words = request.command;
  if (request.agent || plan.placement.classes.empty()) return;
  const std::vector<RankPlan>& ranks = plan.placement.classes.front().ranks;
  const int devices = 1 + std::ranges::max(ranks, {}, &RankPlan::device).device();
  if (devices < 2) return;
  for (std::size_t i = 0; i < std::min(kWords, words.size()); ++i) {
    const auto text = script_text(words[i], world);
    if (!text) continue;
    const auto mask = find_mask(*text);
    if (!mask) continue;
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      const int own = static_cast<int>(r) % devices;
      const int takes = mask->backwards ? devices - 1 - own : own;
      if (takes == ranks[r].device()) continue;
      diagnostics.push_back(
          {"program-sets-devices", Severity::warning,
           fmt::format("{} sets {} from the local rank (line {}): rank {} takes device {}, and "
                       "device {} is beside its cores",
                       words[i], mask->variable, mask->line, r, takes, ranks[r].device()),
           fmt::format("omit line {} of it: --gpu-view own sets the nearest device", mask->line)});
      return;
    }
  }
}

}  // namespace hpclaunch::job
