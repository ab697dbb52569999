// Quoted words: the reader of shell text takes them for one word, and for the one that was quoted.
#include "fuzz/expect.h"
#include "hpclaunch/render.h"
#include "lint/shell.h"

using namespace hpclaunch;
using fuzz::expect;

namespace {

void check(std::string_view head, const std::string& value, const std::string& quoted) {
  const std::string text = std::string(head) + "x " + quoted + "\n";
  const lint::Shell shell = lint::read_shell(text);
  expect(shell.commands.size() == 1 && shell.remarks.empty(), "one command", text);
  expect(shell.commands[0].words.size() == 2, "a program and its argument", text);
  bool plain = true;
  const std::string read = lint::literal(shell.commands[0].words[1], &plain);
  expect(plain && read == value, "the word that was quoted", text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string value(fuzz::text_of(data, size));
  if (value.find('\0') != std::string::npos) return 0;  // no argument has it
  check("", value, quote_sh(value));
  // lint reads a newline behind a backslash as sh does.
  if (value.find('\n') == std::string::npos) check("#!/bin/csh\n", value, quote_csh(value));
  return 0;
}
