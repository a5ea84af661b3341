#include <fmt/format.h>

#include "base/nearest.h"
#include "cli/flags/command_line.h"
#include "paceline/data.h"
#include "paceline/error.h"
#include "paceline/zoo_data.h"
#include "tools/subcommand.h"

namespace paceline {
namespace {

constexpr std::int64_t kDefaultWords = 1'000'000, kDefaultImages = 50'000;

CommandLine corpus_flags() {
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

CommandLine images_flags() {
  return {
      "paceline data images",
      "Generates images that a classifier can learn from: five shapes, each with stripes or with "
      "checks, in random colours. The files have CIFAR-10's binary format; a fifth as many images "
      "more are for testing. The same seed gives the same images.",
      R"(Example:
  paceline data images --out images --count 10000
  paceline train cifar10 --data images)",
      {{"--out", "DIR", "The folder for data_batch_1.bin to data_batch_5.bin and test_batch.bin",
        "Flags"},
       {"--count", "N", fmt::format("The number of training images (default {})", kDefaultImages),
        "Flags"},
       {"--seed", "S", "The seed of all random numbers (default 1)", "Flags"}}};
}

/// The flags that all kinds of data have.
struct Wanted {
  std::string folder;
  std::int64_t count;
  std::uint64_t seed;
};

Wanted read_wanted(const FlagValues& values, const std::string& count, std::int64_t otherwise) {
  const std::string folder = values.text("--out");
  if (folder.empty())
    throw Error(ErrorCode::kUsage, "--out DIR is missing: the folder for the data");
  return {folder, values.whole_number(count, 1, INT64_MAX).value_or(otherwise),
          std::uint64_t(values.whole_number("--seed", 0, INT64_MAX).value_or(1))};
}

// Makes the data. An error names the flag that is at fault.
void generate(void (*make)(const std::string&, std::int64_t, std::uint64_t), const Wanted& wanted,
              const std::string& count) {
  try {
    make(wanted.folder, wanted.count, wanted.seed);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kInvalidArgument) {
      refuse_flag(count, std::to_string(wanted.count), error.what());
    }
    if (error.code() == ErrorCode::kNotFound || error.code() == ErrorCode::kFailedPrecondition) {
      refuse_flag("--out", wanted.folder, error.what());
    }
    throw;
  }
}

int make_corpus(const Arguments& arguments) {
  const std::optional<FlagValues> values = parse(corpus_flags(), arguments);
  if (!values) return 0;
  const Wanted wanted = read_wanted(*values, "--words", kDefaultWords);
  generate(generate_corpus, wanted, "--words");
  fmt::print("{} words in {}/ptb.train.txt, ptb.valid.txt and ptb.test.txt\n", wanted.count,
             wanted.folder);
  return 0;
}

int make_images(const Arguments& arguments) {
  const std::optional<FlagValues> values = parse(images_flags(), arguments);
  if (!values) return 0;
  const Wanted wanted = read_wanted(*values, "--count", kDefaultImages);
  generate(generate_images, wanted, "--count");
  fmt::print(
      "{} images in {}/data_batch_1.bin to data_batch_5.bin, more for testing in "
      "test_batch.bin\n",
      wanted.count, wanted.folder);
  return 0;
}

}  // namespace

std::vector<CommandLine> data_lines() { return {corpus_flags(), images_flags()}; }

int data_command(const Arguments& arguments) {
  const std::string usage =
      "paceline data corpus --out DIR [--words N] [--seed S], or paceline data images --out DIR "
      "[--count N] [--seed S]";
  if (arguments.empty()) throw Error(ErrorCode::kUsage, "which data? " + usage);
  const std::string& kind = arguments.front();
  if (kind == "--help" || kind == "-h") {
    fmt::print("Usage: {}\n", usage);
    return 0;
  }
  if (kind == "corpus") return make_corpus({arguments.begin() + 1, arguments.end()});
  if (kind == "images") return make_images({arguments.begin() + 1, arguments.end()});
  throw Error(ErrorCode::kUsage, fmt::format("unknown data '{}'{} ({})", kind,
                                             did_you_mean(kind, {"corpus", "images"}), usage));
}

}  // namespace paceline
