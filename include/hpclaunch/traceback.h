#pragma once
// What the last output of a Python program says about its end. Pure.
#include <cstddef>
#include <string>
#include <string_view>

namespace hpclaunch {

/// An exception, and the innermost frame of the user's own code.
struct Raised {
  std::string type;     ///< "RuntimeError"; "Segmentation fault" of faulthandler; "" for none
  std::string message;  ///< may have several lines
  std::string file;     ///< "" where no frame is known
  int line = 0;
  std::string function;  ///< "" of a SyntaxError

  /// "train.py:41 in step", the directory left out where it is longer than `most`; "" without a frame.
  std::string place(std::size_t most = 60) const;
  /// "RuntimeError: shapes do not match", its first line.
  std::string text() const;
  friend bool operator==(const Raised&, const Raised&) = default;
};

struct Traceback {
  Raised raised;  ///< what ended the program: of a quoted one (DataLoader) the inner one
  Raised cause;   ///< the first one of a chain, or of a group; without a type where there is none
  bool fatal = true;      ///< not of a thread, nor of a destructor
  std::size_t begin = 0;  ///< number of its first line in the text, from 0
  std::size_t end =
      0;  ///< of the first line behind it that belongs to torchrun, else of the last one

  bool found() const { return !raised.type.empty(); }
};

/// Of the last traceback that ends a program, else of the last one at all, but those of torchrun's agent. Reads those of
/// Python (chained, groups, quoted ones of other processes), of its faulthandler and of rich.
Traceback read_traceback(std::string_view text);

/// Of Python itself or of an installed package: not the user's own code.
bool is_library(std::string_view file);

}  // namespace hpclaunch
