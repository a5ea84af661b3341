#include "bench/report_rows.h"

namespace paceline::bench {
namespace {

// TensorFlow issues 10145 (mlp), 6520 (cifar10) and 9399 (resnet), and a report on the Penn
// Treebank model (ptb), with the time of a step on their authors' devices; bench/peers/reports.json
// has what they measured. The six shapes of resnet are its author's four machines.
constexpr ReportRow kRows[] = {
    {"mlp", "one process", 5.6, 0, 1, true},
    {"mlp", "1 ps + 1 worker", 5.6, 1, 1},
    {"mlp", "1 ps + 2 workers", 5.6, 1, 2},
    {"mlp", "1 ps + 4 workers", 5.6, 1, 4, true},
    {"mlp", "1 ps + 1 worker, 1 Gbit/s", 5.6, 1, 1, false, 1},
    {"mlp", "1 ps + 1 worker, 1 Gbit/s, bfloat16 wire", 5.6, 1, 1, false, 1, "", "--wire bfloat16"},
    {"mlp", "1 ps + 4 workers, sync", 5.6, 1, 4, false, 0, "", "--strategy sync"},
    {"ptb", "one process", 36, 0, 1},
    {"ptb", "1 ps + 1 worker", 36, 1, 1},
    {"ptb", "1 ps + 2 workers", 36, 1, 2, true},
    {"ptb", "1 ps + 4 workers", 36, 1, 4},
    {"ptb", "one worker with 2 devices", 36, 0, 1, false, 0, "", "", 2},
    {"cifar10", "1 device", 21, 0, 1, true, 0, "", "", 1},
    {"cifar10", "2 devices", 21, 0, 1, false, 0, "", "", 2},
    {"cifar10", "4 devices", 21, 0, 1, false, 0, "", "", 4},
    {"cifar10", "8 devices", 21, 0, 1, true, 0, "", "", 8},
    {"resnet", "1 ps + 1 worker, one host", 333, 1, 1},
    {"resnet", "1 ps + 4 workers, one host", 333, 1, 4},
    {"resnet", "1 ps + 8 workers, one host", 333, 1, 8},
    {"resnet", "3 workers beside one 3 times as slow, one host", 333, 1, 4, false, 0, "", "", 1,
     true},
    {"resnet", "3 workers beside one 3 times as slow, sync with one backup", 333, 1, 4, false, 0,
     "", "--strategy sync --replicas-to-aggregate 3", 1, true},
    {"resnet", "1 ps + 1 worker, 1 Gbit/s", 333, 1, 1, false, 1},
    {"resnet", "1 ps + 2 workers, 1 Gbit/s", 333, 1, 2, false, 1},
    {"resnet", "1 ps + 8 workers, 1 Gbit/s", 333, 1, 8, false, 1},
    {"resnet", "1 ps + 8 workers, 1 Gbit/s, bfloat16 wire", 333, 1, 8, false, 1, "",
     "--wire bfloat16"},
    {"resnet", "shape 1, 1 Gbit/s", 333, 1, 2, false, 1, "ps+2"},
    {"resnet", "shape 2, 1 Gbit/s", 333, 1, 2, false, 1, "ps+1/1"},
    {"resnet", "shape 3, 1 Gbit/s", 333, 1, 4, true, 1, "ps+2/2"},
    {"resnet", "shape 4, 1 Gbit/s", 333, 1, 8, false, 1, "ps+2/2/2/2"},
    {"resnet", "shape 5, 1 Gbit/s", 333, 2, 8, false, 1, "ps+2/ps+2/2/2"},
    {"resnet", "shape 6, 1 Gbit/s", 333, 4, 8, true, 1, "ps+2/ps+2/ps+2/ps+2"},
    {"resnet", "shape 3, 1 Gbit/s, sync", 333, 1, 4, false, 1, "ps+2/2", "--strategy sync"},
    {"resnet", "shape 6, 1 Gbit/s, sync", 333, 4, 8, false, 1, "ps+2/ps+2/ps+2/ps+2",
     "--strategy sync"},
    {"resnet", "shape 1, 2 Gbit/s", 333, 1, 2, false, 2, "ps+2"},
    {"resnet", "shape 2, 2 Gbit/s", 333, 1, 2, false, 2, "ps+1/1"},
    {"resnet", "shape 3, 2 Gbit/s", 333, 1, 4, false, 2, "ps+2/2"},
    {"resnet", "shape 4, 2 Gbit/s", 333, 1, 8, false, 2, "ps+2/2/2/2"},
    {"resnet", "shape 5, 2 Gbit/s", 333, 2, 8, false, 2, "ps+2/ps+2/2/2"},
    {"resnet", "shape 6, 2 Gbit/s", 333, 4, 8, false, 2, "ps+2/ps+2/ps+2/ps+2"},
};

}  // namespace

std::span<const ReportRow> report_rows() { return kRows; }

}  // namespace paceline::bench
