#pragma once
// GitHub Markdown from untrusted texts: text is escaped and stays text.
#include <string>
#include <string_view>
#include <vector>

namespace hpclaunch::authoring::markdown {

/// One line of text. Markup is escaped, control bytes become blanks, options, assignments, variables and paths
/// become code, addresses become links. Safe in a table cell.
std::string text(std::string_view plain);

/// A code span, also in a cell; "(empty)" for "".
std::string code(std::string_view plain);

/// "`a`, `b` or `c`"
std::string codes(const std::vector<std::string>& plain, std::string_view last_word);

/// `label` is Markdown. Only http and https are linked; other addresses follow the label as code.
std::string link(const std::string& label, std::string_view address);

/// Markdown as a paragraph of lines below 100 columns, the later ones behind `indent`.
std::string paragraph(const std::string& markdown, const std::string& indent = "");

/// A fenced block; `lines` end with a newline.
std::string block(std::string_view language, const std::string& lines);

/// Cells are Markdown; the first row is the head. Empty without another one.
std::string table(const std::vector<std::vector<std::string>>& rows);

}  // namespace hpclaunch::authoring::markdown
