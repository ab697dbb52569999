// Scenes as one SVG document: <https://www.w3.org/TR/SVG2/>. No scripts, no fonts, no links.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "hpclaunch/text.h"
#include "render/palette.h"
#include "render/ranks.h"
#include "render/scene.h"
#include "render/text.h"

namespace hpclaunch::render {

int svg_text_width(std::string_view text, int size, bool strong) {
  constexpr std::string_view kNarrow = "ijlfrtI.,:;'|!()[]/- ";
  constexpr std::string_view kWide = "MWmw@%&+#~<=>OQ";
  int hundredths = 0;
  while (!text.empty()) {
    const std::string_view unit = take_unit(text);
    const char c = unit.front();
    if (unit.size() > 1)
      hundredths += columns(unit) * 105;
    else if (kNarrow.find(c) != std::string_view::npos)
      hundredths += c == 't' || c == 'r' || c == 'f' || c == '(' || c == ')' ? 42 : 37;
    else if (kWide.find(c) != std::string_view::npos)
      hundredths += 100;
    else
      hundredths += c >= 'A' && c <= 'Z' ? 78 : 64;
  }
  if (strong) hundredths += hundredths * 9 / 100;
  constexpr int kHundred = 100;
  return (hundredths * size + kHundred - 1) / kHundred;
}

Metrics svg_metrics() {
  return {.width = 1000,
          .pad_x = 10,
          .pad_y = 10,
          .head = 26,
          .head_line = 16,
          .head_base = 18,
          .name_w = 140,
          .gap_x = 10,
          .gap_y = 10,
          .core_gap = 4,
          .row_gap = 6,
          .pu_w = 26,
          .pu_h = 15,
          .bar_h = 18,
          .device_least = 128,
          .device_most = 190,
          .nic_least = 88,
          .nic_most = 130,
          .box_pad = 8,
          .box_pad_y = 8,
          .line_h = 14,
          .line_base = 13,
          .unit_w = 36,
          .unit_h = 20,
          .unit_gap = 4,
          .unit_name_h = 14,
          .unit_base = 6,
          .font = 12,
          .small = 10,
          .measure = svg_text_width,
          .dots = "…"};
}

namespace {

constexpr int kMargin = 20;
constexpr int kTitle = 18, kLine = 14;
constexpr std::size_t kMostLeads = 24;  ///< more lines than this hide what lies below them

/// <https://www.w3.org/TR/xml/#charsets>: XML excludes two characters that `printable` keeps.
std::string escaped(std::string_view text) {
  const std::string safe = printable(text);
  std::string out;
  for (std::string_view rest = safe; !rest.empty();) {
    const std::string_view unit = take_unit(rest);
    out += unit == "\xEF\xBF\xBE" || unit == "\xEF\xBF\xBF" ? "\xEF\xBF\xBD" : unit;
  }
  return replaced(out, {{'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}});
}

std::string colours(std::string_view Colour::*screen) {
  constexpr const Palette& p = kPalette;
  std::string css = fmt::format(
      ".page{{fill:{0}}}.t{{fill:{1}}}.faint{{fill:{2}}}.alarm{{fill:{3}}}"
      ".group{{fill:{4};stroke:{5}}}.cell{{fill:{6};stroke:{7}}}.dev{{fill:{6};stroke:{5}}}"
      ".closed{{fill:{4};stroke:{7}}}.hatch{{stroke:{8}}}.xt{{fill:{8}}}"
      ".arc{{fill:none;stroke:{2}}}.far{{stroke:{3}}}.lead{{stroke:{3}}}.halo{{stroke:{0}}}.dot{{"
      "fill:{3}}}\n",
      p.page.*screen, p.text.*screen, p.faint.*screen, p.alarm.*screen, p.group.*screen,
      p.group_edge.*screen, p.cell.*screen, p.cell_edge.*screen, p.closed.*screen);
  const auto ink = [&](const std::string& name, const Ink& one) {
    css += fmt::format(".{}{{fill:{};stroke:{}}}", name, one.fill.*screen, one.edge.*screen);
  };
  for (std::size_t i = 0; i < p.ranks.size(); ++i) ink(fmt::format("r{}", i), p.ranks[i]);
  ink("shared", p.shared);
  ink("sys", p.reserved);
  ink("svc", p.service);
  return css + "\n";
}

std::string style() {
  return "<style>\n"
         "text{font-family:system-ui,-apple-system,'Segoe UI','Liberation Sans','DejaVu "
         "Sans',sans-serif;font-variant-numeric:tabular-nums;pointer-events:none}\n"
         ".b{font-weight:600}.m{text-anchor:middle}\n"
         ".far{fill:none;stroke-width:2.5}.lead,.halo{fill:none;stroke-width:2;"
         "stroke-dasharray:7 4}.halo{stroke-width:5;stroke-dasharray:none}.hatch{fill:none}"
         ".dash{stroke-dasharray:5 4}.stripes{fill:url(#stripes);opacity:.35}\n" +
         colours(&Colour::light) + "@media (prefers-color-scheme:dark){\n" +
         colours(&Colour::dark) +
         "}\n</style>\n"
         "<defs><pattern id=\"stripes\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\">"
         "<path class=\"hatch\" d=\"M0 6L6 0\"/></pattern></defs>\n";
}

std::string paint_class(const Box& box) {
  constexpr const char* kClasses[] = {"cell", "r", "shared", "closed", "sys", "svc"};  // by Paint
  std::string name = kClasses[static_cast<std::size_t>(box.look.paint)];
  if (box.look.paint == Paint::rank)
    return fmt::format("{}{}", name, box.look.tone() % kPalette.ranks.size());
  if (box.look.paint != Paint::plain) return name;
  return box.what == What::group ? "group" : box.what == What::device ? "dev" : name;
}

int radius(What what) {
  constexpr int kRadii[] = {0, 8, 3, 0, 0, 6, 3, 6, 3};  // by What
  return kRadii[static_cast<std::size_t>(what)];
}

std::string text_of(const Text& text, std::string_view extra = "t") {
  std::string classes(text.alarm ? "alarm" : extra);
  if (text.strong) classes += " b";
  if (text.middle) classes += " m";
  return fmt::format("<text class=\"{}\" x=\"{}\" y=\"{}\" font-size=\"{}\">{}</text>\n", classes,
                     text.x, text.y, text.size, escaped(text.text));
}

std::string rectangle(std::string_view classes, const Box& box) {
  const int round = radius(box.what);
  const std::string corner = round > 0 ? fmt::format(" rx=\"{}\"", round) : "";
  return fmt::format("<rect class=\"{}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"{}/>", classes,
                     box.x, box.y, box.w, box.h, corner);
}

/// One box; what it means is its title, which browsers show under the pointer.
std::string drawn(const Box& box) {
  if (box.what == What::node || box.what == What::core) return "";
  std::string out = "<g>";
  if (!box.tip.empty()) out += fmt::format("<title>{}</title>", escaped(box.tip));
  out += rectangle(paint_class(box), box);
  const bool striped = box.look.paint == Paint::closed || (box.far() && box.what == What::unit);
  if (striped) out += rectangle("stripes", box);
  if (box.far()) out += rectangle("far", box);
  return out + "</g>\n";
}

std::string texts_of(const Box& box) {
  std::string out;
  for (const Text& text : box.texts)
    out += text_of(text, box.look.paint == Paint::closed ? "xt" : "t");
  return out;
}

std::string drawn(const Lead& lead) {
  const auto& [x1, y1, x2, y2, tip] = lead;
  const int middle = (y1 + y2) / 2;
  const std::string path =
      fmt::format("M{} {}C{} {} {} {} {} {}", x1, y1, x1, middle, x2, middle, x2, y2);
  return fmt::format(
      "<g><title>{}</title><path class=\"halo\" d=\"{}\"/><path class=\"lead\" d=\"{}\"/>"
      "<circle class=\"dot\" cx=\"{}\" cy=\"{}\" r=\"4\"/><circle class=\"dot\" cx=\"{}\" "
      "cy=\"{}\" r=\"4\"/></g>\n",
      escaped(tip), path, path, x1, y1, x2, y2);
}

// ---- around the machine --------------------------------------------------------------------------

struct Page {
  std::string body;
  int width = 560;  ///< without margins
  int y = kMargin;
};

/// `text` in lines that are no wider than the page; `classes` end in " b" where it is bold.
void paragraph(Page& page, const std::string& text, std::string_view classes = "t",
               int size = kLine) {
  const auto measure = [&](std::string_view one) {
    return svg_text_width(one, size, classes.ends_with(" b"));
  };
  for (const std::string& one : flow(text, page.width, measure)) {
    if (one.empty()) continue;
    page.y += size + 4;
    page.body += text_of({kMargin, page.y, size, false, false, false, one}, classes);
  }
}

struct Key {
  Paint paint;
  bool far;
  std::string sample;
  std::string meaning;
};

/// What the picture has, of everything that needs an explanation.
std::vector<Key> keys_of(const Scene& scene, const Subject& subject) {
  std::vector<std::string> services;
  for (const PictureMarks::Service& service : subject.marks.services)
    services.push_back(printable(service.name));
  std::vector<Key> keys = {
      {Paint::plain, false, "12", "hardware thread, by CPU number"},
      {Paint::rank, false, "3", "rank, by number"},
      {Paint::shared, false, "0,4", "shared by several ranks"},
      {Paint::reserved, false, "sys", "reserved for the system"},
      {Paint::service, false, "svc", fmt::format("service: {}", joined(services, ", "))},
      {Paint::closed, false, "", "not allowed"},
      {Paint::plain, true, "FAR", "far from its rank"}};
  std::erase_if(keys, [&](const Key& key) {
    return std::none_of(scene.boxes.begin(), scene.boxes.end(), [&](const Box& box) {
      return key.far ? box.far() : box.look.paint == key.paint;
    });
  });
  return keys;
}

void legend(Page& page, const Scene& scene, const Subject& subject) {
  constexpr int kCell = 30, kHigh = 16, kGap = 18;
  int x = 0;
  page.y += kGap / 2;
  for (const Key& key : keys_of(scene, subject)) {
    const int w = kCell + 6 + svg_text_width(key.meaning, 12, false);
    if (x > 0 && x + w > page.width) {
      x = 0;
      page.y += kHigh + 6;
    }
    Box box{What::bar, kMargin + x, page.y, kCell, kHigh};
    box.look = {key.paint, {0}, "", key.far ? std::set{0} : std::set<int>()};
    if (!key.sample.empty())
      box.texts.push_back({box.x + kCell / 2, box.y + 12, 10, true, true, key.far, key.sample});
    page.body += drawn(box) + texts_of(box);
    const Text text{kMargin + x + kCell + 6, page.y + 12, 12, false, false, false, key.meaning};
    page.body += text_of(text, "faint");
    x += w + kGap;
  }
  page.y += kHigh;
}

constexpr std::string_view kStrong = "t b", kAlarm = "alarm b";

/// Links between devices as half ellipses over a row of their numbers, thicker with more lanes, dashed where the
/// kind is not the first one's. Nothing where the page is too narrow: link_words lists them.
void links(Page& page, const Topology& node) {
  constexpr int kLeast = 24, kMost = 56, kRadius = 11, kHigh = 90, kWidest = 3;
  std::map<int, int> at;  // device -> x
  for (const Link& link : node.links) at[link.from] = at[link.to] = 0;
  const int count = static_cast<int>(at.size());
  if (count < 2 || count * kLeast > page.width) return;
  const int step = std::min(kMost, page.width / count);
  int x = kMargin + step / 2;
  for (auto& [device, place] : at) place = std::exchange(x, x + step);
  const auto rise = [&](const Link& link) {
    return std::max(kHigh / 6, kHigh * (at[link.to] - at[link.from]) / (step * (count - 1)));
  };
  int high = kRadius;
  for (const Link& link : node.links) high = std::max(high, rise(link));
  const auto [least, most] = std::ranges::minmax(node.links, {}, &Link::lanes);
  page.y += kLine + high + 4;
  for (const Link& link : node.links)
    page.body += fmt::format(
        "<path class=\"{}\" stroke-width=\"{}\" d=\"M{} {}A{} {} 0 0 1 {} {}\"><title>{} between "
        "devices {} and {}, {}</title></path>\n",
        link.kind == node.links.front().kind ? "arc" : "arc dash",
        least.lanes == most.lanes
            ? 2
            : 1 + kWidest * (link.lanes - least.lanes) / (most.lanes - least.lanes),
        at[link.from], page.y, (at[link.to] - at[link.from] + 1) / 2, rise(link), at[link.to],
        page.y, escaped(link.kind), link.from, link.to, counted(link.lanes, "lane"));
  for (const auto& [device, place] : at) {
    page.body +=
        fmt::format("<circle class=\"dev\" cx=\"{}\" cy=\"{}\" r=\"{}\"/>", place, page.y, kRadius);
    const Text name{place, page.y + 4, 10, true, true, false, fmt::format("{}", device)};
    page.body += text_of(name);
  }
  page.y += kRadius + 2;
}

void below(Page& page, const Scene& scene, const Subject& subject) {
  if (scene.leads.size() > kMostLeads)
    paragraph(page,
              fmt::format("{} ranks are far from a device: marked without lines",
                          far_uses(subject).size()),
              kAlarm);
  for (const std::string& text : far_words(subject)) paragraph(page, text, kAlarm);
  links(page, *subject.node);
  for (const std::string& text : link_words(*subject.node)) paragraph(page, text);
}

void node_picture(Page& page, const Subject& subject, const Scene& scene) {
  if (!subject.title.empty()) paragraph(page, subject.title, kStrong);
  paragraph(page, machine_words(subject), "faint");
  if (const std::string text = locality_text(subject); !text.empty())
    paragraph(page, text, text.find("FAR") == std::string::npos ? kStrong : kAlarm);
  page.y += kLine;
  page.body += "<g>\n";
  Scene here;
  here.add(kMargin, page.y, scene);
  for (const Box& box : here.boxes) page.body += drawn(box);
  if (here.leads.size() <= kMostLeads)
    for (const Lead& one : here.leads) page.body += drawn(one);
  for (const Box& box : here.boxes) page.body += texts_of(box);
  for (const Text& text : here.texts) page.body += text_of(text, "faint");
  page.body += "</g>\n";
  page.y += scene.h;
  legend(page, scene, subject);
  below(page, scene, subject);
}

std::string document(const std::string& title, const std::vector<Subject>& subjects) {
  Page page;
  std::vector<Scene> scenes;
  scenes.reserve(subjects.size());
  for (const Subject& subject : subjects) {
    scenes.push_back(lay_out(subject, svg_metrics()));
    page.width = std::max(page.width, scenes.back().w);
  }
  constexpr int kTitleColumns = 200;
  paragraph(page, shorten(title, kTitleColumns, {true, false, kTitleColumns}), kStrong, kTitle);
  std::string words;
  for (std::size_t i = 0; i < subjects.size(); ++i) {
    if (i > 0) page.y += 2 * kLine;
    node_picture(page, subjects[i], scenes[i]);
    if (!subjects[i].title.empty()) words += escaped(subjects[i].title) + ".\n";
    for (const std::string& one : description_of(subjects[i])) words += escaped(one) + ".\n";
  }
  const int width = page.width + 2 * kMargin;
  const int height = page.y + kMargin;
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" "
      "aria-labelledby=\"title desc\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} "
      "{1}\">\n<title id=\"title\">{2}</title>\n<desc id=\"desc\">{3}</desc>\n",
      width, height, escaped(title), words);
  out += style();
  out += fmt::format("<rect class=\"page\" width=\"{}\" height=\"{}\"/>\n", width, height);
  return out + page.body + "</svg>\n";
}

}  // namespace

}  // namespace hpclaunch::render

namespace hpclaunch {

std::string topology_svg(const Topology& topology) {
  const std::string name =
      topology.hostname.empty() ? "a machine" : render::printable(topology.hostname);
  return render::document("Topology of " + name, {render::subject_of(topology)});
}

std::string plan_svg(const Plan& plan, const Topology& topology, const PictureMarks& marks) {
  return render::document("Plan: " + render::plan_title(plan),
                          render::subjects_of(plan, topology, marks));
}

}  // namespace hpclaunch
