// `profile test --update`: the golden cases of a file get what comes out now; every other byte of it stays.
#include <fmt/format.h>

#include "authoring/command.h"
#include "hpclaunch/json_reader.h"
#include "hpclaunch/sys.h"
#include "hpclaunch/text.h"

namespace hpclaunch::authoring {

namespace {

using json_reader::Json;

struct Edit {
  const Json* old;
  std::string fresh;
};

// The value of each line, behind a sign.
std::string lines_with(char sign, const std::string& key, std::string_view value) {
  std::string text = fmt::format("{} \"{}\": ", sign, key.substr(key.find('/') + 1));
  for (const char c : value) text += c == '\n' ? fmt::format("\n{} ", sign) : std::string(1, c);
  return text + "\n";
}

}  // namespace

Status update_cases(const LoadedProfile& loaded, const Args& args, Session& session) {
  if (loaded.file.starts_with("builtin:"))
    return Error{ErrorKind::usage,
                 fmt::format("--update: {} is builtin and cannot be changed", loaded.name),
                 "name a profile's file"};
  if (Status ok = job::check_file("--update", loaded.file); !ok) return ok;
  const Result<std::string> old = sys::read_file(loaded.file);
  if (!old) return old.error();
  const json_reader::Context context(*old, loaded.file);
  std::map<std::size_t, Edit> edits;  // by offset
  std::string changes;
  for (const Case& expected : loaded.resolved->expect) {
    const Check check = run_case(*loaded.resolved, expected, args);
    if (check.now.empty()) continue;
    changes += fmt::format("{}: case \"{}\"\n", plain(place_text(check.where)), plain(check.name));
    for (const auto& [key, fresh] : check.now) {
      const Json& value = context.follow(check.where.pointer + "/" + key);
      edits[value.begin] = {&value, fresh};
      changes += lines_with('-', key, old->substr(value.begin, value.end - value.begin)) +
                 lines_with('+', key, fresh);
    }
  }
  std::string text = *old;
  for (auto edit = edits.rbegin(); edit != edits.rend(); ++edit)
    text.replace(edit->first, edit->second.old->end - edit->first, edit->second.fresh);
  if (!edits.empty())
    if (Status ok = job::write_file("--update", loaded.file, text); !ok) return ok;
  print(session, fmt::format("{}{}: {} updated\n", changes, plain(loaded.file),
                             counted(static_cast<long>(edits.size()), "value")));
  return Done{};
}

}  // namespace hpclaunch::authoring
