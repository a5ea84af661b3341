#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/naive/naive_kernels.h"
#include "kernels/naive/rounded_factor.h"
#include "kernels/rounded_products.h"

namespace paceline {

namespace {

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

struct Sizes {
  std::int64_t steps, batch, inputs, hidden;
};

Sizes sizes_of(const Node& node) {
  const Shape& x = node.input(0).shape();
  return {x[0], x[1], x[2], node.input(1).shape()[1]};
}

template <typename T>
struct NaiveLstm {
  // One row (step t, row b of the batch): the state before it, and the place of the new state.
  struct Row {
    const T *x, *h, *c;
    T *output, *gates, *cell;
  };

  static Row row_of(const KernelCall& call, const Sizes& s, std::int64_t t, std::int64_t b) {
    const std::int64_t at = (t * s.batch + b) * s.hidden, before = at - s.batch * s.hidden;
    T *outputs = call.outputs[0].as<T>(), *cells = call.outputs[4].as<T>();
    return {call.inputs[0].as<T>() + (t * s.batch + b) * s.inputs,
            t == 0 ? call.inputs[1].as<T>() + at : outputs + before,
            t == 0 ? call.inputs[2].as<T>() + at : cells + before,
            outputs + at,
            call.outputs[3].as<T>() + 4 * at,
            cells + at};
  }

  static double product(const Row& row, const T* weights, const Sizes& s, std::int64_t column,
                        bool rounds) {
    double sum = 0;
    for (std::int64_t l = 0; l < s.inputs; ++l) {
      sum += rounded_factor(row.x[l], rounds) *
             rounded_factor(weights[l * 4 * s.hidden + column], rounds);
    }
    for (std::int64_t l = 0; l < s.hidden; ++l) {
      const double weight = rounded_factor(weights[(s.inputs + l) * 4 * s.hidden + column], rounds);
      sum += rounded_factor(row.h[l], rounds) * weight;
    }
    return sum;
  }

  static void run(const Node& node, const KernelCall& call) {
    const Sizes s = sizes_of(node);
    const bool rounds = rounds_products(node);
    const double forget_bias = node.attributes().get<double>("forget_bias");
    const T *weights = call.inputs[3].as<T>(), *biases = call.inputs[4].as<T>();
    for (std::int64_t t = 0; t < s.steps; ++t) {
      for (std::int64_t b = 0; b < s.batch; ++b) {
        const Row row = row_of(call, s, t, b);
        for (std::int64_t u = 0; u < s.hidden; ++u) {
          double z[4];
          for (std::int64_t gate = 0; gate < 4; ++gate) {
            const std::int64_t column = gate * s.hidden + u;
            z[gate] = product(row, weights, s, column, rounds) + biases[column];
          }
          const double i = sigmoid(z[0]), j = std::tanh(z[1]), f = sigmoid(z[2] + forget_bias);
          const double o = sigmoid(z[3]), c = double(row.c[u]) * f + i * j;
          const double gates[] = {i, j, f, o};
          for (std::int64_t gate = 0; gate < 4; ++gate) {
            row.gates[gate * s.hidden + u] = T(gates[gate]);
          }
          row.cell[u] = T(c);
          row.output[u] = T(std::tanh(c) * o);
        }
      }
    }
    const std::int64_t state = s.batch * s.hidden, last = (s.steps - 1) * state;
    std::copy_n(call.outputs[0].as<T>() + last, state, call.outputs[1].as<T>());
    std::copy_n(call.outputs[4].as<T>() + last, state, call.outputs[2].as<T>());
  }
};

template <typename T>
class NaiveLstmGrad : public Kernel {
 public:
  explicit NaiveLstmGrad(const Node& node)
      : s_(sizes_of(node)),
        rounds_(rounds_products(node)),
        has_outputs_(node.attributes().get<bool>("has_outputs")),
        has_h_(node.attributes().get<bool>("has_h")),
        has_c_(node.attributes().get<bool>("has_c")),
        dh_(std::size_t(s_.batch * s_.hidden)),
        dc_(dh_.size()),
        dz_(4 * dh_.size()),
        dw_(std::size_t((s_.inputs + s_.hidden) * 4 * s_.hidden)),
        db_(std::size_t(4 * s_.hidden)) {}

  void run(const KernelCall& call) override {
    inputs_ = call.inputs;
    begin();
    for (std::int64_t t = s_.steps - 1; t >= 0; --t) {
      through_cells(t);
      through_weights(t, call.outputs[0].as<T>());
    }
    std::copy(dh_.begin(), dh_.end(), call.outputs[1].as<T>());
    std::copy(dc_.begin(), dc_.end(), call.outputs[2].as<T>());
    std::copy(dw_.begin(), dw_.end(), call.outputs[3].as<T>());
    std::copy(db_.begin(), db_.end(), call.outputs[4].as<T>());
  }

 private:
  const T* in(int i) const { return inputs_[std::size_t(i)].as<T>(); }

  void begin() {
    int next = 7;
    d_outputs_ = has_outputs_ ? in(next++) : nullptr;
    begin_state(has_h_ ? in(next++) : nullptr, dh_);
    begin_state(has_c_ ? in(next++) : nullptr, dc_);
    std::fill(dw_.begin(), dw_.end(), 0);
    std::fill(db_.begin(), db_.end(), 0);
  }

  static void begin_state(const T* given, std::vector<double>& state) {
    if (given == nullptr) {
      std::fill(state.begin(), state.end(), 0);
    } else {
      std::copy_n(given, state.size(), state.begin());
    }
  }

  const T* before(int sequence, int initial, std::int64_t t) const {
    return t == 0 ? in(initial) : in(sequence) + (t - 1) * s_.batch * s_.hidden;
  }

  void through_cells(std::int64_t t) {
    const T* c_before = before(6, 2, t);
    for (std::int64_t e = 0; e < s_.batch * s_.hidden; ++e) {
      const std::int64_t at = t * s_.batch * s_.hidden + e;
      const std::int64_t first = e / s_.hidden * 4 * s_.hidden + e % s_.hidden;
      const T* gates = in(5) + t * s_.batch * 4 * s_.hidden + first;
      const double i = gates[0], j = gates[s_.hidden], f = gates[2 * s_.hidden];
      const double o = gates[3 * s_.hidden], tc = std::tanh(double(in(6)[at]));
      const double dh = dh_[std::size_t(e)] + (d_outputs_ == nullptr ? 0 : d_outputs_[at]);
      const double dc = dc_[std::size_t(e)] + dh * o * (1 - tc * tc);
      double* dz = dz_.data() + first;
      dz[0] = dc * j * i * (1 - i);
      dz[s_.hidden] = dc * i * (1 - j * j);
      dz[2 * s_.hidden] = dc * c_before[e] * f * (1 - f);
      dz[3 * s_.hidden] = dh * tc * o * (1 - o);
      dc_[std::size_t(e)] = dc * f;
    }
  }

  void through_weights(std::int64_t t, T* dx) {
    const std::int64_t columns = 4 * s_.hidden;
    for (std::int64_t b = 0; b < s_.batch; ++b) {
      const double* dz = dz_.data() + b * columns;
      for (std::int64_t q = 0; q < columns; ++q) db_[std::size_t(q)] += dz[q];
      for (std::int64_t r = 0; r < s_.inputs + s_.hidden; ++r) {
        const bool from_x = r < s_.inputs;
        const double value = from_x ? in(0)[(t * s_.batch + b) * s_.inputs + r]
                                    : before(4, 1, t)[b * s_.hidden + r - s_.inputs];
        double sum = 0;
        for (std::int64_t q = 0; q < columns; ++q) {
          const double rounded_dz = rounded_factor(dz[q], rounds_);
          sum += rounded_dz * rounded_factor(in(3)[r * columns + q], rounds_);
          dw_[std::size_t(r * columns + q)] += rounded_factor(value, rounds_) * rounded_dz;
        }
        if (from_x) {
          dx[(t * s_.batch + b) * s_.inputs + r] = T(sum);
        } else {
          dh_[std::size_t(b * s_.hidden + r - s_.inputs)] = sum;
        }
      }
    }
  }

  const Sizes s_;
  const bool rounds_;
  const bool has_outputs_, has_h_, has_c_;
  std::span<const TensorView> inputs_;  // valid during a call of run()
  const T* d_outputs_ = nullptr;
  std::vector<double> dh_, dc_, dz_, dw_, db_;
};

std::unique_ptr<Kernel> make_lstm_grad(const Node& node, ThreadPool&) {
  if (node.outputs()[0].dtype == DType::kFloat32) {
    return std::make_unique<NaiveLstmGrad<float>>(node);
  }
  return std::make_unique<NaiveLstmGrad<double>>(node);
}

}  // namespace

void add_naive_lstm_kernels(KernelTable& table) {
  table.add("lstm", make_naive_kernel_of<NaiveLstm>);
  table.add("lstm_grad", make_lstm_grad);
}

}  // namespace paceline
