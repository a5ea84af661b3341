#include "checkpoint/checkpoints.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "checkpoint/data_loss.h"
#include "checkpoint/input_file.h"
#include "checkpoint/new_file.h"
#include "paceline/error.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "step-";
constexpr std::string_view kUnfinished = ".part";
constexpr const char* kBestName = "best.json";
constexpr std::string_view kReportPrefix = "evaluated-", kReportEnding = ".json";
constexpr std::uint64_t kMaxMarkBytes = std::uint64_t{1} << 20;

// Returns N of "step-N"; nullopt for any other name.
std::optional<std::int64_t> step_of(std::string_view name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  std::int64_t step = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), step);
  const bool number = error == std::errc() && end == name.data() + name.size();
  // "step-007" is not the folder of step 7, whose name is "step-7".
  return number && std::to_string(step) == name ? std::optional(step) : std::nullopt;
}

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  fs::directory_iterator entries(folder, error);
  if (error == std::errc::no_such_file_or_directory) return names;
  for (; !error && entries != fs::directory_iterator(); entries.increment(error)) {
    names.push_back(entries->path().filename());
  }
  if (!error) return names;
  throw Error(ErrorCode::kNotFound,
              fmt::format("cannot read the folder {}: {}", folder, error.message()));
}

void check_file(const std::string& path, const WrittenFile& expected, WholeCheck check) {
  const InputFile file(path);
  if (file.size() != expected.bytes) {
    data_loss(path, fmt::format("{} bytes; the index says {}", file.size(), expected.bytes));
  }
  if (check == WholeCheck::kSizes) return;
  if (const std::uint32_t found = checksum_of(file, expected.bytes); found != expected.checksum) {
    data_loss(path, fmt::format("CRC-32C {:08x}; the index says {:08x}", found, expected.checksum));
  }
}

}  // namespace

CheckpointIndex read_index(const std::string& path) {
  const std::string file = path + "/" + kIndexName;
  return CheckpointIndex::from_json(read_text(file, kMaxIndexBytes), file);
}

std::string why_torn(const std::string& path, WholeCheck check) {
  try {
    const CheckpointIndex index = read_index(path);
    const std::optional<std::int64_t> step = step_of(fs::path(path).filename().string());
    if (step && *step != index.global_step) {
      return fmt::format("{}: its index says step {}", path, index.global_step);
    }
    for (const WrittenFile& file : index.files) check_file(path + "/" + file.file, file, check);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kUnavailable) throw;
    return error.what();
  }
  return "";
}

Checkpoints::Checkpoints(std::string folder, const Disk& disk)
    : folder_(std::move(folder)), disk_(disk) {}

std::string Checkpoints::path_of(std::int64_t step) const {
  return fmt::format("{}/{}{}", folder_, kPrefix, step);
}

std::vector<FoundCheckpoint> Checkpoints::list(WholeCheck check) const {
  std::vector<FoundCheckpoint> found;
  for (const std::string& name : names_in(folder_)) {
    if (const auto step = step_of(name)) found.push_back({folder_ + "/" + name, *step, ""});
  }
  std::ranges::sort(found, std::ranges::greater{}, &FoundCheckpoint::step);
  for (FoundCheckpoint& checkpoint : found) checkpoint.torn = why_torn(checkpoint.path, check);
  return found;
}

Checkpoints::Newest Checkpoints::newest_whole(WholeCheck check) const {
  Newest newest;
  for (FoundCheckpoint& found : list(WholeCheck::kSizes)) {
    if (found.torn.empty() && check == WholeCheck::kChecksums) {
      found.torn = why_torn(found.path, check);
    }
    if (found.torn.empty()) {
      newest.whole = std::move(found);
      break;
    }
    newest.torn.push_back(std::move(found));
  }
  return newest;
}

std::optional<FoundCheckpoint> Checkpoints::newest_to_name() const {
  try {
    return newest_whole(WholeCheck::kSizes).whole;
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::vector<std::string> Checkpoints::keep_last(int count,
                                                std::span<const std::int64_t> also) const {
  const std::optional<BestMark> marked = mark();
  const auto is_wanted = [&](std::int64_t step) {
    return (marked && marked->best && marked->best->step == step) ||
           std::ranges::find(also, step) != also.end();
  };
  std::vector<std::string> removed;
  int whole = 0;
  for (const FoundCheckpoint& found : list(WholeCheck::kSizes)) {
    const bool keep = found.torn.empty() ? whole < std::max(count, 1) : whole == 0;
    whole += found.torn.empty() ? 1 : 0;
    if (keep || is_wanted(found.step)) continue;
    remove(found.step);
    removed.push_back(found.path);
  }
  return removed;
}

void Checkpoints::remove(std::int64_t step) const {
  const std::string path = path_of(step);
  if (!fs::exists(path)) return;
  // The name must differ from that of a checkpoint which is being saved.
  const std::string deleted = fmt::format("{}.deleted{}", path, kUnfinished);
  disk_.remove(deleted);
  disk_.rename(path, deleted);
  disk_.remove(deleted);
}

std::string Checkpoints::put_aside(std::int64_t step) const {
  std::string aside = path_of(step) + ".torn";
  disk_.remove(aside);
  disk_.rename(path_of(step), aside);
  return aside;
}

void Checkpoints::remove_unfinished() const {
  for (const std::string& name : names_in(folder_)) {
    const bool unfinished = name.starts_with(kPrefix) && name.ends_with(kUnfinished);
    if (unfinished) disk_.remove(folder_ + "/" + name);
  }
}

void Checkpoints::write_whole(const std::string& name, const std::string& text) const {
  disk_.make_folder(folder_);
  NewFile file(folder_ + "/" + name, disk_);
  file.write_at(std::as_bytes(std::span(text)), 0);
  file.commit();
}

std::optional<BestMark> Checkpoints::mark() const {
  const std::string path = folder_ + "/" + kBestName;
  if (!fs::exists(path)) return std::nullopt;
  return BestMark::from_json(read_text(path, kMaxMarkBytes), path);
}

void Checkpoints::set_mark(const BestMark& mark) const { write_whole(kBestName, mark.to_json()); }

FoundCheckpoint Checkpoints::best(WholeCheck check) const {
  const std::optional<BestMark> marked = mark();
  if (!marked || !marked->best) {
    throw Error(ErrorCode::kNotFound,
                fmt::format("no checkpoint in {} is marked as the best: {}", folder_,
                            marked ? "none was evaluated yet"
                                   : "--keep-best NAME of the run would have marked one"));
  }
  const FoundCheckpoint found = {path_of(marked->best->step), marked->best->step,
                                 why_torn(path_of(marked->best->step), check)};
  if (!found.torn.empty()) throw Error(ErrorCode::kDataLoss, found.torn);
  return found;
}

void Checkpoints::remove_mark() const {
  disk_.remove(folder_ + "/" + kBestName);
  for (const std::string& path : reports()) remove_report(path);
}

void Checkpoints::report(const EvaluationReport& report) const {
  write_whole(fmt::format("{}{}{}", kReportPrefix, report.step, kReportEnding), report.to_json());
}

std::vector<std::string> Checkpoints::reports() const {
  std::vector<std::string> paths;
  for (const std::string& name : names_in(folder_)) {
    if (name.starts_with(kReportPrefix) && name.ends_with(kReportEnding)) {
      paths.push_back(folder_ + "/" + name);
    }
  }
  std::ranges::sort(paths);
  return paths;
}

EvaluationReport Checkpoints::read_report(const std::string& path) const {
  return EvaluationReport::from_json(read_text(path, kMaxMarkBytes), path);
}

void Checkpoints::remove_report(const std::string& path) const { disk_.remove(path); }

}  // namespace paceline
