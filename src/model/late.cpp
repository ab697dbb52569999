#include "hpclaunch/late.h"

#include "hpclaunch/hosts.h"

namespace hpclaunch {

namespace {

constexpr char kBegin = '\x0E';
constexpr char kEnd = '\x0F';

std::string substituted(std::string text, std::string_view old, const std::string& by) {
  for (std::size_t at = 0; (at = text.find(old, at)) != std::string::npos; at += by.size())
    text.replace(at, old.size(), by);
  return text;
}

}  // namespace

std::string stand_in(std::string_view name) { return kBegin + std::string(name) + kEnd; }

std::string with_first_host(std::string value, const std::string& host) {
  value = substituted(std::move(value), host, stand_in(kFirstHost));
  return substituted(std::move(value), short_host(host), stand_in(kShortHost));
}

std::vector<LatePart> late_parts(std::string_view value) {
  std::vector<LatePart> parts;
  const auto add = [&](std::string_view text, bool late) {
    if (!text.empty()) parts.push_back({std::string(text), late});
  };
  while (!value.empty()) {
    const std::size_t begin = value.find(kBegin);
    const std::size_t end = begin == value.npos ? begin : value.find(kEnd, begin);
    if (end == value.npos) {
      add(value, false);
      break;
    }
    add(value.substr(0, begin), false);
    add(value.substr(begin + 1, end - begin - 1), true);
    value.remove_prefix(end + 1);
  }
  return parts;
}

bool has_late(std::string_view value) {
  const std::size_t begin = value.find(kBegin);
  return begin != value.npos && value.find(kEnd, begin) != value.npos;
}

std::string late_shown(std::string_view value) {
  std::string text;
  for (const LatePart& part : late_parts(value)) {
    const bool tail = part.late && part.text.front() == ':';
    if (part.late) text += tail ? ":$" : "$";
    text += tail ? part.text.substr(1) : part.text;
  }
  return text;
}

}  // namespace hpclaunch
