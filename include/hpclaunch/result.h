#pragma once
// Result<T>: a value, or the error that explains why there is none.
//
// The names are those of std::expected (C++23). When the oldest supported compiler has it, this
// becomes an alias and nothing else moves.
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace hpclaunch {

/// The kind alone decides the exit status; docs/reference/cli.md has the table.
enum class ErrorKind {
  usage,              ///< the command line is wrong
  not_found,          ///< a requested file or library does not exist
  program_not_found,  ///< the program or launcher does not exist
  not_executable,     ///< it exists and cannot be executed
  invalid,            ///< text or a file has a wrong format
  unsupported,        ///< understood, but cannot be done here
  system,             ///< a system call failed
};

/// A position in a file.
struct SourceRef {
  std::string file;  ///< as the user wrote it; "<command line>" and "<environment>" are not files
  int line = 0;      ///< counted from 1; 0 when unknown
  int column = 0;    ///< in bytes, counted from 1; 0 when unknown
  std::string pointer = {};  ///< RFC 6901 pointer inside `file`, e.g. "/rules/3/set/FI_PROVIDER"

  friend bool operator==(const SourceRef&, const SourceRef&) = default;
};

/// Why something is as it is, and its source: an entry of a profile, a decision of the plan.
struct Origin {
  std::string profile;      ///< name of the profile that it was written in
  SourceRef where;          ///< its place in that file
  std::string why;          ///< one sentence without a full stop
  std::string source;       ///< URL; may be empty
  std::string checked;      ///< YYYY-MM-DD of the last comparison with the source; may be empty
  std::string printed;      ///< what the source prints, where that is a mistake; "" otherwise
  std::string printed_why;  ///< why the printed form fails
  std::string disputed;     ///< what another source says; "" for none
};

struct Error {
  ErrorKind kind = ErrorKind::invalid;
  std::string message;    ///< lower case, no full stop; names the offending thing and the numbers
  std::string hint = {};  ///< what to type or edit next; may be empty
  std::optional<SourceRef> where = {};
};

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : either_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : either_(std::in_place_index<1>, std::move(error)) {}

  bool has_value() const { return either_.index() == 0; }
  explicit operator bool() const { return has_value(); }

  const T& operator*() const& { return require(); }
  T& operator*() & { return const_cast<T&>(require()); }
  T&& operator*() && { return std::move(const_cast<T&>(require())); }
  const T* operator->() const { return &require(); }
  T* operator->() { return &const_cast<T&>(require()); }
  const Error& error() const { return std::get<1>(either_); }

 private:
  // Reading the value of a failure is a defect of hpclaunch: stop here in every build type.
  const T& require() const {
    if (!has_value()) {
      std::fprintf(stderr, "hpclaunch: internal error: unchecked result: %s\n",
                   error().message.c_str());
      std::abort();
    }
    return std::get<0>(either_);
  }
  std::variant<T, Error> either_;
};

/// For functions that either succeed without a value or fail.
struct Done {};
using Status = Result<Done>;

}  // namespace hpclaunch
