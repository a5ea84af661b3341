// The pieces of variables that live on one ps.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "exec/parameter_store.h"
#include "net/memory/shared_memory.h"
#include "params/protocol/placement.h"
#include "params/shard/after_read.h"
#include "params/shard/apply_pool.h"
#include "params/shard/shard_piece.h"

namespace paceline {

/// All pieces of one ps, made once, when the variables are declared.
class Shard {
 public:
  /// Throws kInvalidArgument when the variables cannot be held: a trained variable is not of
  /// float32, a row of a sparse variable is too long for a message, or the machine has too little
  /// memory. Also throws kInvalidArgument when a variable of `after_reads` does not exist or is not
  /// of float32.
  ///
  /// The pool and `after_reads` must outlive the shard. `contributions` is the number of
  /// contributions that may wait here at a time, each as large as the trained variables; the check
  /// of memory counts them.
  Shard(std::vector<VariableSpec> variables, std::vector<Piece> pieces, int ps, ApplyPool& pool,
        const AfterReads& after_reads = {}, int contributions = 0);

  int ps() const { return ps_; }
  std::span<const VariableSpec> variables() const { return variables_; }
  std::span<const Piece> all_pieces() const { return pieces_; }
  /// The number of pieces on this ps. A position is an index below this number.
  std::size_t size() const { return local_.size(); }
  ShardPiece& at(std::size_t position) { return *local_[position]; }
  /// Returns the position of a piece by its id. Throws kDataLoss when the piece is not on this ps.
  std::size_t position(std::uint32_t id) const;
  std::size_t bytes() const { return bytes_; }
  ApplyPool& pool() { return pool_; }
  /// Returns the variables that have pieces on this ps and change after each read.
  std::vector<VariableId> changed_after_reads() const;
  /// The values of all pieces, laid out by shard_layout. Elements change while workers read them.
  std::shared_ptr<const SharedMemory> values() const { return values_; }
  /// Returns the place of a piece's value in a memory that is laid out in the same way.
  std::span<std::byte> place_of(std::size_t position, std::span<std::byte> memory) const {
    return memory.subspan(offsets_[position], local_[position]->bytes());
  }

 private:
  std::vector<VariableSpec> variables_;
  std::vector<Piece> pieces_;
  const int ps_;
  ApplyPool& pool_;
  std::vector<int> positions_;  // by piece id; −1: on another ps
  std::shared_ptr<SharedMemory> values_;
  std::vector<std::unique_ptr<ShardPiece>> local_;
  std::vector<std::size_t> offsets_;  // in values_, by position
  std::size_t bytes_ = 0;             // of values and slots
};

}  // namespace paceline
