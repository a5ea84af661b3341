#include <fmt/format.h>

#include "base/nearest.h"
#include "cluster/flags/command_line.h"
#include "paceline/data.h"
#include "paceline/error.h"
#include "tools/subcommand.h"

namespace paceline {
namespace {

constexpr std::int64_t kDefaultWords = 1'000'000;

CommandLine data_flags() {
  return {
      "paceline data corpus",
      "Generates text that a language model can learn from. It has 10,000 different words and is "
      "split like Penn Treebank. The same seed gives the same text.",
      R"(Example:
  paceline data corpus --out text --words 1000000
  paceline train ptb --data text)",
      {{"--out", "DIR", "The folder for ptb.train.txt, ptb.valid.txt and ptb.test.txt", "Flags"},
       {"--words", "N",
        fmt::format("The number of words in all three files (default {})", kDefaultWords), "Flags"},
       {"--seed", "S", "The seed of all random numbers (default 1)", "Flags"}}};
}

int make_corpus(const Arguments& arguments) {
  const std::optional<FlagValues> values = parse(data_flags(), arguments);
  if (!values) return 0;
  const std::string folder = values->text("--out");
  if (folder.empty())
    throw Error(ErrorCode::kUsage, "--out DIR is missing: the folder for the text");
  const std::int64_t words = values->whole_number("--words", 1, INT64_MAX).value_or(kDefaultWords);
  const std::int64_t seed = values->whole_number("--seed", 0, INT64_MAX).value_or(1);
  try {
    generate_corpus(folder, words, std::uint64_t(seed));
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kInvalidArgument) {
      refuse_flag("--words", std::to_string(words), error.what());
    }
    if (error.code() == ErrorCode::kNotFound || error.code() == ErrorCode::kFailedPrecondition) {
      refuse_flag("--out", folder, error.what());
    }
    throw;
  }
  fmt::print("{} words in {}/ptb.train.txt, ptb.valid.txt and ptb.test.txt\n", words, folder);
  return 0;
}

}  // namespace

std::vector<CommandLine> data_lines() { return {data_flags()}; }

int data_command(const Arguments& arguments) {
  const std::string usage = "paceline data corpus --out DIR [--words N] [--seed S]";
  if (arguments.empty()) throw Error(ErrorCode::kUsage, "which data? " + usage);
  const std::string& kind = arguments.front();
  if (kind == "--help" || kind == "-h") {
    fmt::print("Usage: {}\n", usage);
    return 0;
  }
  if (kind == "corpus") return make_corpus({arguments.begin() + 1, arguments.end()});
  throw Error(ErrorCode::kUsage,
              fmt::format("unknown data '{}'{} ({})", kind, did_you_mean(kind, {"corpus"}), usage));
}

}  // namespace paceline
