#include "params/server.h"

namespace paceline {

ServerSummary serve(const ServerOptions&, ServerSummary*) {
  throw Error(ErrorCode::kInternal, "[serve] not here yet");
}

}  // namespace paceline
