// Tests that the pieces of docs/coming-from.md are those of examples/coming_from, and that this
// program, built against an installed prefix, runs alone and as a cluster.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "tests/examples.h"
#include "tests/process.h"

namespace paceline::testing {
namespace {

using ::testing::HasSubstr;
using Lines = std::vector<std::string>;

Lines lines_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  Lines lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

std::size_t indent_of(const std::string& line) {
  return std::min(line.find_first_not_of(' '), line.size());
}

/// Returns the blocks of the page that are code for Paceline.
std::vector<Lines> pieces_of(const std::filesystem::path& page) {
  std::vector<Lines> pieces;
  bool inside = false;
  for (const std::string& line : lines_of(page)) {
    if (line.starts_with("```")) {
      inside = line == "```cpp";
      if (inside) pieces.emplace_back();
    } else if (inside) {
      pieces.back().push_back(line);
    }
  }
  return pieces;
}

/// True if the lines stand in the file one after the other; the file may indent them further.
bool stands_in(const Lines& piece, const Lines& file) {
  for (std::size_t begin = 0; begin + piece.size() <= file.size(); ++begin) {
    const std::size_t indent =
        indent_of(file[begin]) - std::min(indent_of(piece[0]), indent_of(file[begin]));
    const auto same = [&](const std::string& line, const std::string& in_file) {
      return line.empty() ? in_file.empty() : in_file == std::string(indent, ' ') + line;
    };
    if (std::equal(piece.begin(), piece.end(), file.begin() + std::ptrdiff_t(begin), same))
      return true;
  }
  return false;
}

/// The number of opening brackets less that of closing ones.
std::ptrdiff_t open_brackets(const Lines& piece) {
  std::ptrdiff_t open = 0;
  for (const std::string& line : piece) {
    for (const char c : line.substr(0, line.find("//"))) {
      open += std::string_view("([{").find(c) != std::string_view::npos ? 1 : 0;
      open -= std::string_view(")]}").find(c) != std::string_view::npos ? 1 : 0;
    }
  }
  return open;
}

TEST(ComingFrom, EveryPieceOfThePageIsInTheExample) {
  const std::filesystem::path source(PACELINE_SOURCE);
  std::vector<Lines> files;
  for (const auto& entry : std::filesystem::directory_iterator(source / "examples/coming_from")) {
    files.push_back(lines_of(entry.path()));
  }
  const std::vector<Lines> pieces = pieces_of(source / "docs/coming-from.md");
  EXPECT_GE(pieces.size(), 22u);
  for (const Lines& piece : pieces) {
    const auto has = [&](const Lines& file) { return stands_in(piece, file); };
    EXPECT_TRUE(std::ranges::any_of(files, has)) << "no file has: " << piece.at(0);
    EXPECT_EQ(open_brackets(piece), 0) << "cut off: " << piece.back();
  }
}

TEST(ComingFrom, EveryPieceRuns) {
  if (sanitized()) GTEST_SKIP() << "the installed library would need the sanitizer's flags";
  const TemporaryFolder folder;
  const std::string program = built_example("coming_from", folder);
  const auto run = [&](const std::string& flags) {
    return output_of({"sh", "-c", "cd '" + folder.path("") + "' && '" + program + "' " + flags},
                     kRunTime);
  };
  const std::string all = run("--threads 1");
  for (const char* said : {"-- loop", "-- print", "validation loss ", "the first of its slopes is ",
                           "Goes on from step 40", "matmul"}) {
    EXPECT_THAT(all, HasSubstr(said));
  }
  EXPECT_TRUE(std::filesystem::exists(folder.path("coming-from-timeline.json")));
  EXPECT_TRUE(std::filesystem::exists(folder.path("coming-from/checkpoints/step-50")));
  for (const char* piece : {"loop", "arrays", "rule", "muon", "early-stopping", "summaries"}) {
    EXPECT_THAT(run("--threads 1 --ps 1 --workers 2 --piece " + std::string(piece)),
                HasSubstr("global steps"));
  }
}

}  // namespace
}  // namespace paceline::testing
