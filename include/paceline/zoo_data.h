// The distortions of the zoo's image models, and generated data for its models.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "paceline/data.h"

namespace paceline {

/// The distortion for the model `cifar10` with the recipe `report`. For training: a random part of
/// 24×24, mirrored at random, with a contrast of 0.2 to 1.8, standardised. For evaluation: the
/// 24×24 pixels in the centre, standardised.
Distortion cifar10_distortion(bool training, std::uint64_t seed);
/// The distortion for the model `resnet`. For training: a margin of 2 zeros, a random part of
/// 32×32, mirrored at random, standardised. For evaluation: the 32×32 pixels in the centre,
/// standardised.
Distortion resnet_distortion(bool training, std::uint64_t seed);

/// Writes `count` training images to data_batch_1.bin … data_batch_5.bin and a fifth as many, at
/// least 10, to test_batch.bin, in CIFAR-10's format. The ten classes are five shapes (disc,
/// square, triangle, ring, cross), each with stripes or with checks; place, size, direction,
/// colours and noise are random. The same seed gives the same bytes. Throws kInvalidArgument when
/// `count` is below 10, and kFailedPrecondition when one of the files is there already.
void generate_images(const std::string& folder, std::int64_t count, std::uint64_t seed);
/// The images that generate_images makes with the same seed, in memory: `count` images, from number
/// `first` on. Throws kInvalidArgument when `count` is below 1.
std::shared_ptr<const RecordSource> generated_images(std::int64_t count, std::uint64_t seed,
                                                     std::int64_t first = 0);

/// Writes ptb.train.txt, ptb.valid.txt and ptb.test.txt, split as Penn Treebank is, into the
/// folder. The three texts have `words` words in all, of exactly 10,000 different ones; <eos> and
/// <unk> are among these, and all occur in ptb.train.txt. Frequencies follow Zipf's law, and a
/// grammar with hidden states gives a model something to learn. The same seed gives the same bytes.
/// Throws kInvalidArgument, naming the least number, when `words` is too small.
void generate_corpus(const std::string& folder, std::int64_t words, std::uint64_t seed);

}  // namespace paceline
