#pragma once
// Reads shell text without running it: bash, sh, zsh and csh as far as batch scripts use them. Flat: every command is
// an entry of one list, in the order of the text, with the block that it stands in. Where the text cannot be
// understood, a remark says so and reading goes on at the next line. Views point into the text.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hpclaunch::lint {

/// Bytes of the text: [begin, end).
struct Span {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  bool empty() const { return begin >= end; }
};

inline Span span_of(std::size_t begin, std::size_t end) {
  return {static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(end)};
}

/// A piece of a word. Its text is without quotes and escapes.
struct Part {
  enum class Kind : std::uint8_t {
    text,
    parameter,   ///< $NAME, ${NAME...}; `text` is the name, `rest` what follows it in the braces
    command,     ///< $(...), `...`; `text` is what is between
    arithmetic,  ///< $((...)), $[...]
    bad,         ///< ${...} that no shell accepts; `text` is what is between
  };
  Kind kind = Kind::text;
  bool quoted = false;  ///< by quotes or a backslash: not split, no pattern
  bool single = false;  ///< in '...'
  Span span = {};
  std::string_view text = {};
  std::string_view rest = {};
};

struct Word {
  Span span;
  std::vector<Part> parts;
};

struct Assignment {
  std::string_view name;
  Span name_span;
  Span span;             ///< NAME=VALUE
  bool append = false;   ///< +=
  bool element = false;  ///< NAME[...]=
  bool array = false;    ///< =( ... )
  Word value = {};
  std::vector<Word> items = {};  ///< of an array
};

struct Redirect {
  std::string_view op;  ///< ">", "<", ">>", "<<", "<<-", "<<<", ">&", ...
  Word target;          ///< of a heredoc: its end word
  Span body = {};       ///< of a heredoc
  bool quoted = false;  ///< heredoc whose end word is quoted: nothing in it is replaced
};

enum class Join : std::uint8_t {
  end,
  and_then,
  or_else,
  pipe,
  background
};  ///< what follows a command

/// A simple command, with what stands in front of it and behind.
struct Command {
  std::vector<Assignment> assignments;
  std::vector<Word> words;
  std::vector<Redirect> redirects;
  Span span = {};
  std::size_t block = 0;     ///< index in Shell::blocks
  bool conditional = false;  ///< in a branch, a loop, or behind && or ||
  bool subshell = false;     ///< in (...), or in a pipe: what it sets is lost
  bool test = false;         ///< it decides: behind if, while, until
  Join join = Join::end;
  std::size_t function =
      0;  ///< 1 + index in Shell::functions of the body that it is in; 0: in none
};

struct Block {
  enum class Kind : std::uint8_t { file, branch, loop, choice, group, subshell, function };
  Kind kind = Kind::file;
  std::size_t parent = 0;
  std::uint32_t begin = 0;
  std::string_view keyword = {};  ///< that opened it
  int arm = 0;                    ///< then: 0, each else and elif one more
};

struct Function {
  std::string_view name;
  Span span;
  std::size_t first = 0;  ///< commands of its body: [first, last)
  std::size_t last = 0;
};

/// A line of options for a batch system.
struct Directive {
  std::string_view sentinel;  ///< "#SBATCH", "#PBS", "#BSUB", "# flux:", "#COBALT", "#$"
  Span span;                  ///< the line
  Span body;                  ///< behind the sentinel, without a comment at its end
  bool late = false;          ///< behind the first command
};

struct Comment {
  Span span;          ///< from '#' to the end of the line
  bool alone = true;  ///< nothing stands in front of it
};

struct Remark {
  Span span;
  std::string text;
};

enum class Dialect : std::uint8_t { posix, csh };

struct Shell {
  std::string_view text;
  Dialect dialect = Dialect::posix;
  std::string_view shebang = {};  ///< the first line without "#!", "" for none
  std::vector<Command> commands = {};
  std::vector<Block> blocks = {};
  std::vector<Function> functions = {};
  std::vector<Directive> directives = {};
  std::vector<Comment> comments = {};
  std::vector<Remark> remarks = {};
  std::vector<std::uint32_t> lines = {};  ///< where each begins

  std::string_view at(Span span) const { return text.substr(span.begin, span.end - span.begin); }
};

struct Place {
  int line = 1;
  int column = 1;  ///< in characters of UTF-8
};
Place place_of(const Shell& shell, std::uint32_t offset);

/// `text` must outlive the answer. Linear in its length.
Shell read_shell(std::string_view text);

/// The words of a directive's body, or of another piece of `text`; offsets are those of the text.
std::vector<Word> words_in(std::string_view text, Span span);

/// The word as it is without any replacement: quotes removed; `plain` becomes false where a part is no text.
std::string literal(const Word& word, bool* plain = nullptr);

}  // namespace hpclaunch::lint
