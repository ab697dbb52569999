#pragma once
// The colours of the pictures, for light and for dark screens.
#include <array>
#include <string_view>

namespace hpclaunch::render {

/// "#rrggbb" each.
struct Ink {
  std::string_view fill;  ///< behind text: `text` on it has a contrast of 4.5 and more
  std::string_view edge;  ///< around it: a contrast of 3 and more with the page
};

struct Palette {
  std::string_view page, text, faint, alarm;
  std::string_view group, group_edge;  ///< behind packages and what is in them
  std::string_view cell, cell_edge;    ///< an unused core or device
  std::string_view closed;             ///< text of what is not allowed
  std::array<Ink, 8> ranks;            ///< of local ranks, in turn
  Ink shared, reserved, service;
};

// Hues after Okabe and Ito's set for all kinds of colour vision, without its red, which means "far" here.
// Neighbours differ in lightness as well.
inline constexpr Palette kLight = {"#ffffff",
                                   "#1b1f24",
                                   "#4b5563",
                                   "#b3001b",
                                   "#f5f6f8",
                                   "#7f8896",
                                   "#ffffff",
                                   "#9aa3af",
                                   "#5b6470",
                                   {{{"#f6c667", "#8a5a00"},
                                     {"#bfe3fa", "#0b6ea8"},
                                     {"#7fd0b0", "#00694a"},
                                     {"#fbf3a6", "#7a6c00"},
                                     {"#9db8f5", "#2f4fae"},
                                     {"#f7d3e8", "#a3407f"},
                                     {"#c9a27e", "#6b4423"},
                                     {"#dcefb4", "#4f7a12"}}},
                                   {"#d5d9e0", "#4b5563"},
                                   {"#e2e2e2", "#555555"},
                                   {"#ece4fb", "#6b46c1"}};

inline constexpr Palette kDark = {"#0f1318",
                                  "#f2f4f7",
                                  "#b6bfca",
                                  "#ff8a8a",
                                  "#171d24",
                                  "#6f7b8a",
                                  "#1f262f",
                                  "#6f7b8a",
                                  "#a7b0bc",
                                  {{{"#7a4a00", "#e0a030"},
                                    {"#0d5f94", "#6fc3f5"},
                                    {"#00472f", "#3fb98c"},
                                    {"#6a6200", "#e6d84a"},
                                    {"#27388a", "#8fa6ff"},
                                    {"#8a3a6c", "#f09aca"},
                                    {"#4a2f18", "#c98f5c"},
                                    {"#2e6f73", "#7fd4d8"}}},
                                  {"#46505e", "#b6bfca"},
                                  {"#3a3a3a", "#a0a0a0"},
                                  {"#46307f", "#b79df5"}};

}  // namespace hpclaunch::render
