#pragma once
// Reads JSON files that people write. Every value keeps its place, every problem is reported with line, column
// and pointer, and a wrong value reads as a default. What the files mean is not known here.
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hpclaunch/cpuset.h"
#include "hpclaunch/result.h"

namespace hpclaunch::json_reader {

/// JSON as a tree that keeps the place of each value and the order of members.
struct Json {
  enum class Kind { null, boolean, integer, number, string, array, object };
  Kind kind = Kind::null;
  bool truth = false;
  std::int64_t whole = 0;   ///< of an integer
  std::string text;         ///< of a string; of a number as it was written
  std::string key;          ///< of a member
  std::size_t mark = 0;     ///< offset of its key, or of the value itself where it has none
  std::size_t begin = 0;    ///< of the value
  std::size_t end = 0;      ///< behind it
  std::vector<Json> items;  ///< elements of an array, members of an object
  std::vector<std::string_view> asked;  ///< keys that were looked for in this object
};

/// "a string", "an object", ...
std::string_view noun(Json::Kind kind);

/// In double quotes, short enough for one line, control characters and broken UTF-8 as '?'.
std::string shown(std::string_view text);

/// `did you mean "x"?`, or "" when nothing is near.
std::string suggestion(std::string_view word, std::span<const std::string> candidates);

/// The same, or all that is known.
std::string suggestion_or_all(std::string_view word, std::span<const std::string> known);
std::string suggestion_or_all(std::string_view word, std::span<const std::string_view> known);

/// A letter or a digit, then letters, digits, '.', '_', '+' and '-'.
bool is_word(std::string_view text);

class Context;

/// A value of a file; false when it is absent. An absent value reads as a default and is never at fault; a wrong
/// one is reported and reads as a default.
class Item {
 public:
  Item(Context& context, Json* json) : context_(&context), json_(json) {}

  explicit operator bool() const { return json_ != nullptr; }
  const Json* operator->() const;
  const Json& operator*() const { return *operator->(); }
  Context& context() const { return *context_; }
  SourceRef where() const;
  void fault(std::string message, std::string hint = {}) const;

  /// A member of this object; `key` must live as long as the context.
  Item operator[](std::string_view key) const;
  Item need(std::string_view key) const;  ///< reports its absence

  std::string string() const;  ///< any string
  std::string text() const;    ///< not empty and without control characters
  std::string word() const;    ///< what can be typed after an option
  /// A text that is `what`, such as "a date".
  std::string text_of(std::string_view what, bool (*good)(std::string_view),
                      const char* hint) const;
  std::string variable(std::string name) const;  ///< `name` is in this item, as a text or a key
  std::string choice(std::span<const std::string_view> known) const;
  int whole(int min, int max, std::optional<int> otherwise = {}) const;  ///< else `min`
  bool truth(bool otherwise = false) const;
  CpuSet cores() const;

  std::vector<Item> items() const;                             ///< of anything
  std::vector<Item> elements(std::string_view of_what) const;  ///< at least one
  std::vector<Item> members(std::string_view of_what) const;   ///< at least one
  std::vector<std::string> texts(std::string_view of_what = "strings") const;
  /// The objects of a list; reports the second of two with the same text as `name`.
  std::vector<Item> entries(std::string_view name) const;

  /// Reports an object without any of these members.
  void need_one_of(std::initializer_list<const char*> keys, const char* message) const;
  /// Reports `key` when another member makes it meaningless.
  void refuse(std::string_view key, std::string_view because, std::string hint) const;
  /// Reports members that were not looked for, in all objects from here down of which any was.
  void finish() const;

 private:
  void expected(std::string_view what, std::string hint = {}) const;
  std::vector<Item> filled(Json::Kind kind, std::string_view of_what) const;

  Context* context_;
  Json* json_;
};

/// One file and its problems.
class Context {
 public:
  /// Reports broken JSON, more than 32 levels, and repeated keys (of which the first is kept).
  /// `//` comments are skipped.
  Context(std::string_view text, std::string file);

  std::string subject;  ///< what the file describes, for readers of its parts

  /// Absent when there is no tree.
  Item root() { return {*this, whole_ ? &root_ : nullptr}; }
  /// The value that a pointer without escapes leads to, or the innermost one on its way that exists.
  const Json& follow(std::string_view pointer) const;

  void fault(SourceRef where, std::string message, std::string hint = {});
  /// Takes back what the object at `pointer` is at fault for without `key`, which stands there misspelt: problems of the
  /// object or a member with the hint to add it, and those inside whose hint names it. `key` is in double quotes.
  void forget(const std::string& pointer, std::string_view key);
  SourceRef place(std::size_t mark, std::string pointer = {}) const;
  SourceRef place(const Json& at) const;

  std::size_t count() const { return problems_.size(); }
  bool full() const;
  /// In the order of the text; after 100 one more that reports the cut.
  std::vector<Error> take();

 private:
  std::string file_;
  std::vector<std::size_t> line_starts_ = {0};
  std::vector<Error> problems_;
  Json root_;
  bool whole_ = false;
};

/// Reports a file whose member "schema" is not 1, and is false for it.
bool need_schema(const Item& file);

/// Adds the tree of `text` to `root`. False when there is none, which is reported.
bool read_tree(std::string_view text, Context& context, Json& root);

}  // namespace hpclaunch::json_reader
