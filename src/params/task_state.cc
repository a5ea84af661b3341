#include "params/task_state.h"

#include <algorithm>
#include <cstring>

#include "params/message.h"
#include "params/wire_fields.h"

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
  std::int64_t most = std::int64_t(kMaxControlBytes);
  for (const std::int64_t dim : dims) {
    if (dim < 0 || dim > most) reader.fail("a local variable that is too large");
    most /= std::max<std::int64_t>(dim, 1);
  }
  const Shape shape{std::span<const std::int64_t>(dims)};
  const std::vector<std::byte> bytes =
      reader.get_all<std::byte>(std::size_t(shape.elements()) * size_of(DType(dtype)));
  tensor.tensor = Tensor(DType(dtype), shape);
  if (!bytes.empty()) std::memcpy(tensor.tensor.raw(), bytes.data(), bytes.size());
  return tensor;
}

}  // namespace

// Without its tensors, which are laid out as their shapes say.
void fields(auto& wire, Of<TaskState> auto& state) {
  wire(state.worker, state.step, state.position.numbers, state.position.sums);
}

std::vector<std::byte> encode(const TaskState& state) {
  std::vector<std::byte> bytes;
  WireWriter writer(bytes);
  FieldWriter{writer}(state);
  writer.put(std::uint32_t(state.local.size()));
  for (const NamedTensor& tensor : state.local) put_tensor(writer, tensor);
  if (bytes.size() > kMaxControlBytes && !state.local.empty()) {
    return encode(TaskState{state.worker, state.step, state.position, {}});
  }
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

}  // namespace paceline
