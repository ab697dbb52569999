#pragma once
// --svg and --picture, of every command that has them.
#include <functional>
#include <string>

#include "cli/parser.h"
#include "cli/session.h"

namespace hpclaunch::cli {

struct PictureArgs {
  std::string svg;  ///< a file, "-" for stdout, "" not typed
  bool terminal = false;
};

void declare_picture(Parser& parser, PictureArgs& args);

/// Errors: `usage` when more than one kind of output was asked for, or the file cannot be made.
Status check_picture(const PictureArgs& args, bool json);

/// Puts the document where --svg says; returns the exit status.
int put_svg(const PictureArgs& args, const std::string& document, Session& session);

}  // namespace hpclaunch::cli
