#include "checkpoint/checkpoint_index.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/nearest.h"
#include "base/row_count.h"
#include "checkpoint/data_loss.h"
#include "paceline/error.h"

namespace paceline {
namespace {

// Names of one kind, each once.
class Names {
 public:
  Names(const std::string& path, const char* kind) : path_(path), kind_(kind) {}
  void add(const std::string& name) {
    if (name.empty()) data_loss(path_, fmt::format("a {} without a name", kind_));
    if (!names_.insert(name).second) {
      data_loss(path_, fmt::format("{} '{}' is there twice", kind_, name));
    }
  }
  bool contains(const std::string& name) const { return names_.contains(name); }

 private:
  const std::string& path_;
  const char* const kind_;
  std::set<std::string> names_;
};

// True if the name is that of a file in the folder itself.
bool is_plain(const std::string& name) {
  return name.find('/') == std::string::npos && name != "." && name != "..";
}

void check_pieces(const SavedVariable& variable, const Names& files, const std::string& what) {
  std::int64_t next = 0;
  const std::int64_t rows = row_count(variable.shape);
  for (const SavedPiece& piece : variable.pieces) {
    if (!files.contains(piece.file)) {
      data_loss(what, fmt::format("its file '{}' is not among the files", piece.file));
    }
    const bool empty = piece.rows == 0 && rows > 0;
    if (piece.first_row != next || piece.rows > rows - next || empty) {
      data_loss(what, fmt::format("the piece of {} rows from {} does not follow row {} of {}",
                                  piece.rows, piece.first_row, next, rows));
    }
    next += piece.rows;
  }
  if (next != rows || variable.pieces.empty()) {
    data_loss(what, fmt::format("its pieces hold {} of {} rows", next, rows));
  }
}

void check_variable(const SavedVariable& variable, const Names& files, const std::string& path) {
  const std::string what = fmt::format("{}: variable '{}'", path, variable.name);
  Names slots(what, "slot");
  for (const SavedSlot& slot : variable.slots) {
    slots.add(slot.name);
    if (slot.scalar && slot.dtype != DType::kInt64) {
      data_loss(what, fmt::format("slot '{}' is a count in {}", slot.name, name_of(slot.dtype)));
    }
  }
  check_pieces(variable, files, what);
}

void check_task(const SavedTask& task, const Names& files, const std::string& path) {
  const std::string what = fmt::format("{}: task '{}'", path, task.task);
  Names local(what, "local variable");
  for (const TensorInfo& variable : task.local) local.add(variable.name);
  if (task.file.empty() ? !task.local.empty() : !files.contains(task.file)) {
    data_loss(what, fmt::format("its file '{}' is not among the files", task.file));
  }
}

}  // namespace

std::size_t SavedVariable::array_of_slot(std::string_view slot) const {
  const auto found = std::ranges::find(slots, slot, &SavedSlot::name);
  return found == slots.end() ? 0 : 1 + std::size_t(found - slots.begin());
}

const SavedVariable& CheckpointIndex::variable(std::string_view name) const {
  const auto found = std::ranges::find(variables, name, &SavedVariable::name);
  if (found != variables.end()) return *found;
  std::vector<std::string_view> names;
  for (const SavedVariable& variable : variables) names.push_back(variable.name);
  throw Error(ErrorCode::kNotFound, fmt::format("the checkpoint has no variable '{}'{}", name,
                                                did_you_mean(name, names)));
}

const SavedTask* CheckpointIndex::task(std::string_view name) const {
  const auto found = std::ranges::find(tasks, name, &SavedTask::task);
  return found == tasks.end() ? nullptr : &*found;
}

TensorInfo piece_tensor(const SavedVariable& variable, const SavedPiece& piece, std::size_t array) {
  TensorInfo tensor{variable.name, variable.dtype, variable.shape};
  if (piece.rows != row_count(variable.shape)) {
    tensor.name += fmt::format("[{}:{}]", piece.first_row, piece.first_row + piece.rows);
    std::vector<std::int64_t> dims(variable.shape.dims().begin(), variable.shape.dims().end());
    dims[0] = piece.rows;
    tensor.shape = Shape(std::span<const std::int64_t>(dims));
  }
  if (array == 0) return tensor;
  const SavedSlot& slot = variable.slots.at(array - 1);
  tensor.name += ":" + slot.name;
  tensor.dtype = slot.dtype;
  if (slot.scalar) tensor.shape = Shape{1};
  return tensor;
}

void check_index(const CheckpointIndex& index, const std::string& path) {
  Names files(path, "file"), variables(path, "variable"), tasks(path, "task");
  for (const WrittenFile& file : index.files) {
    files.add(file.file);
    if (!is_plain(file.file)) {
      data_loss(path, fmt::format("file '{}' is not in the checkpoint's folder", file.file));
    }
  }
  for (const SavedVariable& variable : index.variables) {
    variables.add(variable.name);
    check_variable(variable, files, path);
  }
  for (const SavedTask& task : index.tasks) {
    tasks.add(task.task);
    check_task(task, files, path);
  }
}

}  // namespace paceline
