#include "checkpoint/data_loss.h"

#include "paceline/error.h"

namespace paceline {

void data_loss(const std::string& what, const std::string& why) {
  throw Error(ErrorCode::kDataLoss, what + ": " + why);
}

}  // namespace paceline
