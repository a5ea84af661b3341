#include "checkpoint/testing/sample_checkpoint.h"

#include "checkpoint/safetensors_writer.h"

namespace paceline::testing {
namespace {

const std::vector<SavedSlot> kAdamSlots = {
    {"m", DType::kFloat32}, {"v", DType::kFloat32}, {"t", DType::kInt64, true}};

Tensor sample_tensor(std::int64_t step, const SavedVariable& variable, const SavedPiece& piece,
                     std::size_t array) {
  const TensorInfo info = piece_tensor(variable, piece, array);
  if (info.dtype == DType::kInt64) {
    // The pieces after the first have seen one update more than the first.
    return Tensor::of<std::int64_t>({1}, {step + (piece.first_row > 0 ? 1 : 0)});
  }
  std::vector<float> values;
  std::vector<BFloat16> halves;
  const std::int64_t row = variable.shape.rank() < 2 ? 1 : variable.shape[1];
  for (std::int64_t i = 0; i < info.shape.elements(); ++i) {
    values.push_back(sample_value(step, variable.name, array, piece.first_row * row + i));
    halves.emplace_back(values.back());
  }
  if (info.dtype == DType::kBFloat16) return Tensor::of(info.shape, halves);
  return Tensor::of(info.shape, values);
}

WrittenFile write_shard(const std::string& folder, const CheckpointIndex& index,
                        const std::string& file, const Disk& disk) {
  SafetensorsWriter writer(folder + "/" + file, shard_tensors(index.variables, file), {}, disk);
  std::size_t next = 0;
  for (const SavedVariable& variable : index.variables) {
    for (const SavedPiece& piece : variable.pieces) {
      for (std::size_t array = 0; piece.file == file && array < variable.arrays(); ++array) {
        const Tensor tensor = sample_tensor(index.global_step, variable, piece, array);
        writer.write(next++, {static_cast<const std::byte*>(tensor.raw()), tensor.bytes()});
      }
    }
  }
  return writer.finish();
}

}  // namespace

std::vector<SavedVariable> sample_variables(int shards) {
  std::vector<SavedVariable> variables = {
      {"embedding", DType::kFloat32, {10, 3}, "adam", kAdamSlots, {}},
      {"bias", DType::kFloat32, {3}, "adam", kAdamSlots, {{shard_name(0, shards), 0, 3}}},
      {"half", DType::kBFloat16, {2}, "sgd", {}, {{shard_name(shards - 1, shards), 0, 2}}},
      {"scale", DType::kFloat32, {}, "sgd", {}, {{shard_name(0, shards), 0, 1}}}};
  for (int i = 0; i < shards; ++i) {
    const std::int64_t first = 10 * i / shards;
    variables[0].pieces.push_back({shard_name(i, shards), first, 10 * (i + 1) / shards - first});
  }
  return variables;
}

CheckpointIndex sample_index(std::int64_t step, int shards) {
  CheckpointIndex index;
  index.global_step = step;
  index.notes = {{"model", "sample"}};
  index.variables = sample_variables(shards);
  for (int i = 0; i < shards; ++i) index.files.push_back({shard_name(i, shards), 0, 0});
  index.files.push_back({local_name("worker:0"), 0, 0});
  index.tasks = {{"worker:0",
                  step / 2,
                  step / 2,
                  {{"batch", 17}, {"epoch", 2}},
                  local_name("worker:0"),
                  {{"train/lstm/h", DType::kFloat32, {2, 2}}}},
                 {"worker:1", step - step / 2, step - step / 2, {}, "", {}}};
  return index;
}

float sample_value(std::int64_t step, const std::string& variable, std::size_t array,
                   std::int64_t element) {
  return float(1000 * step + 100 * std::int64_t(array) + element) + float(variable.size()) / 16;
}

void write_sample_files(const std::string& folder, CheckpointIndex& index, const Disk& disk) {
  for (WrittenFile& file : index.files) {
    if (file.file == local_name("worker:0")) {
      const NamedTensor local{"train/lstm/h", Tensor::of<float>({2, 2}, {1, 2, 3, 4})};
      file = write_safetensors(folder + "/" + file.file, std::span(&local, 1), {}, disk);
    } else {
      file = write_shard(folder, index, file.file, disk);
    }
  }
}

std::string save_sample(const std::string& checkpoints, std::int64_t step, int shards,
                        const Disk& disk) {
  const Checkpoints where(checkpoints, disk);
  CheckpointSave save(where, step, disk);
  CheckpointIndex index = sample_index(step, shards);
  write_sample_files(save.folder(), index, disk);
  return save.finish(index);
}

}  // namespace paceline::testing
