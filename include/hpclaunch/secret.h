#pragma once
// Where secrets stand in a command line; is_secret of plan.h says which values are. Pure.
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "hpclaunch/env.h"
#include "hpclaunch/late.h"

namespace hpclaunch {

inline constexpr std::string_view kHidden = "<hidden>";

/// A secret in a command line: "hunter2" of "--api-key hunter2" or "--api-key=hunter2".
struct SecretWord {
  std::size_t word = 0;  ///< index
  std::size_t begin = 0, end = 0;
  std::string name;  ///< as a variable's: "API_KEY"; "SECRET" where it has none
};

/// In order. Values of options and assignments with a secret's name, also within a text (JSON, a header, `sh -c`),
/// and URLs with a password. Counts, switches and words like "<pad>" are none, nor is "$NAME" within a text.
std::vector<SecretWord> secrets_in(const std::vector<std::string>& words);

/// The words with "<hidden>" in place of secrets.
std::vector<std::string> without_secrets(std::vector<std::string> words);

/// For a text that a shell runs: each word with a secret, as text and references, "${API_KEY:?reason}". A secret that a
/// variable of `env` holds is read from that one, another one from a variable of its name.
std::map<std::string, std::vector<LatePart>> secret_references(
    const std::vector<std::string>& words, const EnvSnapshot& env, std::string_view reason);

}  // namespace hpclaunch
