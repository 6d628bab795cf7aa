#include "transform.hpp"

#include <cmath>
#include <cstring>

#include "random.hpp"
#include "threads.hpp"

namespace outpace::ann {
namespace {

using Matrix = std::vector<float>;  // rows x columns, row-major

float norm_of(const float* x, int count) {
    double sum = 0;
    for (int i = 0; i < count; ++i) sum += double(x[i]) * x[i];
    return float(std::sqrt(sum));
}

// Makes the rows orthonormal, in order (modified Gram-Schmidt, twice: once is not enough in single
// precision). A row that lies in the others' span is replaced by a random one.
void orthonormalise(Matrix& rows, int count, int width, Random& random) {
    for (int i = 0; i < count; ++i) {
        float* row = rows.data() + std::size_t(i) * width;
        for (int attempt = 0; attempt < 8; ++attempt) {
            const float before = norm_of(row, width);
            for (int pass = 0; pass < 2; ++pass)
                for (int j = 0; j < i; ++j) {
                    const float* other = rows.data() + std::size_t(j) * width;
                    float dot = 0;
                    for (int t = 0; t < width; ++t) dot += row[t] * other[t];
                    for (int t = 0; t < width; ++t) row[t] -= dot * other[t];
                }
            const float after = norm_of(row, width);
            if (after > 1e-4f * before && after > 1e-20f) {
                for (int t = 0; t < width; ++t) row[t] /= after;
                break;
            }
            for (int t = 0; t < width; ++t) row[t] = float(random.normal());
        }
    }
}

Matrix random_rows(int count, int width, Random& random) {
    Matrix rows(std::size_t(count) * width);
    for (float& x : rows) x = float(random.normal());
    return rows;
}

// An orthonormal basis of the directions in which the sample is widest, by orthogonal iteration: only their
// span is needed, since a random rotation follows, and the span converges fast.
Matrix widest_directions(const float* sample, std::size_t count, int stride, const std::vector<float>& mean,
                         int width, int wanted, Random& random, int threads) {
    Matrix basis = random_rows(wanted, width, random);
    orthonormalise(basis, wanted, width, random);
    // Partial sums over fixed chunks, added in their order: the same for any number of threads.
    constexpr std::size_t chunk = 512;
    const std::size_t chunks = (count + chunk - 1) / chunk;
    const bool small = width <= 1024;
    Matrix covariance;
    if (small) {
        covariance.assign(std::size_t(width) * width, 0);
        // Threads share the rows of the covariance, not the samples, so each sum has one order.
        parallel(std::size_t(width), threads, 16, [&](std::size_t begin, std::size_t end) {
            std::vector<float> centred(static_cast<std::size_t>(width));
            for (std::size_t s = 0; s < count; ++s) {
                const float* x = sample + s * std::size_t(stride);
                for (int t = 0; t < width; ++t) centred[std::size_t(t)] = x[t] - mean[std::size_t(t)];
                for (std::size_t i = begin; i < end; ++i) {
                    const float value = centred[i];
                    float* row = covariance.data() + i * std::size_t(width);
                    for (int t = 0; t < width; ++t) row[t] += value * centred[std::size_t(t)];
                }
            }
        });
    }
    for (int round = 0; round < 6; ++round) {
        Matrix next(basis.size(), 0);
        if (small) {
            parallel(std::size_t(wanted), threads, 4, [&](std::size_t begin, std::size_t end) {
                for (std::size_t b = begin; b < end; ++b) {
                    float* out = next.data() + b * std::size_t(width);
                    for (int i = 0; i < width; ++i) {
                        const float weight = basis[b * std::size_t(width) + std::size_t(i)];
                        const float* row = covariance.data() + std::size_t(i) * std::size_t(width);
                        for (int t = 0; t < width; ++t) out[t] += weight * row[t];
                    }
                }
            });
        } else {
            std::vector<Matrix> partial(chunks);
            parallel(chunks, threads, 1, [&](std::size_t begin, std::size_t end) {
                std::vector<float> centred(static_cast<std::size_t>(width));
                for (std::size_t c = begin; c < end; ++c) {
                    partial[c].assign(basis.size(), 0);
                    for (std::size_t s = c * chunk; s < std::min(count, (c + 1) * chunk); ++s) {
                        const float* x = sample + s * std::size_t(stride);
                        for (int t = 0; t < width; ++t) centred[std::size_t(t)] = x[t] - mean[std::size_t(t)];
                        for (int b = 0; b < wanted; ++b) {
                            const float* direction = basis.data() + std::size_t(b) * std::size_t(width);
                            float dot = 0;
                            for (int t = 0; t < width; ++t) dot += direction[t] * centred[std::size_t(t)];
                            float* out = partial[c].data() + std::size_t(b) * std::size_t(width);
                            for (int t = 0; t < width; ++t) out[t] += dot * centred[std::size_t(t)];
                        }
                    }
                }
            });
            for (const Matrix& part : partial)
                for (std::size_t i = 0; i < next.size(); ++i) next[i] += part[i];
        }
        basis = std::move(next);
        orthonormalise(basis, wanted, width, random);
    }
    return basis;
}

}  // namespace

void Transform::working(const float* vector, bool is_query, float* out) const {
    const int dimension = shape.dimension, width = padded();
    std::memcpy(out, vector, std::size_t(dimension) * 4);
    std::memset(out + dimension, 0, std::size_t(width - dimension) * 4);
    if (shape.metric == Metric::cosine) {
        const float norm = norm_of(vector, dimension);
        for (int i = 0; i < dimension; ++i) out[i] /= norm;
    }
    if (shape.metric == Metric::ip && !is_query) {
        const float norm = norm_of(vector, dimension);
        const float rest = longest * longest - norm * norm;
        out[dimension] = rest > 0 ? std::sqrt(rest) : 0;
    }
}

void Transform::reduce(const ConstructTable& construct, const float* working, float* out) const {
    const int width = padded(), reduced = shape.reduced;
    alignas(64) std::int16_t fixed[max_dimension + 64];
    std::int32_t products[max_reduced];
    const float norm = norm_of(working, shape.working());
    const float scale = norm > 0 ? fixed_norm / norm : 0;
    for (int i = 0; i < width; ++i) {
        const float scaled = working[i] * scale;
        fixed[i] = std::int16_t(scaled + (scaled < 0 ? -0.5f : 0.5f));
    }
    construct.project(matrix.as<std::int16_t>(), reduced, width, fixed, products);
    const float back = norm / fixed_norm;
    const float* scales = row_scale.as<float>();
    const float* mean = centre.as<float>();
    for (int i = 0; i < reduced; ++i) out[i] = float(products[i]) * (back * scales[i]) - mean[i];
    for (int i = reduced; i < round_up(reduced, 16); ++i) out[i] = 0;
}

Transform learn_transform(const Shape& shape, const ConstructTable& construct, const float* sample,
                          std::size_t count, float longest, std::uint64_t seed, int threads) {
    Transform transform;
    transform.shape = shape;
    transform.longest = longest;
    const int width = shape.working(), stride = transform.padded(), reduced = shape.reduced;
    Random random(seed ^ 0x7261646f6d6c79u);
    std::vector<float> mean(std::size_t(stride), 0);
    {
        std::vector<double> sum(std::size_t(width), 0);
        for (std::size_t s = 0; s < count; ++s)
            for (int t = 0; t < width; ++t)
                sum[std::size_t(t)] += sample[s * std::size_t(stride) + std::size_t(t)];
        for (int t = 0; t < width; ++t) mean[std::size_t(t)] = float(sum[std::size_t(t)] / double(count));
    }
    // Random rotation of the kept directions, so that every reduced coordinate is equally wide.
    Matrix directions;
    if (reduced < width) {
        const Matrix basis = widest_directions(sample, count, stride, mean, width, reduced, random, threads);
        Matrix turn = random_rows(reduced, reduced, random);
        orthonormalise(turn, reduced, reduced, random);
        directions.assign(std::size_t(reduced) * std::size_t(width), 0);
        parallel(std::size_t(reduced), threads, 8, [&](std::size_t begin, std::size_t end) {
            for (std::size_t i = begin; i < end; ++i)
                for (int j = 0; j < reduced; ++j) {
                    const float weight = turn[i * std::size_t(reduced) + std::size_t(j)];
                    for (int t = 0; t < width; ++t)
                        directions[i * std::size_t(width) + std::size_t(t)] +=
                            weight * basis[std::size_t(j) * std::size_t(width) + std::size_t(t)];
                }
        });
    } else {
        directions = random_rows(reduced, width, random);
        orthonormalise(directions, reduced, width, random);
    }
    transform.matrix.resize(std::size_t(reduced) * std::size_t(stride) * 2);
    transform.row_scale.resize(std::size_t(reduced) * 4);
    transform.centre.resize(std::size_t(reduced) * 4);
    for (int i = 0; i < reduced; ++i) {
        std::int16_t* row = transform.matrix.as<std::int16_t>() + std::size_t(i) * std::size_t(stride);
        for (int t = 0; t < width; ++t)
            row[t] = std::int16_t(
                std::lrintf(directions[std::size_t(i) * std::size_t(width) + std::size_t(t)] * fixed_norm));
        transform.row_scale.as<float>()[i] = 1 / fixed_norm;
    }
    std::vector<float> out(std::size_t(round_up(reduced, 16)));
    transform.reduce(construct, mean.data(), out.data());
    for (int i = 0; i < reduced; ++i) transform.centre.as<float>()[i] = out[std::size_t(i)];
    double square = 0;
    const std::size_t measured = std::min<std::size_t>(count, 2000);
    for (std::size_t s = 0; s < measured; ++s) {
        transform.reduce(construct, sample + s * std::size_t(stride), out.data());
        for (int i = 0; i < reduced; ++i) square += double(out[std::size_t(i)]) * out[std::size_t(i)];
    }
    const float rms = float(std::sqrt(square / double(std::max<std::size_t>(measured, 1))));
    transform.unit = rms > 1e-30f ? rms : 1;
    for (int i = 0; i < reduced; ++i) {
        transform.row_scale.as<float>()[i] /= transform.unit;
        transform.centre.as<float>()[i] /= transform.unit;
    }
    return transform;
}

}  // namespace outpace::ann
