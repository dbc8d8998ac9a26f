#include "protocol/program/markdown.hpp"

#include <algorithm>
#include <cctype>
#include <cmark.h>
#include <memory>

namespace gristmill {

namespace {

struct node_closer {
  void operator()(cmark_node* node) const { cmark_node_free(node); }
};
struct walk_closer {
  void operator()(cmark_iter* walk) const { cmark_iter_free(walk); }
};

std::string words_of(cmark_node* heading) {
  std::string out;
  const std::unique_ptr<cmark_iter, walk_closer> walk(cmark_iter_new(heading));
  while (cmark_iter_next(walk.get()) != CMARK_EVENT_DONE) {
    cmark_node* node = cmark_iter_get_node(walk.get());
    const auto type = cmark_node_get_type(node);
    if (type == CMARK_NODE_TEXT || type == CMARK_NODE_CODE)
      if (const char* literal = cmark_node_get_literal(node); literal != nullptr)
        out += literal;
  }
  return out;
}

bool is_fence(std::string_view line, char mark) {
  return (mark == '`' || mark == '~') && line.starts_with(std::string(3, mark));
}

markdown_block code_block(cmark_node* node) {
  markdown_block out;
  out.what = markdown_block::kind::code;
  const char* literal = cmark_node_get_literal(node);
  out.text = literal == nullptr ? "" : literal;
  const char* info = cmark_node_get_fence_info(node);
  for (const char* c = info; c != nullptr && *c != '\0' && *c != ' ' && *c != '\t'; ++c)
    out.info += static_cast<char>(std::tolower(static_cast<unsigned char>(*c)));
  return out;
}

} // namespace

std::vector<std::string_view> split_lines(std::string_view text) {
  std::vector<std::string_view> out;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    out.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view blanks = " \t\r\n\v\f";
  const size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos)
    return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

std::string plain_line_ends(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\r')
      out += text[i];
    else if (i + 1 == text.size() || text[i + 1] != '\n')
      out += '\n';
  }
  return out;
}

std::vector<markdown_block> markdown_blocks(std::string_view text) {
  std::vector<markdown_block> out;
  const auto lines = split_lines(text);
  const std::unique_ptr<cmark_node, node_closer> document(
    cmark_parse_document(text.data(), text.size(), CMARK_OPT_DEFAULT));
  const std::unique_ptr<cmark_iter, walk_closer> walk(cmark_iter_new(document.get()));
  for (auto event = cmark_iter_next(walk.get()); event != CMARK_EVENT_DONE;
       event = cmark_iter_next(walk.get())) {
    cmark_node* node = cmark_iter_get_node(walk.get());
    const auto type = cmark_node_get_type(node);
    const bool wanted =
      type == CMARK_NODE_HEADING || type == CMARK_NODE_PARAGRAPH || type == CMARK_NODE_CODE_BLOCK;
    if (event != CMARK_EVENT_ENTER || !wanted)
      continue;
    markdown_block block;
    if (type == CMARK_NODE_CODE_BLOCK)
      block = code_block(node);
    block.first_line = static_cast<size_t>(std::max(cmark_node_get_start_line(node), 1));
    block.last_line =
      std::max(static_cast<size_t>(std::max(cmark_node_get_end_line(node), 1)), block.first_line);
    block.top = cmark_node_get_type(cmark_node_parent(node)) == CMARK_NODE_DOCUMENT;
    if (type == CMARK_NODE_HEADING) {
      block.what = markdown_block::kind::heading;
      block.level = cmark_node_get_heading_level(node);
      block.text = words_of(node);
    } else if (type == CMARK_NODE_PARAGRAPH) {
      for (size_t i = block.first_line; i <= block.last_line && i <= lines.size(); ++i)
        block.text.append(i == block.first_line ? "" : "\n").append(lines[i - 1]);
    } else {
      const auto column = static_cast<size_t>(std::max(cmark_node_get_start_column(node), 1));
      const std::string_view first = lines[block.first_line - 1];
      const char mark = column <= first.size() ? first[column - 1] : ' ';
      block.fenced = is_fence(first.substr(std::min(column - 1, first.size())), mark)
        && (!block.top || column <= 4);
      // The library does not say how a block ended. Fences take a line each, so the number of
      // lines tells; a list that ends takes its open blocks with it, so the last line tells too.
      const auto inside =
        static_cast<size_t>(std::count(block.text.begin(), block.text.end(), '\n'));
      const std::string_view last = lines[std::min(block.last_line, lines.size()) - 1];
      block.closed = block.fenced && block.last_line - block.first_line == inside + 1
        && is_fence(last.substr(std::min(last.find_first_not_of(" \t>"), last.size())), mark);
    }
    out.push_back(std::move(block));
  }
  return out;
}

} // namespace gristmill
