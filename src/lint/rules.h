#pragma once

namespace hpclaunch::lint {

extern const char* const kRules;    ///< profiles/lint/rules.json
extern const char* const kRetired;  ///< profiles/lint/retired.json

}  // namespace hpclaunch::lint
