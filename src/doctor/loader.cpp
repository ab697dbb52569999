#include <fmt/format.h>

#include <filesystem>

#include "doctor/examination.h"
#include "hpclaunch/text.h"

namespace hpclaunch::job {

namespace {

// That of this program's own kind: a machine that runs programs of another kind, too, has both.
std::string loader_path() {
#if defined(__x86_64__)
  const char* path = "/lib64/ld-linux-x86-64.so.2";
#elif defined(__aarch64__)
  const char* path = "/lib/ld-linux-aarch64.so.1";
#elif defined(__powerpc64__)
  const char* path = "/lib64/ld64.so.2";
#else
  const char* path = "/lib/ld-linux-riscv64-lp64d.so.1";
#endif
  std::error_code ignored;
  return std::filesystem::exists(path, ignored) ? path : "";
}

}  // namespace

std::string LoaderAnswer::path_of(std::string_view name) const {
  for (const Loaded& one : libraries)
    if (one.name.starts_with(name) && !one.path.empty()) return one.path;
  return "";
}

Result<LoaderAnswer> ask_loader(const std::string& path, const EnvSnapshot& env,
                                const std::string& beside) {
  constexpr double kSeconds = 10;
  const std::string loader = loader_path();
  if (loader.empty())
    return Error{ErrorKind::not_found, "the dynamic loader is not at a known path"};
  EnvSnapshot asking = env.with({{"LD_TRACE_LOADED_OBJECTS", "1"}});  // as ldd asks
  if (!beside.empty())
    asking = asking.with({{"LD_PRELOAD", fmt::format("{} {}", beside, env.get("LD_PRELOAD"))}});
  const Result<sys::Captured> told = sys::capture({loader, path}, kSeconds, &asking);
  if (!told) return told.error();
  LoaderAnswer answer;
  for (const std::string_view line : split(told->out, '\n')) {
    const std::string_view text = trim(line);
    const std::size_t arrow = text.find(" => ");
    if (arrow == std::string_view::npos) continue;
    std::string_view where = text.substr(arrow + 4);
    where = where.substr(0, where.rfind(" ("));
    answer.libraries.push_back(
        {std::string(text.substr(0, arrow)), where == "not found" ? "" : std::string(where)});
  }
  const std::string mark = fmt::format("object '{}' from LD_PRELOAD cannot be preloaded (", beside);
  if (const std::size_t at = told->err.find(mark); at != told->err.npos) {
    const std::string_view reason = std::string_view(told->err).substr(at + mark.size());
    answer.refused = reason.substr(0, reason.find(')'));
  }
  for (const std::string* text : {&told->err, &told->out})
    for (const std::string_view line : split(*text, '\n'))
      if (line.find("not found (required by") != std::string_view::npos)
        answer.complaints.emplace_back(trim(line));
  if (told->status != 0 && answer.libraries.empty() && answer.complaints.empty())
    return Error{ErrorKind::invalid, told->complaint()};
  return answer;
}

std::string Examination::program() const {
  return torch.empty() ? sys::own_directory() + "/hpclaunch" : torch;
}

void Examination::sound(std::string area, std::string found) {
  rows_.push_back({std::move(area), std::move(found), std::nullopt});
}

void Examination::fault(std::string area, Severity severity, std::string id, std::string message,
                        std::string fix) {
  rows_.push_back({std::move(area), "",
                   Diagnostic{std::move(id), severity, std::move(message), std::move(fix)}});
}

}  // namespace hpclaunch::job
