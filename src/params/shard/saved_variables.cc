#include "params/shard/saved_variables.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>

#include "checkpoint/checkpoint_save.h"
#include "params/variable_arrays.h"

namespace paceline {

std::vector<SavedVariable> saved_variables(std::span<const VariableSpec> variables,
                                           std::span<const Piece> pieces, int shards) {
  std::vector<SavedVariable> saved;
  for (const VariableSpec& variable : variables) {
    SavedVariable& made = saved.emplace_back();
    made.name = variable.name;
    made.dtype = variable.dtype;
    made.shape = variable.shape;
    if (variable.trained) made.rule = variable.rule.name();
    for (const SlotSpec& slot : slots_of(variable)) {
      made.slots.push_back({slot.name, slot.scalar ? DType::kInt64 : DType::kFloat32, slot.scalar});
    }
  }
  for (const Piece& piece : pieces) {
    saved[std::size_t(piece.variable)].pieces.push_back(
        {shard_name(piece.ps, shards), piece.first_row, piece.rows});
  }
  return saved;
}

WrittenFile write_shard(const std::string& path, std::span<const VariableSpec> variables,
                        std::span<const Piece> pieces, int shard, int shards,
                        const ReadMoment& read) {
  SafetensorsWriter writer(
      path, shard_tensors(saved_variables(variables, pieces, shards), shard_name(shard, shards)));
  std::size_t tensor = 0;
  for (const Piece& piece : pieces) {
    if (piece.ps != shard) continue;
    const std::size_t arrays = 1 + slots_of(variables[std::size_t(piece.variable)]).size();
    for (std::size_t array = 0; array < arrays; ++array, ++tensor) {
      const std::size_t all = std::size_t(writer.tensors()[tensor].bytes());
      for (std::size_t done = 0; done < all; done += kSavedAtOnce) {
        writer.write(tensor, read(piece, array, done, std::min(kSavedAtOnce, all - done)));
      }
    }
  }
  return writer.finish();
}

void run_in_background() {
  constexpr int kNice = 10;
  setpriority(PRIO_PROCESS, id_t(gettid()), kNice);
}

}  // namespace paceline
