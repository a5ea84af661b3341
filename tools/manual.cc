#include <fmt/format.h>

#include <filesystem>
#include <fstream>

#include "base/nearest.h"
#include "paceline/error.h"
#include "tools/man_page.h"
#include "tools/subcommand.h"

namespace paceline {
namespace {

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
