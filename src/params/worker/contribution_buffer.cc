#include "params/worker/contribution_buffer.h"

namespace paceline {

void ContributionBuffer::use_own_memory(DType dtype, const Shape& shape) {
  const auto tensor = std::make_shared<Tensor>(dtype, shape);
  values = tensor->view();
  owner_ = tensor;
  shared.reset();
}

void ContributionBuffer::use(const std::shared_ptr<SharedMemory>& memory, Place place, DType dtype,
                             const Shape& shape) {
  values = {memory->bytes().data() + place.offset, dtype, shape};
  owner_ = memory;
  shared = place;
}

void ContributionBuffer::sent(void* context) {
  ContributionBuffer& space = *static_cast<ContributionBuffer*>(context);
  Wakeup* const wakeup = space.wakeup;  // with the last one the space may be used again
  if (--space.in_flight == 0) wakeup->notify();
}

}  // namespace paceline
