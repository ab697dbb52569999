#pragma once
// What a command may touch; made once, in main.
#include <cstdio>
#include <string>
#include <vector>

#include "hpclaunch/check.h"
#include "hpclaunch/env.h"
#include "hpclaunch/render.h"
#include "hpclaunch/result.h"

namespace hpclaunch::cli {

/// `run` and what it stands for use the codes that env(1) and timeout(1) use before they exec.
enum class ExitRules { report, launch };

struct Session {
  EnvSnapshot env;
  std::FILE* out = stdout;
  std::FILE* err = stderr;
  Style style;  ///< of `out`
  ExitRules exit_rules = ExitRules::report;
};

/// The exit status that an error of this kind gives; the one place that decides it.
int exit_status(ErrorKind kind, ExitRules rules);

/// Prints place, message and hint to session.err; returns the exit status.
int report(Session& session, const Error& error);

/// One line per diagnostic to session.err.
void report(Session& session, const std::vector<Diagnostic>& diagnostics);

/// Writes all of `text` to session.out. False: the reader is gone or the disk is full.
bool print(Session& session, const std::string& text);

}  // namespace hpclaunch::cli
