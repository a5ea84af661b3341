#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/nearest.h"
#include "paceline/error.h"
#include "paceline/version.h"
#include "tools/subcommand.h"

namespace paceline {
namespace {

// A man page, made of the tables that --help prints.

struct ManPage {
  std::string name;  // "paceline-train-mlp"
  std::string text;  // roff, for man(7) in section 1
};

/// Returns paceline(1) and a page for each command line. A longer command line ("paceline bench
/// step mlp") may be part of the page of a shorter one.
std::vector<ManPage> man_pages();

std::string dashed(std::string name) {
  std::ranges::replace(name, ' ', '-');
  return name;
}

// Returns the UTF-8 character at `at` and moves `at` behind it. Our own texts are well-formed.
char32_t next_character(std::string_view text, std::size_t& at) {
  const auto byte = std::uint8_t(text[at++]);
  const int more = byte < 0x80 ? 0 : byte < 0xe0 ? 1 : byte < 0xf0 ? 2 : 3;
  char32_t character = more == 0 ? byte : byte & (0x3f >> more);
  for (int i = 0; i < more && at < text.size(); ++i) {
    character = character << 6 | (std::uint8_t(text[at++]) & 0x3f);
  }
  return character;
}

// Returns text that roff prints unchanged in any locale: backslashes, dashes, and dots and single
// quotes at the start of a line are escaped, and characters outside ASCII are given by number.
std::string plain(std::string_view text) {
  std::string result;
  bool at_start = true;
  for (std::size_t at = 0; at < text.size();) {
    const char32_t c = next_character(text, at);
    if (at_start && (c == '.' || c == '\'')) result += "\\&";
    if (c == '\\') {
      result += "\\e";
    } else if (c == '-') {
      result += "\\-";
    } else if (c >= 0x80) {
      result += fmt::format("\\[u{:04X}]", std::uint32_t(c));
    } else {
      result += char(c);
    }
    at_start = c == '\n';
  }
  return result;
}

std::string title(const std::string& name) {
  const std::string version = version_and_commit();
  std::string upper = dashed(name);
  std::ranges::transform(upper, upper.begin(),
                         [](char c) { return c >= 'a' && c <= 'z' ? char(c - 'a' + 'A') : c; });
  return fmt::format(".TH {} 1 \"\" \"Paceline {}\" \"Paceline\"\n", upper,
                     version.substr(0, version.find(' ')));
}

// Returns the text as it is, with its indentation.
std::string verbatim(const std::string& text) {
  return text.empty() ? "" : fmt::format(".nf\n{}\n.fi\n", plain(text));
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

std::string flag_text(const Flag& flag) {
  const std::string value =
      flag.placeholder.empty() ? "" : fmt::format(" \\fI{}\\fR", plain(flag.placeholder));
  return fmt::format(".TP\n\\fB{}\\fR{}\n{}\n", plain(flag.name), value, plain(flag.help));
}

std::string synopsis(const CommandLine& line) {
  std::string text = fmt::format(".SH SYNOPSIS\n\\fB{}\\fR [OPTIONS]", plain(line.name));
  for (const Flag& flag : line.flags) {
    if (flag.name.starts_with('-')) continue;
    const std::string name = fmt::format("\\fI{}\\fR", plain(flag.name));
    text += flag.optional ? " [" + name + "]" : " " + name;
  }
  return text + "\n";
}

std::string options(const CommandLine& line) {
  std::string text = ".SH OPTIONS\n" + flag_text({"-h, --help", "", "Print this and end", ""});
  std::string group;
  for (const Flag& flag : line.flags) {
    if (flag.group.empty()) continue;
    if (flag.group != group) text += fmt::format(".SS {}\n", flag.group);
    group = flag.group;
    text += flag_text(flag);
  }
  return text;
}

ManPage page_of(const CommandLine& line) {
  std::string text = title(line.name);
  text +=
      fmt::format(".SH NAME\n{} \\- {}\n", plain(dashed(line.name)), plain(first_line(line.about)));
  text += synopsis(line);
  const bool paragraph = line.about.find('\n') == line.about.npos;
  text += ".SH DESCRIPTION\n" + (paragraph ? plain(line.about) + "\n" : verbatim(line.about));
  text += options(line);
  if (!line.examples.empty()) text += ".SH NOTES\n" + verbatim(line.examples);
  return {dashed(line.name), text + ".SH SEE ALSO\n.BR paceline (1)\n"};
}

// True when there is a page for a command with which `line` begins.
bool has_page(const std::vector<ManPage>& pages, const CommandLine& line) {
  return std::ranges::any_of(
      pages, [&](const ManPage& page) { return dashed(line.name).starts_with(page.name + "-"); });
}

std::string see_also(const std::vector<ManPage>& pages) {
  std::string text = ".SH SEE ALSO\n";
  for (const ManPage& page : pages) {
    text += fmt::format(".BR {} (1){}\n", plain(page.name), &page == &pages.back() ? "" : ",");
  }
  return text;
}

std::vector<ManPage> man_pages() {
  std::vector<ManPage> pages;
  for (const Subcommand& subcommand : all_subcommands()) {
    for (const CommandLine& line : subcommand.lines()) {
      if (!has_page(pages, line)) pages.push_back(page_of(line));
    }
  }
  const std::string text =
      title("paceline") +
      ".SH NAME\npaceline \\- trains models with dataflow graphs on many devices and machines\n"
      ".SH SYNOPSIS\n\\fBpaceline\\fR \\fISUBCOMMAND\\fR \\&...\n.SH DESCRIPTION\n" +
      verbatim(help_of_paceline()) + see_also(pages);
  pages.insert(pages.begin(), {"paceline", text});
  return pages;
}

void write_all(const std::vector<ManPage>& pages, const std::filesystem::path& folder) {
  std::error_code ignored;
  std::filesystem::create_directories(folder, ignored);
  for (const ManPage& page : pages) {
    const std::string path = folder / (page.name + ".1");
    std::ofstream file(path);
    file << page.text << std::flush;
    if (!file) refuse_flag("--out", folder, fmt::format("{} cannot be written", path));
  }
}

void print_one(const std::vector<ManPage>& pages, const std::string& name) {
  std::vector<std::string> names;
  for (const ManPage& page : pages) {
    if (page.name == name) {
      fmt::print("{}", page.text);
      return;
    }
    names.push_back(page.name);
  }
  refuse_flag(
      "--page", name,
      fmt::format("must be one of {}{}", fmt::join(names, ", "), did_you_mean(name, names)));
}

}  // namespace

std::vector<CommandLine> manual_lines() {
  return {{"paceline manual",
           "Prints a man page, or writes all of them.",
           R"(Examples:
  paceline manual | man -l -
  paceline manual --page paceline-train-ptb | man -l -
  paceline manual --out share/man/man1)",
           {{"--page", "NAME", "The page to print (default paceline)", "Flags"},
            {"--out", "DIR", "Write all pages into this folder; it is made if it is missing",
             "Flags"}}}};
}

int manual_command(const Arguments& arguments) {
  const std::optional<FlagValues> values = parse(manual_lines().front(), arguments);
  if (!values) return 0;
  const std::vector<ManPage> pages = man_pages();
  if (values->given("--out")) {
    write_all(pages, values->text("--out"));
  } else {
    print_one(pages, values->given("--page") ? values->text("--page") : "paceline");
  }
  return 0;
}

}  // namespace paceline
