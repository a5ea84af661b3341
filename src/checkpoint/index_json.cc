// The index as JSON (docs/checkpoint.md).
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <span>

#include "base/crc32c.h"
#include "checkpoint/checkpoint_index.h"
#include "checkpoint/data_loss.h"
#include "checkpoint/strict_json.h"

namespace paceline {
namespace {

using Json = nlohmann::json;
// Members keep their order, so that the file has the order in which the documentation describes it.
using Ordered = nlohmann::ordered_json;

constexpr std::string_view kFormat = "paceline checkpoint";
constexpr std::string_view kChecksumBegins = " \"crc32c\": \"";
constexpr int kIndexDepth = 6;  // index, variables, variable, pieces, piece; and one level to spare

Ordered json_of(const TensorInfo& tensor) {
  Ordered object;
  object["name"] = tensor.name;
  object["dtype"] = name_of(tensor.dtype);
  object["shape"] = tensor.shape.dims();
  return object;
}

Ordered json_of(const WrittenFile& file) {
  Ordered object;
  object["file"] = file.file;
  object["bytes"] = file.bytes;
  object["crc32c"] = fmt::format("{:08x}", file.checksum);
  return object;
}

Ordered json_of(const SavedSlot& slot) {
  Ordered object;
  object["name"] = slot.name;
  object["dtype"] = name_of(slot.dtype);
  if (slot.scalar) object["scalar"] = true;
  return object;
}

Ordered json_of(const SavedPiece& piece) {
  Ordered object;
  object["file"] = piece.file;
  object["first_row"] = piece.first_row;
  object["rows"] = piece.rows;
  return object;
}

template <typename T>
Ordered json_of(const std::vector<T>& items);

Ordered json_of(const SavedVariable& variable) {
  Ordered object = json_of(TensorInfo{variable.name, variable.dtype, variable.shape});
  object["rule"] = variable.rule;
  if (!variable.local_rule.empty()) object["local_rule"] = variable.local_rule;
  object["slots"] = json_of(variable.slots);
  object["pieces"] = json_of(variable.pieces);
  return object;
}

Ordered json_of(const SavedTask& task) {
  Ordered object;
  object["task"] = task.task;
  object["step"] = task.step;
  object["applied"] = task.applied;
  object["position"] = Ordered::object();
  for (const auto& [name, value] : task.position) object["position"][name] = value;
  if (!task.sums.empty()) object["sums"] = Ordered::object();
  for (const auto& [name, value] : task.sums) {
    if (std::isfinite(value)) object["sums"][name] = value;
  }
  object["file"] = task.file;
  object["local"] = json_of(task.local);
  return object;
}

template <typename T>
Ordered json_of(const std::vector<T>& items) {
  Ordered list = Ordered::array();
  for (const T& item : items) list.push_back(json_of(item));
  return list;
}

// Writes each item in its own line, so that people can read the file and tools can compare two
// files.
std::string lines_of(const Ordered& value) {
  if (!value.is_array() || value.empty()) return value.dump();
  std::vector<std::string> lines;
  for (const Ordered& item : value) lines.push_back("  " + item.dump());
  return fmt::format("[\n{}\n ]", fmt::join(lines, ",\n"));
}

DType dtype_of_name(const Json& value, const std::string& what) {
  const std::string name = text_of(value, what + ", dtype");
  for (int i = 0; i < kDTypeCount; ++i) {
    if (name_of(DType(i)) == name) return DType(i);
  }
  data_loss(what, fmt::format("dtype '{}' is not known", name));
}

std::int64_t number_at(const Json& object, const char* name, const std::string& what) {
  return whole_number(member(object, name, what), fmt::format("{}, {}", what, name));
}

std::string text_at(const Json& object, const char* name, const std::string& what) {
  return text_of(member(object, name, what), fmt::format("{}, {}", what, name));
}

// Reads a list. Once the name of an item is known, errors begin with it: "PATH: variable 'w'".
template <typename T, typename Read>
std::vector<T> list_at(const Json& object, const char* name, const std::string& what, Read&& read) {
  const Json& list = member(object, name, what);
  if (!list.is_array()) data_loss(what, fmt::format("\"{}\" is no list", name));
  std::vector<T> items;
  for (const Json& item : list) {
    items.push_back(read(item, fmt::format("{}, {}[{}]", what, name, items.size())));
  }
  return items;
}

TensorInfo read_tensor_info(const Json& object, const std::string& what) {
  TensorInfo tensor;
  tensor.name = text_at(object, "name", what);
  const std::string named = fmt::format("{} '{}'", what, tensor.name);
  tensor.dtype = dtype_of_name(member(object, "dtype", named), named);
  tensor.shape = shape_of(member(object, "shape", named), named);
  return tensor;
}

WrittenFile read_file(const Json& object, const std::string& what) {
  WrittenFile file;
  file.file = text_at(object, "file", what);
  file.bytes = std::uint64_t(number_at(object, "bytes", what));
  const std::string checksum = text_at(object, "crc32c", what);
  if (checksum.size() != 8 || checksum.find_first_not_of("0123456789abcdef") != std::string::npos) {
    data_loss(what, fmt::format("crc32c '{}' is not of 8 digits 0 to f", checksum));
  }
  file.checksum = std::uint32_t(std::stoul(checksum, nullptr, 16));
  return file;
}

SavedSlot read_slot(const Json& object, const std::string& what) {
  SavedSlot slot;
  slot.name = text_at(object, "name", what);
  slot.dtype = dtype_of_name(member(object, "dtype", what), what);
  if (!object.contains("scalar")) return slot;
  if (!object["scalar"].is_boolean()) data_loss(what, "\"scalar\" is neither true nor false");
  slot.scalar = object["scalar"].get<bool>();
  return slot;
}

SavedPiece read_piece(const Json& object, const std::string& what) {
  return {text_at(object, "file", what), number_at(object, "first_row", what),
          number_at(object, "rows", what)};
}

SavedVariable read_variable(const Json& object, const std::string& what) {
  TensorInfo info = read_tensor_info(object, what);
  const std::string named = fmt::format("{} '{}'", what, info.name);
  SavedVariable variable;
  variable.name = std::move(info.name);
  variable.dtype = info.dtype;
  variable.shape = info.shape;
  variable.rule = text_at(object, "rule", named);
  if (object.contains("local_rule")) variable.local_rule = text_at(object, "local_rule", named);
  variable.slots = list_at<SavedSlot>(object, "slots", named, read_slot);
  variable.pieces = list_at<SavedPiece>(object, "pieces", named, read_piece);
  return variable;
}

std::map<std::string, double> read_sums(const Json& object, const std::string& what) {
  if (!object.is_object()) data_loss(what, "\"sums\" is no object");
  std::map<std::string, double> sums;
  for (const auto& [name, value] : object.items()) {
    if (!value.is_number()) data_loss(what, fmt::format("sums {} is no number", name));
    sums[name] = value.get<double>();
  }
  return sums;
}

DataNames read_names(const Json& object, const std::string& what) {
  if (!object.is_object()) data_loss(what, "it is no object");
  DataNames names;
  for (const auto& [kind, unused] : object.items()) {
    names[kind] = list_at<std::string>(object, kind.c_str(), what, text_of);
  }
  return names;
}

std::map<std::string, std::string> read_texts(const Json& object, const std::string& path,
                                              const char* what) {
  if (!object.is_object()) data_loss(path, fmt::format("\"{}\" is no object", what));
  std::map<std::string, std::string> texts;
  for (const auto& [name, text] : object.items()) {
    texts[name] = text_of(text, fmt::format("{}, {} {}", path, what, name));
  }
  return texts;
}

SavedTask read_task(const Json& object, const std::string& what) {
  SavedTask task;
  task.task = text_at(object, "task", what);
  const std::string named = fmt::format("{} '{}'", what, task.task);
  task.step = number_at(object, "step", named);
  task.applied = number_at(object, "applied", named);
  const Json& position = member(object, "position", named);
  if (!position.is_object()) data_loss(named, "\"position\" is no object");
  for (const auto& [name, value] : position.items()) {
    task.position[name] = whole_number(value, fmt::format("{}, position {}", named, name));
  }
  if (object.contains("sums")) task.sums = read_sums(object["sums"], named);
  task.file = text_at(object, "file", named);
  task.local = list_at<TensorInfo>(object, "local", named, read_tensor_info);
  return task;
}

// Returns the last line of an index, which has the checksum of all bytes before it.
std::string last_line_of(std::string_view text) {
  return fmt::format("{}{:08x}\"\n}}\n", kChecksumBegins, crc32c(std::as_bytes(std::span(text))));
}

void check_checksum(std::string_view json, const std::string& path) {
  const std::size_t line = json.rfind(kChecksumBegins);
  const std::string_view text = json.substr(0, std::min(line, json.size()));
  if (json.substr(text.size()) == last_line_of(text)) return;
  data_loss(path, "it was changed since it was written: its CRC-32C is another");
}

void check_version(const Json& object, const std::string& path) {
  const std::int64_t version = number_at(object, "version", path);
  if (version == CheckpointIndex::kVersion) return;
  if (version == CheckpointIndex::kVersionWithoutChecksum && !object.contains("crc32c")) return;
  data_loss(path, fmt::format("version {} of the index; this program reads version {}", version,
                              CheckpointIndex::kVersion));
}

void check_whole(const Json& object, std::string_view json, const std::string& path) {
  if (text_at(object, "format", path) != kFormat) data_loss(path, "it is no checkpoint's index");
  check_version(object, path);
  if (object["version"] != CheckpointIndex::kVersionWithoutChecksum) check_checksum(json, path);
}

}  // namespace

std::string kept_text(const std::string& text) {
  return Json::parse(Json(text).dump(-1, ' ', false, Json::error_handler_t::replace));
}

DataNames kept_names(DataNames names) {
  for (auto& [kind, list] : names) {
    for (std::string& name : list) {
      name = kept_text(name);
    }
  }
  return names;
}

std::string CheckpointIndex::to_json() const {
  Ordered object;
  object["format"] = kFormat;
  object["version"] = kVersion;
  object["global_step"] = global_step;
  object["notes"] = Ordered::object();
  for (const auto& [name, text] : notes) object["notes"][name] = text;
  if (!data.empty()) object["data"] = data;
  if (!modules.empty()) object["modules"] = modules;
  if (!settings.empty()) object["settings"] = Ordered::object();
  for (const auto& [name, value] : settings) object["settings"][name] = kept_text(value);
  object["files"] = json_of(files);
  object["variables"] = json_of(variables);
  object["tasks"] = json_of(tasks);
  std::vector<std::string> lines;
  for (const auto& [name, value] : object.items()) {
    lines.push_back(fmt::format(" {}: {}", Ordered(name).dump(), lines_of(value)));
  }
  const std::string text = fmt::format("{{\n{},\n", fmt::join(lines, ",\n"));
  return text + last_line_of(text);
}

CheckpointIndex CheckpointIndex::from_json(std::string_view json, const std::string& path) {
  const Json object = parse_strict(json, path, kIndexDepth);
  check_whole(object, json, path);
  CheckpointIndex index;
  index.global_step = number_at(object, "global_step", path);
  index.notes = read_texts(member(object, "notes", path), path, "notes");
  if (object.contains("data")) index.data = read_names(object["data"], path + ", data");
  if (object.contains("modules")) index.modules = read_texts(object["modules"], path, "modules");
  if (object.contains("settings"))
    index.settings = read_texts(object["settings"], path, "settings");
  index.files = list_at<WrittenFile>(object, "files", path, read_file);
  index.variables = list_at<SavedVariable>(object, "variables", path, read_variable);
  index.tasks = list_at<SavedTask>(object, "tasks", path, read_task);
  check_index(index, path);
  return index;
}

}  // namespace paceline
