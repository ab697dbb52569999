// Scenes on a terminal: frames of box characters, one cell per core.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "render/palette.h"
#include "render/ranks.h"
#include "render/scene.h"
#include "render/text.h"

namespace hpclaunch::render {

namespace {

int column_width(std::string_view text, int, bool) { return columns(text); }

Metrics terminal_metrics(const Style& style, const Subject& subject) {
  const int most = subject.ranks == nullptr ? subject.node->all_pus().last()
                                            : static_cast<int>(subject.ranks->ranks.size()) - 1;
  Metrics metrics;
  metrics.width = std::max(style.width, 60);
  metrics.core_w = std::max(columns(fmt::format("{}", most)), 2);
  metrics.measure = column_width;
  metrics.dots = style.unicode ? "…" : "~";
  return metrics;
}

/// Columns and lines of one character each; a character that takes two columns has "" after it.
class Canvas {
 public:
  Canvas(int w, int h) : cells_(static_cast<std::size_t>(h)) {
    for (auto& line : cells_) line.assign(static_cast<std::size_t>(w), Cell{" ", ""});
  }

  /// `tint`: numbers of an SGR sequence, or "". What takes no column of its own joins the one before it.
  void write(int x, int y, std::string_view text, const std::string& tint = "") {
    while (!text.empty()) {
      const std::string_view one = take_unit(text);
      const int w = columns(one);
      if (Cell* before = w == 0 ? at(x - 1, y) : nullptr) before->text += one;
      for (int i = 0; i < w; ++i)
        if (Cell* cell = at(x + i, y)) *cell = {std::string(i == 0 ? one : ""), tint};
      x += w;
    }
  }

  std::string text() const {
    std::string out;
    for (const auto& line : cells_) {
      auto end = line.size();
      while (end > 0 && line[end - 1].text == " " && line[end - 1].tint.empty()) --end;
      std::string tint;
      for (std::size_t i = 0; i < end; ++i) {
        if (line[i].tint != tint)
          out += fmt::format("\033[0{}m", (line[i].tint.empty() ? "" : ";") + line[i].tint);
        tint = line[i].tint;
        out += line[i].text;
      }
      out += tint.empty() ? "\n" : "\033[0m\n";
    }
    return out;
  }

 private:
  struct Cell {
    std::string text;
    std::string tint;
  };
  Cell* at(int x, int y) {
    const auto row = static_cast<std::size_t>(y);
    const auto column = static_cast<std::size_t>(x);
    if (x < 0 || y < 0 || row >= cells_.size() || column >= cells_[row].size()) return nullptr;
    return &cells_[row][column];
  }
  std::vector<std::vector<Cell>> cells_;
};

struct Strokes {
  std::string_view across, down, corners[4];
};
constexpr Strokes kBox{"─", "│", {"┌", "┐", "└", "┘"}};
constexpr Strokes kPlain{"-", "|", {"+", "+", "+", "+"}};

void frame(const Box& box, const Strokes& strokes, Canvas& canvas) {
  for (int y = 0; y < box.h; ++y)
    for (int x = 0; x < box.w; ++x) {
      const bool side = x == 0 || x == box.w - 1;
      const bool edge = y == 0 || y == box.h - 1;
      const std::string_view corner = strokes.corners[(y > 0 ? 2 : 0) + (x > 0 ? 1 : 0)];
      if (side || edge)
        canvas.write(box.x + x, box.y + y,
                     side && edge ? corner
                     : edge       ? strokes.across
                                  : strokes.down);
    }
}

/// The colour nearest to "#rrggbb" in the 6x6x6 cube of a terminal with 256 colours.
int cube_colour(std::string_view hex) {
  int colour = 16;
  for (const auto& [at, weight] : {std::pair{1U, 36}, {3U, 6}, {5U, 1}}) {
    const int value = std::stoi(std::string(hex.substr(at, 2)), nullptr, 16);
    colour += weight * (value < 48 ? 0 : value < 115 ? 1 : (value - 35) / 40);
  }
  return colour;
}

/// What a terminal adds to the text of a box; "" for nothing. Black on these backgrounds reads well, whether
/// the terminal is light or dark.
std::string tint_of(const Box& box, const Style& style) {
  constexpr int kBacks[] = {43, 46, 42, 45, 47};
  if (!style.color || (box.what != What::core && box.what != What::unit)) return "";
  if (box.far()) return "1;37;41";
  if (box.look.paint == Paint::shared) return "7";
  if (box.look.paint != Paint::rank) return "";
  const std::size_t tone = box.look.tone();
  if (!style.rich) return fmt::format("30;{}", kBacks[tone % std::size(kBacks)]);
  return fmt::format("38;5;16;48;5;{}",
                     cube_colour(kPalette.ranks[tone % kPalette.ranks.size()].fill.light));
}

std::string machine_picture(const Scene& scene, const Style& style) {
  Canvas canvas(scene.w, scene.h);
  for (const Box& box : scene.boxes) {
    if (box.what == What::group) frame(box, style.unicode ? kBox : kPlain, canvas);
    const bool in_frame = box.what == What::group;
    for (const Text& text : box.texts) {
      const bool on_border = in_frame && text.y == box.y;
      canvas.write(on_border ? text.x - 1 : text.x, text.y,
                   on_border ? " " + text.text + " " : text.text, tint_of(box, style));
    }
  }
  for (const Text& text : scene.texts) canvas.write(text.x, text.y, text.text, "");
  return canvas.text();
}

std::string lines(const std::string& text, const Style& style, bool strong = false) {
  std::string out;
  for (const std::string& line : flow(text, style.width))
    out += (strong ? tinted(line, Tone::strong, style) : line) + "\n";
  return out;
}

/// What the cells mean, as far as they occur.
std::string legend(const Subject& subject, const Scene& scene) {
  const bool bare = subject.ranks == nullptr;
  const auto has = [&](Paint paint) {
    return std::any_of(scene.boxes.begin(), scene.boxes.end(), [&](const Box& box) {
      return box.what == What::core && box.look.paint == paint;
    });
  };
  std::string text = bare ? "Each cell is a core: its first CPU" : "Each cell is a core: its rank";
  if (has(Paint::plain) && !bare) text += ", . unused";
  if (has(Paint::shared)) text += ", * or a number before it: several ranks";
  if (has(Paint::reserved)) text += ", s reserved for the system";
  if (has(Paint::service)) text += ", v a service";
  if (has(Paint::closed)) text += ", x not allowed";
  return text;
}

std::string one_picture(const Subject& subject, const Style& style) {
  std::string out;
  if (!subject.title.empty()) out += lines(subject.title, style, true);
  out += lines(machine_words(subject), style);
  const std::string well = locality_text(subject);
  if (!well.empty()) out += lines(well, style, well.find("FAR") != std::string::npos);
  const Scene scene = lay_out(subject, terminal_metrics(style, subject));
  out += "\n" + machine_picture(scene, style) + "\n";
  out += lines(legend(subject, scene), style);
  for (const std::string& text : far_words(subject)) out += lines(text, style, true);
  for (const std::string& text : link_words(*subject.node)) out += lines(text, style);
  return out;
}

}  // namespace
}  // namespace hpclaunch::render

namespace hpclaunch {

std::string topology_picture(const Topology& topology, const Style& style) {
  return render::one_picture(render::subject_of(topology), style);
}

std::string plan_picture(const Plan& plan, const Topology& topology, const PictureMarks& marks,
                         const Style& style) {
  std::string text;
  for (const render::Subject& subject : render::subjects_of(plan, topology, marks))
    text += (text.empty() ? "" : "\n") + render::one_picture(subject, style);
  return text;
}

}  // namespace hpclaunch
