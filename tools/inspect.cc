#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <vector>

#include "base/grouped_digits.h"
#include "base/printed.h"
#include "base/row_count.h"
#include "checkpoint/checkpoint_reader.h"
#include "checkpoint/checkpoints.h"
#include "cli/flags/command_line.h"
#include "paceline/error.h"
#include "tools/say.h"
#include "tools/subcommand.h"

namespace paceline {
namespace {

// Norms and differences of values in checkpoints, for `paceline inspect`.

/// Returns the square root of the sum of squares, in double. `array` 0 is the value, and 1 + s is
/// slot s. Reads a few MB at a time.
double norm_of(const CheckpointReader& checkpoint, const SavedVariable& variable,
               std::size_t array);

struct Difference {
  // The largest and mean |a − b|; NaN if somewhere only one of the two is NaN.
  double largest = 0, mean = 0;
};

/// Returns the difference between the values of a variable that has the same shape in both
/// checkpoints.
Difference difference_of(const CheckpointReader& a, const CheckpointReader& b,
                         const SavedVariable& in_a, const SavedVariable& in_b);

constexpr std::int64_t kElementsAtOnce = std::int64_t{1} << 20;

template <typename T>
std::vector<double> converted(const Tensor& tensor) {
  std::vector<double> values;
  values.reserve(std::size_t(tensor.elements()));
  for (const T value : tensor.data<T>()) {
    if constexpr (std::is_arithmetic_v<T>) {
      values.push_back(double(value));
    } else {
      values.push_back(double(float(value)));
    }
  }
  return values;
}

std::vector<double> doubles_of(const Tensor& tensor) {
  switch (tensor.dtype()) {
    case DType::kFloat32:
      return converted<float>(tensor);
    case DType::kFloat64:
      return converted<double>(tensor);
    case DType::kBFloat16:
      return converted<BFloat16>(tensor);
    case DType::kFloat16:
      return converted<Float16>(tensor);
    case DType::kInt32:
      return converted<std::int32_t>(tensor);
    case DType::kInt64:
      return converted<std::int64_t>(tensor);
    case DType::kUInt8:
      return converted<std::uint8_t>(tensor);
    case DType::kBool:
      return converted<bool>(tensor);
  }
  return {};
}

struct Rows {
  std::int64_t first, count;
};

// Returns ranges of rows with about kElementsAtOnce elements each; none if the shape has no
// elements.
std::vector<Rows> ranges_of(const Shape& shape) {
  if (shape.elements() == 0) return {};
  const std::int64_t all = row_count(shape);
  const std::int64_t row = shape.elements() / all;
  const std::int64_t at_once = std::max<std::int64_t>(kElementsAtOnce / row, 1);
  std::vector<Rows> ranges;
  for (std::int64_t first = 0; first < all; first += at_once) {
    ranges.push_back({first, std::min(at_once, all - first)});
  }
  return ranges;
}

std::vector<double> values_of(const CheckpointReader& checkpoint, const SavedVariable& variable,
                              std::size_t array, const Rows& rows) {
  const DType dtype = array == 0 ? variable.dtype : variable.slots[array - 1].dtype;
  const bool scalar = array > 0 && variable.slots[array - 1].scalar;
  const std::int64_t all = row_count(variable.shape);
  const std::int64_t elements = scalar ? 1 : variable.shape.elements() / all * rows.count;
  const Tensor tensor(dtype, {elements});
  checkpoint.read_rows(variable, array, rows.first, rows.count,
                       {static_cast<std::byte*>(tensor.raw()), tensor.bytes()});
  return doubles_of(tensor);
}

double norm_of(const CheckpointReader& checkpoint, const SavedVariable& variable,
               std::size_t array) {
  double squares = 0;
  for (const Rows& rows : ranges_of(variable.shape)) {
    for (const double value : values_of(checkpoint, variable, array, rows)) {
      squares += value * value;
    }
  }
  return printed(std::sqrt(squares));
}

Difference difference_of(const CheckpointReader& a, const CheckpointReader& b,
                         const SavedVariable& in_a, const SavedVariable& in_b) {
  double largest = 0, sum = 0;
  for (const Rows& rows : ranges_of(in_a.shape)) {
    const std::vector<double> left = values_of(a, in_a, 0, rows);
    const std::vector<double> right = values_of(b, in_b, 0, rows);
    for (std::size_t i = 0; i < left.size(); ++i) {
      const bool same = left[i] == right[i] || (std::isnan(left[i]) && std::isnan(right[i]));
      const double apart = same ? 0 : std::abs(left[i] - right[i]);
      largest = std::isnan(apart) || apart > largest ? apart : largest;
      sum += apart;
    }
  }
  if (std::isnan(sum)) largest = sum;
  const auto elements = double(std::max<std::int64_t>(in_a.shape.elements(), 1));
  return {printed(largest), printed(sum / elements)};
}

CommandLine inspect_flags() {
  return {
      "paceline inspect",
      "Shows what a checkpoint holds: its step, and the shape, type, slots and norm (square root "
      "of "
      "the sum of squares) of each variable. With --diff, shows how far two checkpoints are apart.",
      R"(CHECKPOINT is the --out folder of a run or its checkpoints/ (then the newest whole checkpoint is
shown), one checkpoint's folder, its index.json, or any .safetensors file.

Examples:
  paceline inspect out
  paceline inspect out/checkpoints/step-1200 --only 'layer1/*'
  paceline inspect out/checkpoints/step-1200 --diff out/checkpoints/step-1400
  paceline inspect out --check)",
      {{"CHECKPOINT", "PATH", "a folder or a file", "Checkpoint"},
       {"--diff", "OTHER", "Compare the values with those of another checkpoint", "Flags"},
       {"--only", "PATTERN",
        "Show only variables whose names match; * is any text, ? is any character", "Flags"},
       {"--check", "",
        "Read every byte and compare the checksums: those of every checkpoint of a folder, where "
        "the "
        "newest must be whole",
        "Flags"}}};
}

// Returns a table whose columns are as wide as their widest cell. The first `texts` columns are
// aligned to the left, and the others, with numbers, to the right. Control characters in names from
// a file are replaced, so that a row stays one line.
std::string table(std::vector<std::vector<std::string>> rows, std::size_t texts) {
  std::vector<std::size_t> widths;
  for (std::vector<std::string>& row : rows) {
    for (std::string& cell : row) cell = plain_text(cell);
  }
  for (const std::vector<std::string>& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const std::vector<std::string>& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += i < texts ? fmt::format("{:<{}}  ", row[i], widths[i])
                        : fmt::format("{:>{}}  ", row[i], widths[i]);
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

void print_title(const CheckpointReader& checkpoint) {
  const CheckpointIndex& index = checkpoint.index();
  std::uint64_t bytes = 0;
  for (const WrittenFile& file : index.files) bytes += file.bytes;
  const std::string step = index.global_step == CheckpointIndex::kNoStep
                               ? "no step"
                               : "step " + grouped_digits(index.global_step);
  say(fmt::format("{}: {}, {}, {}\n", checkpoint.path(), step,
                  counted(std::int64_t(index.files.size()), "file"),
                  counted(std::int64_t(bytes), "byte")));
  for (const auto& [name, text] : index.notes) say(fmt::format("{}: {}\n", name, text));
  std::vector<std::string> settings;
  for (const auto& [name, value] : index.settings) settings.push_back(name + "=" + value);
  if (!settings.empty()) say(fmt::format("settings: {}\n", fmt::join(settings, ", ")));
}

std::vector<const SavedVariable*> chosen(const CheckpointReader& checkpoint,
                                         const FlagValues& values) {
  const std::string pattern = values.given("--only") ? values.text("--only") : "";
  std::vector<const SavedVariable*> variables;
  if (pattern.empty()) {
    for (const SavedVariable& variable : checkpoint.index().variables) {
      variables.push_back(&variable);
    }
    return variables;
  }
  for (const std::string& name : checkpoint.matching(pattern)) {
    variables.push_back(&checkpoint.index().variable(name));
  }
  return variables;
}

// Returns the norms of the slots, and the counts: "m 0.125, v 2.5e-05, t 1,200".
std::string slots_text(const CheckpointReader& checkpoint, const SavedVariable& variable) {
  std::vector<std::string> texts;
  for (std::size_t array = 1; array < variable.arrays(); ++array) {
    const SavedSlot& slot = variable.slots[array - 1];
    std::int64_t count = 0;
    if (slot.scalar) {
      checkpoint.read_rows(variable, array, 0, row_count(variable.shape),
                           std::as_writable_bytes(std::span(&count, 1)));
    }
    texts.push_back(
        slot.scalar ? fmt::format("{} {}", slot.name, grouped_digits(count))
                    : fmt::format("{} {:.6g}", slot.name, norm_of(checkpoint, variable, array)));
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

void print_variables(const CheckpointReader& checkpoint,
                     const std::vector<const SavedVariable*>& variables) {
  std::vector<std::vector<std::string>> rows = {
      {"variable", "dtype", "shape", "rule", "slots", "norm"}};
  std::int64_t elements = 0;
  for (const SavedVariable* variable : variables) {
    elements += variable->shape.elements();
    rows.push_back({variable->name, std::string(name_of(variable->dtype)), variable->shape.str(),
                    variable->rule, slots_text(checkpoint, *variable),
                    fmt::format("{:.6g}", norm_of(checkpoint, *variable, 0))});
  }
  say(fmt::format("\n{}{} in {}\n", table(rows, 5), counted(elements, "element"),
                  counted(std::int64_t(variables.size()), "variable")));
}

void print_tasks(const CheckpointIndex& index) {
  if (index.tasks.empty()) return;
  std::vector<std::vector<std::string>> rows = {
      {"task", "position", "local variables", "steps", "applied"}};
  for (const SavedTask& task : index.tasks) {
    std::vector<std::string> position, local;
    for (const auto& [name, value] : task.position) {
      position.push_back(fmt::format("{} {}", name, grouped_digits(value)));
    }
    for (const TensorInfo& info : task.local) local.push_back(info.name + " " + info.shape.str());
    rows.push_back({task.task, fmt::format("{}", fmt::join(position, ", ")),
                    fmt::format("{}", fmt::join(local, ", ")), grouped_digits(task.step),
                    grouped_digits(task.applied)});
  }
  say(fmt::format("\n{}", table(rows, 3)));
}

// Says for every checkpoint of a run whether it is whole. Throws kDataLoss if the newest is not.
void check_all(const Checkpoints& checkpoints) {
  const std::vector<FoundCheckpoint> found = checkpoints.list(WholeCheck::kChecksums);
  for (const FoundCheckpoint& each : found) {
    say(fmt::format("{}: {}\n", each.path,
                    each.torn.empty() ? "whole" : "not whole: " + each.torn));
  }
  if (found.empty() || found.front().torn.empty()) return;
  throw Error(ErrorCode::kDataLoss,
              fmt::format("the newest checkpoint in {} is not whole", checkpoints.folder()));
}

void check_bytes(const CheckpointReader& checkpoint) {
  const std::filesystem::path path = checkpoint.path();
  if (checkpoint.index().global_step == CheckpointIndex::kNoStep) {
    throw Error(ErrorCode::kUsage,
                fmt::format("--check: {} is a single file without checksums", path.string()));
  }
  const std::string folder = std::filesystem::is_directory(path) ? path : path.parent_path();
  const std::string torn = why_torn(folder.empty() ? "." : folder, WholeCheck::kChecksums);
  if (!torn.empty()) throw Error(ErrorCode::kDataLoss, torn);
  say("all checksums are correct\n");
}

// Opens the checkpoint and prints its title. With `check`, it also reads every byte of the files.
CheckpointReader open_checkpoint(const std::string& given, bool check) {
  const std::optional<Checkpoints> run = checkpoints_in(given);
  if (run && check) check_all(*run);
  const ChosenCheckpoint chosen = find_checkpoint(given, WholeCheck::kSizes);
  CheckpointReader checkpoint(chosen.path);
  for (const FoundCheckpoint& torn : chosen.passed_over) {
    if (!check) say(passed_over_text(torn) + "\n");
  }
  print_title(checkpoint);
  if (check && !run) check_bytes(checkpoint);
  return checkpoint;
}

std::vector<std::string> difference_row(const CheckpointReader& a, const CheckpointReader& b,
                                        const SavedVariable& in_a, const SavedVariable& in_b) {
  if (in_a.shape != in_b.shape) {
    return {in_a.name, fmt::format("{} and {}", in_a.shape.str(), in_b.shape.str())};
  }
  const Difference difference = difference_of(a, b, in_a, in_b);
  std::string shape = in_a.shape.str();
  if (in_a.dtype != in_b.dtype) {
    shape += fmt::format(" {} and {}", name_of(in_a.dtype), name_of(in_b.dtype));
  }
  return {in_a.name, shape, fmt::format("{:.6g}", difference.largest),
          fmt::format("{:.6g}", difference.mean)};
}

void print_only_in(const std::vector<const SavedVariable*>& here,
                   const CheckpointReader& checkpoint,
                   const std::vector<const SavedVariable*>& there) {
  for (const SavedVariable* variable : here) {
    if (std::ranges::find(there, variable->name, &SavedVariable::name) == there.end()) {
      say(fmt::format("only in {}: {} {}\n", checkpoint.path(), variable->name,
                      variable->shape.str()));
    }
  }
}

void print_difference(const CheckpointReader& a, const CheckpointReader& b,
                      const std::vector<const SavedVariable*>& in_a,
                      const std::vector<const SavedVariable*>& in_b) {
  std::vector<std::vector<std::string>> rows = {{"variable", "shape", "max |a-b|", "mean |a-b|"}};
  for (const SavedVariable* variable : in_a) {
    const auto other = std::ranges::find(in_b, variable->name, &SavedVariable::name);
    if (other != in_b.end()) rows.push_back(difference_row(a, b, *variable, **other));
  }
  say(fmt::format("\n{}", table(rows, 2)));
  print_only_in(in_a, a, in_b);
  print_only_in(in_b, b, in_a);
}

}  // namespace

std::vector<CommandLine> inspect_lines() { return {inspect_flags()}; }

int inspect_command(const Arguments& arguments) {
  const std::optional<FlagValues> values = parse(inspect_flags(), arguments);
  if (!values) return 0;
  const bool check = values->given("--check");
  const CheckpointReader checkpoint = open_checkpoint(values->text("CHECKPOINT"), check);
  if (!values->given("--diff")) {
    print_variables(checkpoint, chosen(checkpoint, *values));
    if (!values->given("--only")) print_tasks(checkpoint.index());
    return 0;
  }
  const CheckpointReader other = open_checkpoint(values->text("--diff"), check);
  print_difference(checkpoint, other, chosen(checkpoint, *values), chosen(other, *values));
  return 0;
}

}  // namespace paceline
