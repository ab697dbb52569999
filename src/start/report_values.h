#pragma once
// Of the JSON of --report, also of an earlier hpclaunch: what it lacks is "", 0 or null.
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace hpclaunch::job::report_values {

using Json = nlohmann::ordered_json;
using Lines = std::vector<std::string>;

constexpr std::size_t kWidth = 100, kMostLines = 25, kKey = 10;
constexpr std::size_t kRoom = kWidth - kKey;
constexpr long kOutputLost = 125, kTimedOut = 124;  // docs/reference/supervise.md

inline const Json& at(const Json& json, const char* key) {
  static const Json kNone;
  const auto found = json.is_object() ? json.find(key) : json.end();
  return json.is_object() && found != json.end() ? *found : kNone;
}

// What a terminal would take for a command becomes '?'; only its first line.
inline std::string printable(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size() && text[i] != '\n'; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const bool c1 =
        byte == 0xc2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xa0;
    if (c1) ++i;
    out += byte < ' ' || byte == 0x7f || c1 ? '?' : text[i];
  }
  return out;
}

inline std::string text_of(const Json& json, const char* key) {
  const Json& value = at(json, key);
  return value.is_string() ? printable(value.get<std::string>()) : "";
}

inline long number_of(const Json& json, const char* key) {
  const Json& value = at(json, key);
  return value.is_number_integer() ? value.get<long>() : 0;
}

inline double seconds_of(const Json& json) {
  const Json& value = at(json, "seconds");
  return value.is_number() ? value.get<double>() : 0;
}

inline Lines texts_of(const Json& json, const char* key) {
  Lines texts;
  if (const Json& list = at(json, key); list.is_array())
    for (const Json& one : list)
      if (one.is_string()) texts.push_back(printable(one.get<std::string>()));
  return texts;
}

/// What to type, as lines of a shell.
Lines next(const Json& record);

}  // namespace hpclaunch::job::report_values
