#pragma once
// The colours of the pictures, for light and for dark screens.
#include <array>
#include <string_view>

namespace hpclaunch::render {

/// "#rrggbb" for each kind of screen.
struct Colour {
  std::string_view light, dark;
};

struct Ink {
  Colour fill;  ///< behind text: `text` on it has a contrast of 4.5 and more
  Colour edge;  ///< around it: a contrast of 3 and more with the page
};

struct Palette {
  Colour page, text, faint, alarm;
  Colour group, group_edge;   ///< behind packages and what is in them
  Colour cell, cell_edge;     ///< an unused core or device
  Colour closed;              ///< text of what is not allowed
  std::array<Ink, 16> ranks;  ///< of local ranks, in turn
  Ink shared, reserved, service;
};

// Hues after Okabe and Ito's set for all kinds of colour vision, without its red, which means "far" here.
// Neighbours differ in lightness as well.
inline constexpr Palette kPalette = {
    .page = {"#ffffff", "#0f1318"},
    .text = {"#1b1f24", "#f2f4f7"},
    .faint = {"#4b5563", "#b6bfca"},
    .alarm = {"#b3001b", "#ff8a8a"},
    .group = {"#f5f6f8", "#171d24"},
    .group_edge = {"#7f8896", "#6f7b8a"},
    .cell = {"#ffffff", "#1f262f"},
    .cell_edge = {"#9aa3af", "#6f7b8a"},
    .closed = {"#5b6470", "#a7b0bc"},
    .ranks = {{{{"#f6c667", "#7a4a00"}, {"#8a5a00", "#e0a030"}},
               {{"#bfe3fa", "#0d5f94"}, {"#0b6ea8", "#6fc3f5"}},
               {{"#7fd0b0", "#00472f"}, {"#00694a", "#3fb98c"}},
               {{"#d8d04a", "#6a6200"}, {"#7a6c00", "#e6d84a"}},
               {{"#9db8f5", "#27388a"}, {"#2f4fae", "#8fa6ff"}},
               {{"#f7d3e8", "#8a3a6c"}, {"#a3407f", "#f09aca"}},
               {{"#c9a27e", "#4a2f18"}, {"#6b4423", "#c98f5c"}},
               {{"#b8dc80", "#2e6f73"}, {"#4f7a12", "#7fd4d8"}},
               {{"#e59aa8", "#6b2036"}, {"#a03050", "#f0879f"}},
               {{"#e6e2f7", "#4f4f8f"}, {"#5d5aa8", "#b3b0f0"}},
               {{"#ffdcc0", "#7d4a33"}, {"#a0522d", "#f2b08c"}},
               {{"#5fc3d6", "#054a5a"}, {"#00687c", "#45b8d0"}},
               {{"#a9cc5c", "#3a4d00"}, {"#557000", "#a9d040"}},
               {{"#8fe6d0", "#1f5d3a"}, {"#1b7a4a", "#7fe0a8"}},
               {{"#b48ae0", "#4b2a7a"}, {"#6a3fa8", "#b98cf0"}},
               {{"#9aa9ae", "#33505c"}, {"#3f6575", "#9fc0ce"}}}},
    .shared = {{"#d5d9e0", "#46505e"}, {"#4b5563", "#b6bfca"}},
    .reserved = {{"#e2e2e2", "#3a3a3a"}, {"#555555", "#a0a0a0"}},
    .service = {{"#ece4fb", "#46307f"}, {"#6b46c1", "#b79df5"}},
};

}  // namespace hpclaunch::render
