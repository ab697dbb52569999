#pragma once
// The catalogue of environment variables: who reads which name, and what a value may be. Pure look-ups
// in read-only data that profiles/variables/ is compiled into; nothing is built or sorted at start.
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hpclaunch/diagnostic.h"

namespace hpclaunch::knowledge {

enum class Type : std::uint8_t {
  boolean,
  integer,
  size,  ///< a number of something, bytes unless `unit` says otherwise
  time,  ///< a number, with a unit behind it where the library allows one
  real,
  word,  ///< one of `values`
  list,  ///< items separated by commas
  text,
  path,
  path_list,  ///< separated by colons
  cpu_list,   ///< "0-3,8", or a word of the library's own
  range,      ///< "FROM:TO"
  algorithm,  ///< "NAME" or "NAME:FROM-TO;..." with a name among `values`
};

std::string_view to_string(Type type);

/// Texts, one behind the other in the program itself. So one offset is enough for a list, and nothing is relocated.
struct TextList {
  const char* first = "";  ///< each ends with NUL; behind the last is an empty one
  bool empty() const { return *first == '\0'; }
  std::string_view front() const { return first; }
  std::vector<std::string_view> all() const;
};

/// Where an entry was read.
enum class Confidence : std::uint8_t { source, docs, secondary };

std::string_view to_string(Confidence confidence);

enum class Direction : std::uint8_t {
  input,   ///< a library reads it
  output,  ///< a launcher or batch system sets it
  both,
};

struct LibraryTraits {
  bool booleans_any_case = true;
  bool words_any_case = false;
  bool c_numbers = true;  ///< 0x10 is 16 and 010 is 8; else decimal digits only
};

/// How the code that reads a library's variables understands them.
struct Library : LibraryTraits {
  using Traits = LibraryTraits;
  std::string_view name;    ///< "nccl", "libfabric/cxi"
  std::string_view title;   ///< for people
  std::string_view parser;  ///< repository:path that the rules below were read in; "" when assumed
  TextList truths;          ///< words for true and false
  TextList falsehoods;      ///< both empty when a boolean may be any integer
  std::string_view suffixes;     ///< letters that may follow a number, "" for none
  TextList number_words;         ///< words that stand for a number
  std::string_view bad_boolean;  ///< what the library does with anything else; "" when not known
  std::string_view bad_number;
  std::string_view bad_word;
  std::string_view release;    ///< "NCCL 2.31.2", up to which its sources were read
  std::string_view read_on;    ///< "2026-11-28"; "" for software without sources of its own
  std::string_view component;  ///< whose version that is: a key of Versions
};

struct VariableTraits {
  Type type = Type::text;
  Confidence confidence = Confidence::secondary;
  Direction direction = Direction::input;
  bool closed = false;    ///< `values` are all there are
  bool internal = false;  ///< for the library's own developers
  bool any_case = false;  ///< letter case of `values` does not matter
  bool numbers = false;   ///< items of a list are integers; of a word: natural numbers too
};

/// Text fields are "" where nothing is known. All views point into the program itself.
struct Variable : VariableTraits {
  using Traits = VariableTraits;
  std::string_view name;
  Library library;
  TextList values;
  std::string_view unit;
  std::string_view lowest;  ///< decimal integers; "" for no limit
  std::string_view highest;
  std::string_view standard;   ///< the default, a value or words about it
  std::string_view standards;  ///< defaults by version, as a sentence part
  std::string_view since;
  std::string_view removed;
  std::string_view successor;  ///< the newer name
  std::string_view reader;     ///< repository:path, several separated by ", "
  std::string_view syntax;
  std::string_view needs;  ///< "OTHER=value" without which this one is not read
  std::string_view what;   ///< one sentence
  std::string_view note;
};

/// nullopt when the catalogue has no such name. Names are compared exactly.
std::optional<Variable> find(std::string_view name);

std::size_t count();
Variable at(std::size_t index);  ///< ascending name; index < count()
std::optional<Library> find_library(std::string_view name);
std::size_t count_libraries();
Library library_at(std::size_t index);

struct MisspellingTraits {
  bool certain = true;  ///< false: no reader was found, which is not proof
};

struct Misspelling : MisspellingTraits {
  using Traits = MisspellingTraits;
  std::string_view wrong;
  std::string_view meant;  ///< "" when no variable was meant
  std::string_view note;
};

std::optional<Misspelling> find_misspelling(std::string_view name);
std::size_t count_misspellings();
Misspelling misspelling_at(std::size_t index);

struct FamilyTraits {
  enum class Unknown : std::uint8_t {
    suspect,    ///< a closed set: an unknown name is a mistake, or newer than this
    near_miss,  ///< only what looks like a known name is suspect
    open,       ///< anything goes
  } unknown = Unknown::open;
};

/// Names with a part that varies.
struct Family : FamilyTraits {
  using Traits = FamilyTraits;
  std::string_view pattern;  ///< '*' stands for any text
  std::string_view library;
  std::string_view stands_for;  ///< what the part before '*' becomes; "-": the name is itself
  std::string_view rule;
};

/// The family with the longest pattern that matches; nullopt for a name of no family.
std::optional<Family> find_family(std::string_view name);

struct CautionTraits {
  enum class Kind : std::uint8_t {
    slow,       ///< takes a fast path away
    debug,      ///< for finding faults, not for production
    harmful,    ///< an error, a hang, or another result than was meant
    unneeded,   ///< newer versions do it by themselves
    no_effect,  ///< nothing reads it under these circumstances
  } kind = Kind::slow;
  bool between_nodes = false;  ///< of no matter where a job has one node
  bool launched = false;       ///< of no matter where no launcher starts ranks
};

/// A value that its library takes and that is seldom meant.
struct Caution : CautionTraits {
  using Traits = CautionTraits;
  std::string_view name;
  TextList values;  ///< none: any
  /// Of other variables, all of which must hold: "NAME" is set, "NAME=VALUE" has it, "!" negates.
  TextList with;
  std::string_view since;   ///< the version from which on it holds; "" for all
  std::string_view why;     ///< the rest of a sentence that begins with "NAME=VALUE: "
  std::string_view source;  ///< where that is documented
};

/// What is set: nullopt where the variable is not, "\x01" somewhere in a value that is not known in full.
using Lookup = std::function<std::optional<std::string>(std::string_view name)>;

/// Those that hold for an assignment. A condition on a value that is not known in full does not hold.
std::vector<Caution> cautions(std::string_view name, std::string_view value, const Lookup& others);
std::string_view code(CautionTraits::Kind kind);  ///< "slow-setting": id of a Diagnostic
/// "NAME=VALUE: why (since ...)". `value`: "" where it is not known.
std::string sentence(const Caution& caution, std::string_view value);
std::size_t count_cautions();
Caution caution_at(std::size_t index);  ///< ascending name

struct KnownIssueTraits {
  enum class Effect : std::uint8_t {
    no_start,
    crash,
    hang,
    wrong_result,
    slow
  } effect = Effect::crash;
};

/// Versions of drivers, libraries and plug-ins that are known not to work together.
struct KnownIssue : KnownIssueTraits {
  using Traits = KnownIssueTraits;
  std::string_view id;  ///< "rccl-2.22.3-comm-split"
  TextList versions;    ///< "rccl", "eq", "2.22.3", "rocm", "lt", "6.4.1": in threes, all must hold
  TextList gpus;        ///< "GH200", "MI250": models that it is about; none: any
  TextList with;        ///< as Caution::with
  TextList options;     ///< launcher options that it is about; none: any start
  std::string_view why;  ///< one sentence
  std::string_view fix;
  std::string_view source;
};

/// Version of a component, by its name ("nccl", "nvidia-driver"); what follows digits and dots does not count. kGpu has
/// the names of the models of GPUs instead: "Instinct MI250X, H100".
using Versions = std::map<std::string, std::string, std::less<>>;

inline constexpr const char* kGpu = "gpu";

/// Adds the version of a loaded module, "rocm/6.2.4" or "cudatoolkit/12.4", to the component that it brings. Names of
/// modules are compared without letter case. Returns the component; "" for a module without a version.
std::string add_module(std::string_view module, Versions& versions);
std::string component_of(std::string_view module);  ///< that it brings, with or without a version
Versions versions_of_modules(std::string_view loaded);  ///< as LOADEDMODULES lists them

/// Libraries of which a newer version is here than the one whose sources were read: each with that version.
std::vector<std::pair<Library, std::string>> newer_than_read(const Versions& versions);

/// Those that hold. One about a component or a GPU that is not among `versions` does not, nor one that a version in short ("6.4",
/// where 6.4.1 is good and 6.4.0 is not) leaves open.
std::vector<KnownIssue> known_issues(const Versions& versions, const Lookup& environment);
/// A warning for a combination; a note for what is slow, and for faults of one version, which the job may not meet.
Severity severity(const KnownIssue& issue);
/// "rccl 2.22.3 with rocm 6.4.0 may hang: why"
std::string sentence(const KnownIssue& issue, const Versions& versions);
/// All that are about a component, as label and text; empty where there are none.
std::vector<std::pair<std::string, std::string>> issues_of(std::string_view component);
inline constexpr const char* kKnownIssueId = "known-issue";
std::size_t count_known_issues();
KnownIssue known_issue_at(std::size_t index);  ///< ascending id

/// What is wrong with a value, as the end of a sentence about it ("is not ..."), and what was probably
/// meant ("" when unknown). nullopt: no fault is known. An empty value is never wrong: libraries take it for
/// "not set".
struct Fault {
  std::string what;
  std::string meant;
};
std::optional<Fault> find_fault(const Variable& variable, std::string_view value);

inline constexpr const char* kUnknownVariable = "unknown-variable";
inline constexpr const char* kOldVariable = "old-variable";
inline constexpr const char* kBadValue = "bad-value";

/// Checks an assignment. The id is one of the three above, or "" for a correct one; names outside every family
/// are the user's own and correct. An error was read in the library's source; a warning is probably not what was
/// meant; a note works, and there is a newer way. `fix` is NAME=VALUE, or NAME for an old name or an empty
/// value; it may be empty. An unknown name is only a note where its library is newer than what was read of it.
Diagnostic check(std::string_view name, std::string_view value, const Versions& versions = {});

/// What there is to say about a name, as label and text, for people; empty when nothing is known.
std::vector<std::pair<std::string, std::string>> describe(std::string_view name);

template <class Entry, class Member, std::size_t size>
using Members = std::array<Member Entry::*, size>;

/// The members of an entry that are texts, and those that are lists, in the order of its row in the compiled catalogue;
/// the first is its name.
template <class Entry>
inline constexpr Members<Entry, std::string_view, 0> kTexts = {};
template <class Entry>
inline constexpr Members<Entry, TextList, 0> kLists = {};
template <>
inline constexpr std::array kTexts<Library> = {
    &Library::name,        &Library::title,      &Library::parser,   &Library::suffixes,
    &Library::bad_boolean, &Library::bad_number, &Library::bad_word, &Library::release,
    &Library::read_on,     &Library::component};
template <>
inline constexpr std::array kLists<Library> = {&Library::truths, &Library::falsehoods,
                                               &Library::number_words};
template <>
inline constexpr std::array kTexts<Variable> = {
    &Variable::name,      &Variable::unit,      &Variable::lowest, &Variable::highest,
    &Variable::standard,  &Variable::standards, &Variable::since,  &Variable::removed,
    &Variable::successor, &Variable::reader,    &Variable::syntax, &Variable::needs,
    &Variable::what,      &Variable::note};
template <>
inline constexpr std::array kLists<Variable> = {&Variable::values};
template <>
inline constexpr std::array kTexts<Misspelling> = {&Misspelling::wrong, &Misspelling::meant,
                                                   &Misspelling::note};
template <>
inline constexpr std::array kTexts<Family> = {&Family::pattern, &Family::library,
                                              &Family::stands_for, &Family::rule};
template <>
inline constexpr std::array kTexts<Caution> = {&Caution::name, &Caution::since, &Caution::why,
                                               &Caution::source};
template <>
inline constexpr std::array kLists<Caution> = {&Caution::values, &Caution::with};
template <>
inline constexpr std::array kTexts<KnownIssue> = {&KnownIssue::id, &KnownIssue::why,
                                                  &KnownIssue::fix, &KnownIssue::source};
template <>
inline constexpr std::array kLists<KnownIssue> = {&KnownIssue::versions, &KnownIssue::gpus,
                                                  &KnownIssue::with, &KnownIssue::options};

}  // namespace hpclaunch::knowledge
