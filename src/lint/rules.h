#pragma once

namespace hpclaunch::lint {

extern const char* const kRules;  ///< profiles/lint/rules.json

}  // namespace hpclaunch::lint
