#pragma once
// What a command may touch: environment, output, and how errors become lines and exit statuses.
#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hpclaunch/diagnostic.h"
#include "hpclaunch/env.h"
#include "hpclaunch/render.h"
#include "hpclaunch/result.h"
#include "hpclaunch/topology.h"

namespace hpclaunch::job {

/// `launch`: the exit statuses of env(1) and timeout(1) before they exec (125, 126, 127).
enum class ExitRules { report, launch };

/// Made once, in main.
struct Session {
  EnvSnapshot env;
  std::vector<std::string> words;  ///< as typed, the command first
  std::FILE* out = stdout;
  std::FILE* err = stderr;
  Style style;  ///< of `out`
  ExitRules exit_rules = ExitRules::report;
  /// Width of `out` and `err` where they are terminals: lines for people are wrapped to it.
  std::optional<int> columns, err_columns;
};

/// Lines of the launcher's output that are no report.
using OtherLines = std::function<void(std::string_view line)>;

/// The exit status for an error of this kind; the one place that decides it.
int exit_status(ErrorKind kind, ExitRules rules);

/// Prints place, message and hint to session.err; returns the exit status.
int report(Session& session, const Error& error);

/// One line per diagnostic to session.err, and its fix; more where a terminal is narrower. Returns the lines that a
/// terminal shows, 0 without one.
int report(Session& session, const std::vector<Diagnostic>& diagnostics);

/// session.style for text of which a program may read a line: wrapped on a terminal only.
Style line_style(const Session& session);

/// Writes all of `text` to session.out. False: the reader is gone or the disk is full.
bool print(Session& session, const std::string& text);

/// The same; returns the exit status.
int print_all(Session& session, const std::string& text);

/// Checks that `path` can be written before any work is done. `option` is named in errors. Errors:
/// `usage` when the file cannot be created, or is no regular file.
Status check_file(const std::string& option, const std::string& path);

/// Atomically: written beside the old file, then renamed. `mode`: as of open(2). Errors: `system`.
Status write_file(const std::string& option, const std::string& path, const std::string& text,
                  unsigned mode = 0666);

/// The node of a topology file, or this machine with everything the vendors' libraries and
/// libfabric know; failed ones are reported to the session. A launch asks only for what it needs.
Result<Topology> known_node(const std::string& file, Session& session);

/// As topology_xml of hpclaunch/probe.h.
Result<std::string> known_xml(const std::string& file);

}  // namespace hpclaunch::job
