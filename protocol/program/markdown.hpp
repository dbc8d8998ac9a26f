#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gristmill {

/// A block of a Markdown text. Lines are counted from 1.
struct markdown_block {
  enum class kind : uint8_t { heading, paragraph, code };

  kind what = kind::paragraph;
  /// Of a heading: 1 to 6.
  int level = 0;
  size_t first_line = 0;
  size_t last_line = 0;
  /// It stands in no list and no quotation.
  bool top = true;
  /// Of a code block: the first word behind the fence, in lower case.
  std::string info;
  /// Of a code block its content; of a heading its words; of a paragraph its lines as written.
  std::string text;
  /// Of a code block: it has fences and is not merely indented.
  bool fenced = false;
  /// Of a code block: the fence that ends it is there.
  bool closed = false;
};

/// Headings, paragraphs and code blocks in the order of the text, those within lists and quotations
/// too. `text` must have plain "\n" line ends.
std::vector<markdown_block> markdown_blocks(std::string_view text);

/// With "\n" for "\r\n" and for "\r".
std::string plain_line_ends(std::string_view text);

/// The lines of a text, without their ends.
std::vector<std::string_view> split_lines(std::string_view text);

/// Without blanks at both ends.
std::string_view trim(std::string_view text);

} // namespace gristmill
