// The index of a checkpoint: what was saved, and which file holds it. docs/checkpoint.md describes
// the format.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/safetensors_header.h"
#include "checkpoint/safetensors_writer.h"
#include "checkpoint/torch_names.h"

namespace paceline {

/// One slot of a rule. A slot has as many elements as the variable or its piece, or it is one int64
/// for each piece.
struct SavedSlot {
  std::string name;  // "m"
  DType dtype = DType::kFloat32;
  bool scalar = false;  // a count of the rule, in kInt64
  bool operator==(const SavedSlot&) const = default;
};

/// Rows [first_row, first_row + rows) of a variable and its slots, in one file. A scalar has one
/// row.
struct SavedPiece {
  std::string file;
  std::int64_t first_row = 0, rows = 0;
  bool operator==(const SavedPiece&) const = default;
};

/// Names for numbers in the data, by kind: name i of "classes" belongs to label i.
using DataNames = std::map<std::string, std::vector<std::string>>;

/// A shared variable.
struct SavedVariable {
  std::string name;
  DType dtype = DType::kFloat32;
  Shape shape;
  std::string rule;  // its name; empty: no rule updates it
  std::vector<SavedSlot> slots;
  std::vector<SavedPiece> pieces;  // ordered by rows; every row is in exactly one piece
  /// The rule of the workers' local steps; the workers keep its slots. `rule` then applies what
  /// several local steps have made. If this is empty, `rule` applies each step.
  std::string local_rule = {};

  bool makes_local_steps() const { return !local_rule.empty(); }
  const std::string& step_rule() const { return local_rule.empty() ? rule : local_rule; }
  /// The arrays of a variable: array 0 is the value, and the slots follow.
  std::size_t arrays() const { return 1 + slots.size(); }
  /// Returns the array of the slot of this name; that of the value if there is no such slot.
  std::size_t array_of_slot(std::string_view slot) const;
  bool operator==(const SavedVariable&) const = default;
};

/// The state that belongs to one task.
struct SavedTask {
  std::string task;          // "worker:0"
  std::int64_t step = 0;     // the task's own step, on which its random numbers depend
  std::int64_t applied = 0;  // its steps that the shards have applied
  // Its place in its data, by the numbers that its pipeline reports: "epoch", "batch", …
  std::map<std::string, std::int64_t> position;
  // The file with its local variables; empty: it has none.
  std::string file;
  std::vector<TensorInfo> local;            // their names tell graphs apart: "train/lstm/h"
  std::map<std::string, double> sums = {};  // so far, by name: "cost"; all are finite
  bool operator==(const SavedTask&) const = default;
};

struct CheckpointIndex {
  static constexpr int kVersion = 2;
  /// The version that Paceline 0.1.0 wrote, without a checksum of the index. It can still be read.
  static constexpr int kVersionWithoutChecksum = 1;
  /// The step of a single safetensors file, which does not name one.
  static constexpr std::int64_t kNoStep = -1;

  std::int64_t global_step = kNoStep;
  std::map<std::string, std::string> notes;  // facts about the run: "model", "seed", …
  std::vector<WrittenFile> files;
  std::vector<SavedVariable> variables;
  std::vector<SavedTask> tasks;
  DataNames data = {};  // empty: not known
  // The names that an export gives to modules; scopes that are not listed keep their own names.
  ModuleNames modules = {};
  /// The settings of the program that were given, by name.
  std::map<std::string, std::string> settings = {};

  /// Returns the variable of this name. Throws kNotFound naming the nearest one.
  const SavedVariable& variable(std::string_view name) const;
  const SavedTask* task(std::string_view name) const;  // null: not saved

  std::string to_json() const;
  /// Reads the text of an index. Throws kDataLoss that begins with `path` if the text was changed,
  /// or describes an impossible variable, file or task, which the message names.
  static CheckpointIndex from_json(std::string_view json, const std::string& path);
  bool operator==(const CheckpointIndex&) const = default;
};

/// Returns the text in valid UTF-8, as the index needs it; other bytes are replaced.
std::string kept_text(const std::string& text);
/// Makes each of the names valid UTF-8, as kept_text does.
DataNames kept_names(DataNames names);

/// Returns how an array of a piece appears in its file: the value of a whole variable as "w", and
/// its slot m as "w:m"; the arrays for rows 0 to 511 of a split variable as "w[0:512]" and
/// "w[0:512]:m". A scalar slot has the shape (1).
TensorInfo piece_tensor(const SavedVariable& variable, const SavedPiece& piece, std::size_t array);

/// Throws kDataLoss that begins with `path` if the parts do not fit together, for example a name
/// that appears twice, rows of a variable that no piece or several pieces hold, or a file that is
/// not listed.
void check_index(const CheckpointIndex& index, const std::string& path);

}  // namespace paceline
