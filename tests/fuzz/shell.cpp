// Shell text: whatever it is, what the reader gives lies in the text and fits together.
#include "lint/shell.h"

#include <algorithm>
#include <memory>

#include "fuzz/expect.h"

using namespace hpclaunch::lint;
using hpclaunch::fuzz::expect;

namespace {

void check(const Word& word, Span in) {
  expect(word.span.begin <= word.span.end && in.begin <= word.span.begin && word.span.end <= in.end,
         "a word lies in its command");
  std::uint32_t last = word.span.begin;
  for (const Part& part : word.parts) {
    expect(last <= part.span.begin && part.span.begin <= part.span.end, "parts are in order");
    expect(part.span.end <= word.span.end, "a part lies in its word");
    last = part.span.end;
  }
}

void check(const Shell& shell, const Command& one, Span text) {
  expect(one.span.begin <= one.span.end && one.span.end <= text.end, "a command lies in the text");
  expect(one.block < shell.blocks.size() && one.function <= shell.functions.size(),
         "a command lies in a block");
  for (const Word& word : one.words) check(word, one.span);
  for (const Assignment& assignment : one.assignments) {
    expect(shell.at(assignment.name_span) == assignment.name, "the name of an assignment");
    expect(one.span.begin <= assignment.span.begin && assignment.span.end <= one.span.end,
           "an assignment lies in its command");
    check(assignment.value, assignment.span);
    for (const Word& item : assignment.items) check(item, assignment.span);
  }
  for (const Redirect& redirect : one.redirects) {
    if (!redirect.target.span.empty()) check(redirect.target, one.span);
    expect(redirect.body.begin <= redirect.body.end && redirect.body.end <= text.end,
           "a here-document lies in the text");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const Span text = span_of(0, size);
  const Shell shell = read_shell(hpclaunch::fuzz::text_of(data, size));
  for (const Command& one : shell.commands) check(shell, one, text);
  expect(std::ranges::is_sorted(shell.commands, {}, [](const Command& c) { return c.span.begin; }),
         "commands are in the order of the text");
  for (std::size_t i = 1; i < shell.blocks.size(); ++i)
    expect(shell.blocks[i].parent < i, "a block follows the one around it");
  for (const Function& one : shell.functions)
    expect(one.first <= one.last && one.last <= shell.commands.size(), "a function has commands");
  for (const Directive& one : shell.directives) {
    expect(one.span.begin <= one.body.begin && one.body.begin <= one.body.end &&
               one.body.end <= one.span.end,
           "the body of a directive lies in its line");
    for (const Word& word : words_in(shell.text, one.body)) check(word, one.body);
  }
  for (const Comment& one : shell.comments)
    expect(shell.at(one.span).starts_with('#'), "a comment begins with #");
  for (const Remark& one : shell.remarks)
    expect(one.span.begin <= one.span.end && one.span.end <= text.end, "a remark has a place");
  return 0;
}
