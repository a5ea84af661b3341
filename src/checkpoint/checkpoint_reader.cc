#include "checkpoint/checkpoint_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fnmatch.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/row_count.h"
#include "checkpoint/checkpoints.h"
#include "checkpoint/data_loss.h"
#include "checkpoint/input_file.h"
#include "checkpoint/strict_json.h"
#include "paceline/error.h"

namespace paceline {
namespace {

namespace fs = std::filesystem;

// The ending that other programs give to the index of several safetensors files.
constexpr std::string_view kSeveralFilesEnding = ".safetensors.index.json";
constexpr std::string_view kBestEnding = ":best";
constexpr const char* kTensorFiles[] = {"model.safetensors.index.json", "model.safetensors"};

std::size_t bytes_of_row(const TensorInfo& tensor) {
  const std::int64_t rows = row_count(tensor.shape);
  return rows == 0 ? 0 : std::size_t(tensor.bytes()) / std::size_t(rows);
}

// True if the piece holds some of the rows; if no rows are asked for, any piece does.
bool overlaps(const SavedPiece& piece, std::int64_t first_row, std::int64_t rows) {
  return rows == 0 ||
         (piece.first_row < first_row + rows && first_row < piece.first_row + piece.rows);
}

// Returns the folder of the checkpoint that a path names; empty if the path names a file of
// tensors.
std::string folder_of(const std::string& path) {
  if (fs::is_directory(path)) return path;
  if (fs::path(path).filename() != kIndexName) return "";
  const std::string folder = fs::path(path).parent_path();
  return folder.empty() ? "." : folder;
}

}  // namespace

CheckpointReader::CheckpointReader(const std::string& path) : path_(path) {
  if (const std::string folder = folder_of(path); !folder.empty()) {
    open_folder(folder);
  } else if (path.ends_with(kSeveralFilesEnding)) {
    open_several_files(path);
  } else {
    open_lone_file(path);
  }
}

void CheckpointReader::open_folder(const std::string& folder) {
  index_ = read_index(folder);
  for (const WrittenFile& file : index_.files) {
    files_[file.file] = std::make_unique<SafetensorsFile>(folder + "/" + file.file);
  }
  for (const SavedVariable& variable : index_.variables) {
    for (const SavedPiece& piece : variable.pieces) {
      for (std::size_t array = 0; array < variable.arrays(); ++array) {
        check_tensor(piece.file, piece_tensor(variable, piece, array));
      }
    }
  }
  for (const SavedTask& task : index_.tasks) {
    for (const TensorInfo& local : task.local) check_tensor(task.file, local);
  }
}

void CheckpointReader::open_lone_file(const std::string& path) {
  const std::string name = fs::path(path).filename();
  auto file = std::make_unique<SafetensorsFile>(path);
  index_.files = {{name, file->file().size(), 0}};
  for (const StoredTensor& tensor : file->tensors()) add_tensor(name, tensor);
  std::ranges::sort(index_.variables, {}, &SavedVariable::name);
  files_[name] = std::move(file);
}

// This index is an object that maps names of tensors to the files beside it that hold them.
void CheckpointReader::open_several_files(const std::string& path) {
  constexpr int kDepth = 4;
  const auto index = parse_strict(read_text(path, kMaxIndexBytes), path, kDepth);
  const auto& files = member(index, "weight_map", path);
  if (!files.is_object()) data_loss(path, "\"weight_map\" is no object");
  for (const auto& [tensor, value] : files.items()) {
    const std::string name = text_of(value, fmt::format("{}: tensor '{}'", path, tensor));
    if (name != fs::path(name).filename()) {
      data_loss(path, fmt::format("the file '{}' is not beside it", name));
    }
    std::unique_ptr<SafetensorsFile>& file = files_[name];
    if (file == nullptr) {
      file = std::make_unique<SafetensorsFile>((fs::path(path).parent_path() / name).string());
      index_.files.push_back({name, file->file().size(), 0});
    }
    add_tensor(name, file->tensor(tensor));
  }
}

void CheckpointReader::add_tensor(const std::string& file, const StoredTensor& tensor) {
  index_.variables.push_back(
      {tensor.name, tensor.dtype, tensor.shape, "", {}, {{file, 0, row_count(tensor.shape)}}});
}

void CheckpointReader::check_tensor(const std::string& name, const TensorInfo& expected) const {
  const StoredTensor& found = file(name).tensor(expected.name);
  if (found == expected) return;
  data_loss(fmt::format("{}: tensor '{}'", file(name).path(), expected.name),
            fmt::format("{} {}; the index says {} {}", found.shape.str(), name_of(found.dtype),
                        expected.shape.str(), name_of(expected.dtype)));
}

SavedRows CheckpointReader::read(std::string_view name) const {
  const SavedVariable& variable = index_.variable(name);
  return read_rows(variable, 0, row_count(variable.shape));
}

SavedRows CheckpointReader::read_rows(const SavedVariable& variable, std::int64_t first_row,
                                      std::int64_t rows) const {
  SavedRows read;
  for (std::size_t array = 0; array < variable.arrays(); ++array) {
    const bool scalar = array > 0 && variable.slots[array - 1].scalar;
    const DType dtype = array == 0 ? variable.dtype : variable.slots[array - 1].dtype;
    Tensor tensor(dtype, scalar ? Shape{1} : with_rows(variable.shape, rows));
    read_rows(variable, array, first_row, rows,
              {static_cast<std::byte*>(tensor.raw()), tensor.bytes()});
    if (array == 0) {
      read.value = std::move(tensor);
    } else {
      read.slots.push_back(std::move(tensor));
    }
  }
  return read;
}

void CheckpointReader::read_rows(const SavedVariable& variable, std::size_t array,
                                 std::int64_t first_row, std::int64_t rows,
                                 std::span<std::byte> into) const {
  const std::int64_t all = row_count(variable.shape);
  if (first_row < 0 || rows < 0 || first_row > all || rows > all - first_row) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("rows {} to {} of '{}', which has {}", first_row, first_row + rows,
                            variable.name, all));
  }
  const bool scalar = array > 0 && variable.slots.at(array - 1).scalar;
  std::int64_t count = 0;
  for (const SavedPiece& piece : variable.pieces) {
    if (!overlaps(piece, first_row, rows)) continue;
    const StoredTensor& tensor = file(piece.file).tensor(piece_tensor(variable, piece, array).name);
    if (scalar) {
      count = std::max(count, file(piece.file).read(tensor).item<std::int64_t>());
      continue;
    }
    const std::size_t row = bytes_of_row(tensor);
    const std::int64_t first = std::max(first_row, piece.first_row);
    const std::int64_t end = std::min(first_row + rows, piece.first_row + piece.rows);
    if (end <= first) continue;
    file(piece.file)
        .read(tensor, std::size_t(first - piece.first_row) * row,
              into.subspan(std::size_t(first - first_row) * row, std::size_t(end - first) * row));
  }
  if (scalar) std::ranges::copy(std::as_bytes(std::span(&count, 1)), into.begin());
}

std::vector<NamedTensor> CheckpointReader::read_local(const SavedTask& task) const {
  std::vector<NamedTensor> read;
  for (const TensorInfo& local : task.local) {
    const SafetensorsFile& from = file(task.file);
    read.push_back({local.name, from.read(from.tensor(local.name))});
  }
  return read;
}

std::vector<std::string> CheckpointReader::matching(const std::string& pattern) const {
  std::vector<std::string> names, all;
  for (const SavedVariable& variable : index_.variables) {
    all.push_back(variable.name);
    if (fnmatch(pattern.c_str(), variable.name.c_str(), 0) == 0) names.push_back(variable.name);
  }
  if (!names.empty()) return names;
  constexpr std::size_t kShown = 10;
  const std::size_t shown = std::min(all.size(), kShown);
  throw Error(ErrorCode::kNotFound,
              fmt::format("no variable of {} matches '{}'; it has {}{}", path_, pattern,
                          fmt::join(all.begin(), all.begin() + std::ptrdiff_t(shown), ", "),
                          all.size() > shown ? ", …" : ""));
}

std::optional<Checkpoints> checkpoints_in(const std::string& path) {
  if (!fs::is_directory(path) || fs::exists(path + "/" + kIndexName)) return std::nullopt;
  const bool is_run = fs::is_directory(path + "/checkpoints");
  return Checkpoints(is_run ? path + "/checkpoints" : path);
}

std::string passed_over_text(const FoundCheckpoint& torn) {
  return "passes over a checkpoint that is not whole: " + torn.torn;
}

std::optional<std::string> run_of_best(const std::string& path) {
  if (!path.ends_with(kBestEnding) || fs::exists(path)) return std::nullopt;
  return path.substr(0, path.size() - kBestEnding.size());
}

ChosenCheckpoint find_checkpoint(const std::string& path, WholeCheck check) {
  if (const std::optional<std::string> run = run_of_best(path)) {
    const std::optional<Checkpoints> of_run = checkpoints_in(*run);
    if (of_run) return {of_run->best(check).path};
    if (run->empty()) {
      throw Error(
          ErrorCode::kNotFound,
          fmt::format("{}: no run is named; a run without --out keeps no checkpoint", path));
    }
    throw Error(ErrorCode::kNotFound, fmt::format("{}: {} is no folder of a run", path, *run));
  }
  for (const char* name : kTensorFiles) {
    if (fs::is_regular_file(path + "/" + name)) return {path + "/" + name};
  }
  const std::optional<Checkpoints> checkpoints = checkpoints_in(path);
  if (!checkpoints) {
    const std::string folder = folder_of(path);
    const std::string torn = folder.empty() ? "" : why_torn(folder, check);
    if (!torn.empty()) throw Error(ErrorCode::kDataLoss, torn);
    return {path};
  }
  const Checkpoints::Newest newest = checkpoints->newest_whole(check);
  if (newest.whole) return {newest.whole->path, newest.torn};
  if (newest.torn.empty()) {
    throw Error(ErrorCode::kNotFound, fmt::format("no checkpoint in {}", checkpoints->folder()));
  }
  throw Error(ErrorCode::kNotFound, fmt::format("no whole checkpoint in {}: {}",
                                                checkpoints->folder(), newest.torn.front().torn));
}

}  // namespace paceline
