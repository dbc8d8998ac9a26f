#include "protocol/program/program.hpp"

#include "messages/embedded_file.hpp"
#include "protocol/json_document.hpp"
#include "protocol/nearest.hpp"
#include "protocol/program/candidate_rules.hpp"
#include "protocol/program/markdown.hpp"
#include "protocol/program/rule_fields.hpp"

#include <algorithm>
#include <cassert>
#include <cctype>
#include <fmt/format.h>
#include <optional>
#include <span>

namespace gristmill {

std::span<const embedded_file> protocol_program_files();

namespace {

constexpr std::string_view cards_title = "Strategy cards";

/// The titles of the sections, and where their text goes.
template <class Program, class F>
void each_section(Program& p, F use) {
  use("Goal", p.goal);
  use("Hardware", p.hardware);
  use("Contract", p.contract);
  use("Allowed", p.allowed);
  use("Forbidden", p.forbidden);
  use("Feedback", p.feedback);
  use(cards_title, p.cards_preface);
  use("Tests", p.tests);
  use("Stop", p.stop);
}

std::vector<std::string> section_titles() {
  std::vector<std::string> out;
  protocol_program any;
  each_section(any, [&](std::string_view title, std::string&) { out.emplace_back(title); });
  return out;
}

/// "cp.async pipeline" is "cp-async-pipeline".
std::string card_id(std::string_view title) {
  std::string out;
  for (const char c : title) {
    const bool word = std::isalnum(static_cast<unsigned char>(c)) != 0;
    if (word)
      out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    else if (!out.empty() && out.back() != '-')
      out += '-';
  }
  while (out.ends_with('-'))
    out.pop_back();
  return out;
}

/// A section or a card: its heading and the lines below it.
struct part {
  std::string title;
  size_t heading = 0;
  size_t first = 0;
  /// One behind the last line.
  size_t end = 0;
};

class program_reader {
public:
  program_reader(std::string text, std::string file)
    : text_(std::move(text)), lines_(split_lines(text_)), file_(std::move(file)) {}

  result<protocol_program> read() {
    protocol_program out;
    out.file_name = file_;
    if (auto front = read_front(out); !front)
      return pass(front);
    blocks_ = markdown_blocks(body_);
    auto sections = find_sections();
    if (!sections)
      return pass(sections);
    for (const auto& section : *sections)
      if (auto read = read_section(section, out); !read)
        return pass(read);
    if (auto checked = check_contract(*sections, out.rules); !checked)
      return pass(checked);
    // The rules of the file hold for its own examples.
    for (auto& card : out.cards) {
      auto fits = check_candidate(out, card.source, card.plan,
        std::string(out.rules.hypothesis_bytes_min, 'x'), card.language);
      if (!fits)
        card.withheld = fits.error().what;
    }
    return out;
  }

private:
  tl::unexpected<failure> wrong(size_t line, const std::string& why) const {
    return fail(errc::invalid_input, fmt::format("{}:{}: {}", file_, line, why));
  }

  result<void> read_front(protocol_program& out) {
    if (lines_.empty() || trim(lines_[0]) != "+++")
      return wrong(1, "the file must begin with its typed rules, in TOML between two lines +++");
    size_t end = 1;
    while (end < lines_.size() && trim(lines_[end]) != "+++")
      ++end;
    if (end == lines_.size())
      return wrong(1, "the line +++ that ends the typed rules is missing");
    std::string front;
    for (size_t i = 1; i < end; ++i)
      front.append(lines_[i]).append("\n");
    auto rules = parse_rules(front, file_, 2, out.name);
    if (!rules)
      return pass(rules);
    out.rules = std::move(*rules);
    // The lines keep their numbers.
    body_.assign(end + 1, '\n');
    for (size_t i = end + 1; i < lines_.size(); ++i)
      body_.append(lines_[i]).append("\n");
    return {};
  }

  result<std::vector<part>> find_sections() {
    const auto titles = section_titles();
    std::vector<part> out;
    for (const auto& block : blocks_) {
      const bool heading = block.what == markdown_block::kind::heading && block.top;
      if (block.what == markdown_block::kind::code && block.fenced && !block.closed)
        return wrong(
          block.first_line, "the code block that begins here has no end; close its fence");
      if (out.empty() && !(heading && block.level <= 2))
        return wrong(block.first_line,
          "text before the first section belongs to none; move it below a heading of the second "
          "level");
      if (!heading || block.level > 2 || (block.level == 1 && out.empty()))
        continue;
      if (block.level == 1)
        return wrong(block.first_line, "a heading of the first level among the sections; use ##");
      const auto known = std::find(titles.begin(), titles.end(), block.text);
      if (known == titles.end())
        return wrong(block.first_line,
          fmt::format("no section is called '{}'{}", block.text, suggestion(block.text, titles)));
      if (!out.empty())
        out.back().end = block.first_line;
      for (const auto& before : out)
        if (before.title == block.text)
          return wrong(block.first_line,
            fmt::format("the section '{}' is there twice, first in line {}; join them", block.text,
              before.heading));
      out.push_back({block.text, block.first_line, block.last_line + 1, lines_.size() + 1});
    }
    for (const auto& title : titles)
      if (std::none_of(out.begin(), out.end(), [&](const part& p) { return p.title == title; }))
        return wrong(lines_.size(),
          fmt::format(
            "the section '{}' is missing; add a heading `## {}` with its text", title, title));
    return out;
  }

  /// The lines from `first` to before `end`, without blank ones at either end.
  std::string text_of(size_t first, size_t end, const std::vector<bool>* dropped = nullptr) const {
    std::string out;
    for (size_t i = first; i < end && i <= lines_.size(); ++i)
      if (dropped == nullptr || !(*dropped)[i])
        out.append(lines_[i - 1]).append("\n");
    // Where lines were dropped, several blank ones may meet.
    for (size_t at = out.find("\n\n\n"); at != std::string::npos; at = out.find("\n\n\n", at))
      out.erase(at, 1);
    const size_t begin = std::min(out.find_first_not_of('\n'), out.size());
    const size_t last = out.find_last_not_of(" \t\n");
    return last == std::string::npos ? std::string{} : out.substr(begin, last + 1 - begin);
  }

  result<void> read_section(const part& section, protocol_program& out) {
    size_t end = section.end;
    if (section.title == cards_title) {
      std::vector<part> cards;
      for (const auto& block : blocks_)
        if (block.what == markdown_block::kind::heading && block.top && block.level == 3
          && block.first_line >= section.first && block.first_line < section.end) {
          if (!cards.empty())
            cards.back().end = block.first_line;
          cards.push_back({block.text, block.first_line, block.last_line + 1, section.end});
        }
      if (!cards.empty())
        end = cards.front().heading;
      for (const auto& each : cards)
        if (auto read = read_card(each, out); !read)
          return read;
    }
    const auto text = text_of(section.first, end);
    if (text.empty() && section.title != cards_title)
      return wrong(section.heading,
        fmt::format("the section '{}' is empty; say what it asks for", section.title));
    for (const auto& mention : rule_mentions(text))
      if (!rule_value(out.rules, mention.name))
        return wrong(section.heading,
          fmt::format(
            "'{{{}}}' names no rule{}", mention.name, suggestion(mention.name, rule_names())));
    each_section(out, [&](std::string_view title, std::string& to) {
      if (title == section.title)
        to = text;
    });
    note_sentences(section.title, section.first, end, out);
    return {};
  }

  /// Sentences of the section that mention no rule.
  void note_sentences(
    const std::string& title, size_t first, size_t end, protocol_program& out) const {
    for (const auto& block : blocks_) {
      if (block.what != markdown_block::kind::paragraph || block.first_line < first
        || block.first_line >= end)
        continue;
      const std::string& text = block.text;
      for (size_t at = 0; at < text.size();) {
        size_t stop = at;
        while (stop < text.size()
          && !(std::string_view(".!?").find(text[stop]) != std::string_view::npos
            && (stop + 1 == text.size() || text[stop + 1] == ' ' || text[stop + 1] == '\n')))
          ++stop;
        const auto sentence = trim(std::string_view(text).substr(at, stop + 1 - at));
        const auto before = static_cast<size_t>(
          std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
        if (!sentence.empty() && rule_mentions(sentence).empty()) {
          std::string flat(sentence);
          std::replace(flat.begin(), flat.end(), '\n', ' ');
          out.advisory.push_back({block.first_line + before, title, std::move(flat)});
        }
        at = stop + 1;
      }
    }
  }

  result<void> read_card(const part& where, protocol_program& out) const {
    strategy_card card;
    card.title = where.title;
    card.id = card_id(where.title);
    card.line = where.heading;
    const auto refuse = [&](size_t line, const std::string& why) {
      return wrong(line, fmt::format("strategy card '{}': {}", where.title, why));
    };
    if (card.id.empty() || card.id.size() > 48)
      return refuse(card.line, "its title must have 1 to 48 letters and digits");
    if (const auto* other = out.find_card(card.id))
      return refuse(card.line,
        fmt::format("another card has the same title, in line {}; rename one", other->line));
    std::vector<bool> dropped(lines_.size() + 2, false);
    const auto drop = [&](const markdown_block& block) {
      for (size_t i = block.first_line; i <= block.last_line && i < dropped.size(); ++i)
        dropped[i] = true;
    };
    for (const auto& block : blocks_) {
      if (block.first_line < where.first || block.first_line >= where.end)
        continue;
      if (block.what == markdown_block::kind::code && block.fenced) {
        std::string* to = nullptr;
        if (block.info == "cuda" || block.info == "python") {
          to = &card.source;
          card.language = block.info == "cuda" ? "cuda" : "cute_dsl";
        } else if (block.info == "json") {
          to = &card.plan;
        } else {
          return refuse(block.first_line,
            fmt::format("a code block '{}'; a card has one ```cuda (or ```python) and one ```json",
              block.info));
        }
        if (!to->empty())
          return refuse(block.first_line, fmt::format("a second ```{} block", block.info));
        if (trim(block.text).empty())
          return refuse(block.first_line, "an empty code block");
        *to = block.text;
        drop(block);
      } else if (block.what == markdown_block::kind::paragraph && block.top) {
        const std::string_view text = block.text;
        std::string* to = text.starts_with("When:") ? &card.when
          : text.starts_with("Problem:")            ? &card.problem
                                                    : nullptr;
        if (to == nullptr)
          continue;
        if (!to->empty())
          return refuse(block.first_line, "a second paragraph of that kind");
        *to = trim(text.substr(text.find(':') + 1));
        std::replace(to->begin(), to->end(), '\n', ' ');
        drop(block);
      }
    }
    std::erase(card.problem, '`');
    for (const auto& [part_text, name, cure] :
      {std::tuple{&card.when, "When:", "a paragraph that says when it applies"},
        std::tuple{&card.problem, "Problem:", "a paragraph that names what its example solves"},
        std::tuple{&card.source, "```cuda", "its worked example"},
        std::tuple{&card.plan, "```json", "the plan of its example"}})
      if (part_text->empty())
        return refuse(card.line, fmt::format("'{}' is missing; add {}", name, cure));
    card.text = text_of(where.first, where.end, &dropped);
    if (card.text.empty())
      return refuse(card.line, "it explains nothing; add a paragraph");
    out.cards.push_back(std::move(card));
    return {};
  }

  /// A language that agents may hand in needs a worked contract.
  result<void> check_contract(const std::vector<part>& sections, const program_rules& rules) const {
    const auto contract = std::find_if(
      sections.begin(), sections.end(), [](const part& p) { return p.title == "Contract"; });
    for (const auto& language : rules.languages) {
      const std::string fence = language == "cuda" ? "cuda" : "python";
      if (std::none_of(blocks_.begin(), blocks_.end(), [&](const markdown_block& block) {
            return block.what == markdown_block::kind::code && block.info == fence
              && block.first_line >= contract->first && block.first_line < contract->end;
          }))
        return wrong(contract->heading,
          fmt::format(
            "candidate.languages has '{}', but the contract shows no ```{} block; add one "
            "or take the language out",
            language, fence));
    }
    return {};
  }

  std::string text_;
  std::vector<std::string_view> lines_;
  std::string file_;
  std::string body_;
  std::vector<markdown_block> blocks_;
};

} // namespace

const strategy_card* protocol_program::find_card(std::string_view id) const {
  const auto found =
    std::find_if(cards.begin(), cards.end(), [&](const auto& card) { return card.id == id; });
  return found == cards.end() ? nullptr : &*found;
}

result<protocol_program> parse_program(std::string_view text, const std::string& file_name) {
  if (text.size() > program_bytes_max)
    return fail(errc::invalid_input,
      fmt::format("{}: {} bytes, and a protocol file has at most {}", file_name, text.size(),
        program_bytes_max));
  if (text.find('\0') != std::string_view::npos)
    return fail(errc::invalid_input, file_name + ": the file holds a zero byte");
  auto out = program_reader(plain_line_ends(text), file_name).read();
  if (out)
    out->text = text;
  return out;
}

result<protocol_program> load_program(const std::filesystem::path& path) {
  auto text = read_text_file(path, program_bytes_max);
  if (!text)
    return pass(text);
  return parse_program(*text, path.string());
}

std::string_view default_program_text() {
  return protocol_program_files().front().content;
}

const protocol_program& default_program() {
  static const protocol_program parsed = [] {
    auto read = parse_program(default_program_text(), "program.md");
    assert(read && "the protocol file that comes along parses: a test reads it");
    return read ? std::move(*read) : protocol_program{};
  }();
  return parsed;
}

} // namespace gristmill
