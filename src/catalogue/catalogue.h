#pragma once
// hpclaunch-catalogue: turns profiles/variables/, and lists of other files, into C++ tables on the building machine.
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hpclaunch/knowledge.h"
#include "hpclaunch/result.h"

namespace hpclaunch::catalogue {

struct Variable : knowledge::Variable {
  std::size_t number = 0;         ///< of its library
  std::string_view default_note;  ///< follows the default
  SourceRef where;
};

struct Misspelling : knowledge::Misspelling {
  SourceRef where;
};

struct Caution : knowledge::Caution {
  SourceRef where;
};

struct KnownIssue : knowledge::KnownIssue {
  SourceRef where;
};

struct Catalogue {
  std::vector<knowledge::Library> libraries;
  std::vector<Variable> variables;  ///< ascending name after `finish`
  std::vector<Misspelling> misspellings;
  std::vector<knowledge::Family> families;
  std::vector<Caution> cautions;         ///< ascending name after `finish`
  std::vector<KnownIssue> known_issues;  ///< ascending id after `finish`
};

/// The same text for as long as the program runs: entries are views.
std::string_view keep(const std::string& text);

/// Adds one file. Its members say of which kind: "variables", "misspellings",
/// "families", "cautions" or "known_issues".
/// Reports all that is wrong with it, each with file and line.
std::vector<Error> read_file(const std::string& file, const std::string& text,
                             Catalogue& catalogue);

/// Sorts, and checks what needs all files: names once only, successors and meant names that exist,
/// defaults that satisfy their own rules.
std::vector<Error> finish(Catalogue& catalogue);

/// The C++ file. Equal catalogues give equal bytes.
std::string emit(const Catalogue& catalogue);

/// By key: what rows have that no two may have.
using Taken = std::map<std::string, std::set<std::string>, std::less<>>;

/// Rows of data (hpclaunch/rows.h) as C++, by the name of their list.
struct RowText {
  std::string text;  ///< the arrays that rows refer to
  std::size_t arrays = 0;
  std::map<std::string, std::vector<std::string>> rows;
  std::map<std::string, Taken> taken;
};

/// Adds the lists of one file. Reports all that is wrong with it, each with file, line and column.
std::vector<Error> read_rows(const std::string& file, const std::string& text, RowText& out);

/// The C++ file.
std::string emit_rows(const RowText& out);

}  // namespace hpclaunch::catalogue
