// `profile list` and `profile schema`.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "authoring/command.h"
#include "hpclaunch/profile_format.h"
#include "hpclaunch/render.h"
#include "hpclaunch/text.h"

namespace hpclaunch::authoring {

namespace {

struct Row {
  ProfileEntry entry;
  std::string state;   // "active", "part", "retired", "broken"
  std::string detail;  // for people
  Profile profile;
};

Row row_of(const ProfileEntry& entry, const Shelf& shelf) {
  Row row{entry, "active", "", {}};
  Result<LoadedProfile> loaded = load_for_review(entry.name, shelf);
  if (!loaded || !loaded->problems.empty()) {
    row.state = "broken";
    row.detail = loaded ? loaded->problems.front().message : loaded.error().message;
    return row;
  }
  row.profile = *loaded->resolved;
  row.detail = row.profile.doc;
  if (row.profile.part) row.state = "part";
  if (!row.profile.retired) return row;
  row.state = "retired";
  row.detail = fmt::format(
      "{}; retired {}{}", row.profile.doc, row.profile.retired->date,
      row.profile.retired->successor.empty() ? "" : " -> " + row.profile.retired->successor);
  return row;
}

std::string as_text(const std::vector<Row>& rows, const Style& style) {
  std::size_t name = 4;
  for (const Row& row : rows) name = std::max(name, row.entry.name.size());
  std::string text =
      fmt::format("{:<{}}  {:<7}  {:<7}  description\n", "name", name, "scope", "state");
  for (const Row& row : rows) {
    text += paragraph(fmt::format("{:<{}}  {:<7}  {:<7}  ", printable(row.entry.name), name,
                                  row.entry.scope, row.state),
                      row.detail, style);
    if (row.entry.builtin == nullptr)
      text += fmt::format("{:<{}}  {}\n", "", name, printable(row.entry.file));
    for (const std::string& other : row.entry.shadows)
      text += fmt::format("{:<{}}  hides {}\n", "", name, printable(other));
  }
  return text;
}

std::string as_json(const std::vector<Row>& rows) {
  auto list = nlohmann::ordered_json::array();
  for (const Row& row : rows) {
    nlohmann::ordered_json one = {{"name", row.entry.name}, {"scope", row.entry.scope},
                                  {"file", row.entry.file}, {"shadows", row.entry.shadows},
                                  {"state", row.state},     {"doc", row.profile.doc}};
    if (row.state == "broken") one["problem"] = row.detail;
    if (row.profile.retired)
      one["retired"] = {{"date", row.profile.retired->date},
                        {"successor", row.profile.retired->successor}};
    list.push_back(std::move(one));
  }
  return json_document("profiles", std::move(list));
}

}  // namespace

int profile_list(const Args& args, Session& session) {
  const Result<Shelf> shelf = open_shelf({}, session.env);
  if (!shelf) return report(session, shelf.error());
  std::vector<Row> rows;
  for (const ProfileEntry& entry : shelf->entries) rows.push_back(row_of(entry, *shelf));
  const bool shown =
      print(session, args.format == "json" ? as_json(rows) : as_text(rows, line_style(session)));
  if (!shown) return exit_status(ErrorKind::system, session.exit_rules);
  return std::ranges::count(rows, "broken", &Row::state) > 0 ? 1 : 0;
}

int profile_schema(const Args&, Session& session) {
  return print_all(session, hpclaunch::profile_schema());
}

}  // namespace hpclaunch::authoring
