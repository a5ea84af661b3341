// The connections of one shm link.
#pragma once

#include "net/link_connections.h"

namespace paceline {

class ShmConnection;
using ShmConnections = LinkConnections<ShmConnection>;

}  // namespace paceline
