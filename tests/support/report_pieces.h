#pragma once
// A rank's report in pieces, as the shim writes it.
#include <fmt/format.h>

#include <string>
#include <string_view>

#include "hpclaunch/rank_report.h"

inline std::string pieces_of(const std::string& sender, std::string_view json) {
  constexpr std::size_t kNumbers = 24;
  const std::size_t room =
      hpclaunch::kReportPiece - hpclaunch::kReportMark.size() - sender.size() - kNumbers;
  const std::size_t count = (json.size() + room - 1) / room;
  std::string lines;
  for (std::size_t k = 0; k < count; ++k) {
    const std::string_view piece = json.substr(k * room, room);
    lines += fmt::format("{}{} {}/{} {} {}\n", hpclaunch::kReportMark, sender, k + 1, count,
                         piece.size(), piece);
  }
  return lines;
}
