#pragma once
// One change in each format. The check says whether the format can represent it; the line assumes so.
#include <string>
#include <string_view>

#include "hpclaunch/render.h"

namespace hpclaunch::render {

/// A comment on one line, with nothing in it that could end the comment.
std::string comment_text(std::string_view comment);

/// "FORMAT cannot represent NAME: REASON", `unsupported`.
Error not_representable(std::string_view format, const EnvChange& change, std::string_view reason);

/// Every format except json needs an identifier and no zero byte. Errors: `unsupported`.
Status check_change(std::string_view format, const EnvChange& change);

Status check_sh(const EnvChange& change);
Status check_csh(const EnvChange& change);
Status check_fish(const EnvChange& change);
Status check_dotenv(const EnvChange& change);
Status check_lmod(const EnvChange& change);

std::string sh_line(const EnvChange& change);
std::string csh_line(const EnvChange& change);
std::string fish_line(const EnvChange& change);
std::string dotenv_line(const EnvChange& change);
std::string lmod_line(const EnvChange& change);

/// Later changes of a name win, as they do where a shell runs them one after the other.
Result<std::string> json_document(const std::vector<EnvChange>& changes);

}  // namespace hpclaunch::render
