#pragma once
#include <string>

#include "hpclaunch/render.h"

namespace hpclaunch::cli {

/// What the catalogue of variables knows about a name, as indented lines; "" when it knows nothing, or
/// only that it looks misspelt (catalogue_doubt).
std::string catalogue_text(const std::string& name, const Style& style);

/// Why a name that nothing is known about is probably a mistake; "" when it may well be right.
std::string catalogue_doubt(const std::string& name);

}  // namespace hpclaunch::cli
