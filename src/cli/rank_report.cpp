// Started by hpclaunch verify on every rank in place of the program: writes one report and exits.

#include "cli/command.h"
#include "hpclaunch/sys.h"
#include "hpclaunch/text.h"

namespace hpclaunch::cli {

namespace {

struct Args {
  std::string names;
  std::string local_variable;
  std::string program;
  std::string module;
  std::string python;
  std::string rank_before;
  std::string cpus_before;
  std::string fingerprints_before;
  std::string imported;
  std::string import_problem;
};

// Python's first thread imports and then execs this program again, with the mask and environment that the
// import leaves. argv[1] is the module, the rest the command.
constexpr const char* kImport =
    "import importlib, os, sys\n"
    "problem = []\n"
    "try:\n"
    "    importlib.import_module(sys.argv[1])\n"
    "except BaseException as error:\n"
    "    text = '%s: %s' % (type(error).__name__, error)\n"
    "    problem = ['--import-problem', text.replace('\\n', ' ')[:300]]\n"
    "os.execv(sys.argv[2], sys.argv[2:] + problem)\n";

std::vector<std::string> list_of(const std::string& names) {
  std::vector<std::string> list;
  if (names.empty()) return list;
  for (const std::string_view name : split(names, ',')) list.emplace_back(name);
  return list;
}

// Returns only when Python cannot be started.
std::string import_first(const Args& args, const Session& session,
                         const std::vector<std::string>& names) {
  const std::string self = sys::own_directory() + "/hpclaunch";
  std::vector<std::string> argv = {args.python, "-c",          kImport,  args.module,
                                   self,        "rank-report", "--done", args.module};
  const auto pass = [&](const char* option, const std::string& value) {
    if (!value.empty()) argv.insert(argv.end(), {option, value});
  };
  pass("--names", args.names);
  pass("--local-variable", args.local_variable);
  pass("--program", args.program);
  pass("--rank-before", session.env.get("RANK"));
  pass("--cpus-before", sys::affinity());
  pass("--fingerprints-before", sys::fingerprints(session.env, names));
  return sys::exec(argv, session.env).message;
}

int rank_report(const Args& args, const Session& session) {
  const std::vector<std::string> names = list_of(args.names);
  std::string problem = args.import_problem;
  if (!args.module.empty()) problem = import_first(args, session, names);
  RankReport report = sys::observe(session.env, {names, args.local_variable, args.program});
  // The import may change RANK; the report is of the rank from before.
  if (const auto rank = parse_natural(args.rank_before)) report.rank = static_cast<int>(*rank);
  report.module = args.imported.empty() ? args.module : args.imported;
  report.import_problem = problem;
  report.cpus_before = args.cpus_before;
  report.fingerprints_before = args.fingerprints_before;
  return sys::write_all(1, report_pieces(report)) ? 0 : 1;
}

}  // namespace

Runner declare_rank_report(Parser& parser) {
  auto args = std::make_shared<Args>();
  parser.text("--names", args->names, "A,B,...", "Variables to fingerprint");
  parser.text("--local-variable", args->local_variable, "NAME",
              "Variable with the launcher's local rank");
  parser.text("--program", args->program, "PATH", "Program to check");
  parser.text("--import", args->module, "MODULE", "Python module to import first");
  parser.text("--python", args->python, "PATH", "Python interpreter");
  parser.text("--done", args->imported, "MODULE", "Module already imported");
  parser.text("--import-problem", args->import_problem, "TEXT", "Reason of a failed import");
  parser.text("--rank-before", args->rank_before, "N", "RANK before the import");
  parser.text("--cpus-before", args->cpus_before, "LIST", "Mask before the import");
  parser.text("--fingerprints-before", args->fingerprints_before, "HEX",
              "Variables before the import");
  return [args](Session& session) { return rank_report(*args, session); };
}

}  // namespace hpclaunch::cli
