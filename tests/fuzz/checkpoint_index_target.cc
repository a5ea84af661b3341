#include "checkpoint/checkpoint_index.h"
#include "paceline/error.h"
#include "tests/fuzz/targets.h"

namespace paceline::testing {

void fuzz_checkpoint_index(Bytes bytes) {
  try {
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    const CheckpointIndex index = CheckpointIndex::from_json(text, "index");
    for (const SavedVariable& variable : index.variables) {
      for (const SavedPiece& piece : variable.pieces) {
        for (std::size_t array = 0; array < variable.arrays(); ++array) {
          piece_tensor(variable, piece, array);
        }
      }
    }
    // An accepted index must be unchanged after it was written and read again.
    if (CheckpointIndex::from_json(index.to_json(), "again") != index) __builtin_trap();
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kInternal) throw;
  }
}

}  // namespace paceline::testing
