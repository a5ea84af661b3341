#include "params/wire/task_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/copy_bytes.h"
#include "base/grouped_digits.h"
#include "paceline/cluster.h"
#include "paceline/error.h"
#include "params/wire/message_fields.h"

namespace paceline {
namespace {

constexpr std::size_t kMostRank = 8;

void put_tensor(WireWriter& writer, const NamedTensor& named) {
  const Tensor& tensor = named.tensor;
  writer.put_text(named.name);
  writer.put(std::uint8_t(tensor.dtype()));
  writer.put(std::uint8_t(tensor.shape().rank()));
  writer.put_all(tensor.shape().dims());
  writer.put_all(std::span(static_cast<const std::byte*>(tensor.raw()), tensor.bytes()));
}

NamedTensor get_tensor(WireReader& reader) {
  NamedTensor tensor{reader.get_text(), {}};
  const std::uint8_t dtype = reader.get<std::uint8_t>();
  const std::size_t rank = reader.get<std::uint8_t>();
  if (dtype >= kDTypeCount || rank > kMostRank) reader.fail("an unknown dtype or shape");
  const std::vector<std::int64_t> dims = reader.get_all<std::int64_t>(rank);
  std::int64_t most = std::int64_t(kMostLocalBytes);
  for (const std::int64_t dim : dims) {
    if (dim < 0 || dim > most) reader.fail("a local variable that is too large");
    most /= std::max<std::int64_t>(dim, 1);
  }
  const Shape shape{std::span<const std::int64_t>(dims)};
  const std::vector<std::byte> bytes =
      reader.get_all<std::byte>(std::size_t(shape.elements()) * size_of(DType(dtype)));
  tensor.tensor = Tensor(DType(dtype), shape);
  copy_bytes(tensor.tensor.raw(), bytes.data(), bytes.size());
  return tensor;
}

}  // namespace

// The state without its tensors, whose layout follows from their shapes.
void fields(auto& wire, Of<TaskState> auto& state) {
  wire(state.worker, state.step, state.position.numbers, state.position.sums);
}

std::string why_left_out(const TaskState& state, std::size_t most_bytes) {
  std::size_t all = 0;
  const NamedTensor* largest = nullptr;
  for (const NamedTensor& local : state.local) {
    all += local.tensor.bytes();
    if (largest == nullptr || local.tensor.bytes() > largest->tensor.bytes()) largest = &local;
  }
  if (all <= most_bytes) return {};
  return fmt::format(
      "the local variables of {} are not saved: they have {} bytes, {} alone {}, and no more "
      "than {} can be sent to the chief",
      TaskId{TaskId::Role::kWorker, state.worker}.str(), grouped_digits(std::int64_t(all)),
      largest->name, grouped_digits(std::int64_t(largest->tensor.bytes())),
      grouped_digits(std::int64_t(most_bytes)));
}

std::vector<std::byte> encode(const TaskState& state) {
  if (!why_left_out(state).empty()) {
    return encode(TaskState{state.worker, state.step, state.position, {}});
  }
  std::vector<std::byte> bytes;
  WireWriter writer(bytes);
  FieldWriter{writer}(state);
  writer.put(std::uint32_t(state.local.size()));
  for (const NamedTensor& tensor : state.local) put_tensor(writer, tensor);
  return bytes;
}

TaskState decode_task_state(std::span<const std::byte> payload) {
  WireReader reader(payload, "task_state");
  TaskState state;
  FieldReader{reader}(state);
  if (state.step < 0) reader.fail("a step below 0");
  constexpr std::size_t kLeastTensor = 4;
  const std::size_t count = reader.get_count(kLeastTensor);
  for (std::size_t i = 0; i < count; ++i) state.local.push_back(get_tensor(reader));
  reader.end();
  return state;
}

std::optional<std::vector<std::byte>> StateFrames::add(std::uint16_t flags,
                                                       std::span<const std::byte> payload) {
  if (payload.size() > most_bytes_ - so_far_.size()) {
    throw Error(ErrorCode::kDataLoss, "[wire] a task_state without end");
  }
  so_far_.insert(so_far_.end(), payload.begin(), payload.end());
  if ((flags & kStateGoesOn) != 0) return std::nullopt;
  return std::exchange(so_far_, {});
}

}  // namespace paceline
