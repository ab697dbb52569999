#pragma once
// hpclaunch-catalogue: turns profiles/variables/ into a C++ table on the building machine.
#include <map>
#include <string>
#include <vector>

#include "hpclaunch/result.h"

namespace hpclaunch::catalogue {

/// Texts by the name of the field that they are for; "" where there is none.
struct Texts : std::map<std::string, std::string> {
  const std::string& get(const char* field) const {
    static const std::string kNone;
    const auto at = find(field);
    return at == end() ? kNone : at->second;
  }
};

struct Library {
  Texts texts;  ///< for knowledge::Library
  bool booleans_any_case = true;
  bool words_any_case = false;
  bool c_numbers = true;
};

/// As knowledge::Variable, with owned texts.
struct Variable {
  std::string name;
  std::size_t library = 0;  ///< place in Catalogue::libraries
  int type = 0, confidence = 0, direction = 0;
  bool closed = false, internal = false, any_case = false, numbers = false;
  Texts texts;  ///< for knowledge::Variable
  SourceRef where;
};

struct Misspelling {
  std::string wrong, meant, note;
  bool certain = true;
  SourceRef where;
};

struct Family {
  std::string pattern, library, stands_for, rule;
  int unknown = 0;
};

struct Catalogue {
  std::vector<Library> libraries;
  std::vector<Variable> variables;  ///< ascending name after `finish`
  std::vector<Misspelling> misspellings;
  std::vector<Family> families;
};

/// Adds one file. Its members say of which kind: "variables", "misspellings" or "families".
/// Reports all that is wrong with it, each with file and line.
std::vector<Error> read_file(const std::string& file, const std::string& text,
                             Catalogue& catalogue);

/// Sorts, and checks what needs all files: names once only, successors and meant names that exist,
/// defaults that satisfy their own rules.
std::vector<Error> finish(Catalogue& catalogue);

/// The C++ file. Equal catalogues give equal bytes.
std::string emit(const Catalogue& catalogue);

}  // namespace hpclaunch::catalogue
