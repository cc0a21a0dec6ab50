// Connectionist temporal classification (CTC) loss (Graves et al. 2006) of sequences of log-probabilities x (T, N, C)
// with one target each, summed over all alignments, and its gradient.
//
// A target of L labels has 2 L + 1 states: its labels with blanks around them. All values are logarithms.
//
//   alpha[t][s] = x[t][label of s] + logsumexp of alpha[t - 1] at s, s - 1 and, for a label that differs from the label
//                 before it, s - 2
//   loss        = -(logsumexp of alpha[length - 1] at the last two states)
//   beta        the same recursion backward in time, without x[t] itself
//   dx[t][c]    = -g sum of exp(alpha + beta + loss) over the states with label c
//
// ctc_alpha and ctc_beta process the steps of a sequence in order. ctc_gradient sums over the states of each class:
// equal labels are linked by `chains`, and the sum of a class is computed from its first label, so that its order is
// fixed.
//
//   SIMD     simd style: a work-item takes a sequence, global (N); ctc_gradient: one step of it, global (T, N)
//   SIMT     simt style: a group takes a sequence, global (local size, N); ctc_gradient: a work-item takes one label of
//            a step, or the blank, global (1 + S, T, N)
//   REAL     float or double
#include "noinline.clh"
#include "math.clh"

struct Ctc {
    long T, N, C, S, blank;
};

#ifdef SIMD
#define SEQUENCE_FN NOINLINE
#define SEQUENCE_BARRIER
#else
#define SEQUENCE_FN static inline
#define SEQUENCE_BARRIER barrier(CLK_GLOBAL_MEM_FENCE);
#endif

// Common parameters: the lengths, and the data of sequence n.
#define PARAMETERS                                                                                             \
    const struct Ctc sizes, __global const REAL *restrict x, const long x_offset,                              \
        __global const long *restrict targets_base, const long targets_offset,                                 \
        __global const long *restrict input_lengths, const long input_lengths_offset,                          \
        __global const long *restrict target_lengths, const long target_lengths_offset, __global REAL *alphas, \
        const long alphas_offset
#define ARGUMENTS                                                                                          \
    sizes, x, x_offset, targets_base, targets_offset, input_lengths, input_lengths_offset, target_lengths, \
        target_lengths_offset, alphas, alphas_offset
#define SEQUENCE                                                                                                     \
    const long length = input_lengths[input_lengths_offset + n], labels = target_lengths[target_lengths_offset + n]; \
    const long states = 2 * labels + 1, room = 2 * sizes.S + 1;                                                      \
    __global const long* targets = targets_base + targets_offset + n * sizes.S;
#define HAS_VALID_LENGTHS ((length >= 0) & (length <= sizes.T) & (labels >= 0) & (labels <= sizes.S))
#define LABEL(s) (((s)&1) ? targets[(s) >> 1] : sizes.blank)
#define IS_CLASS(label) (((label) >= 0) & ((label) < sizes.C))

static inline REAL log_sum(const REAL a, const REAL b, const REAL c) {
    const REAL ab = a > b ? a : b, m = ab > c ? ab : c;
    if (m == -INFINITY) return a + b + c;
    return m + d_log(d_exp(a - m) + d_exp(b - m) + d_exp(c - m));
}

static inline REAL emission(const struct Ctc sizes, __global const REAL* x, const long t, const long n,
                            const long label) {
    return IS_CLASS(label) ? x[(t * sizes.N + n) * sizes.C + label] : NAN;
}

SEQUENCE_FN void alpha_part(const long n, const int lane, const int lanes, PARAMETERS, __global REAL* losses,
                            const long losses_offset) {
    SEQUENCE
    if (!HAS_VALID_LENGTHS || length == 0) {
        if (lane == 0) losses[losses_offset + n] = HAS_VALID_LENGTHS && labels == 0 ? 0 : INFINITY;
        return;
    }
    for (long t = 0; t < length; ++t) {
        __global REAL* row = alphas + alphas_offset + (n * sizes.T + t) * room;
        __global const REAL* previous = row - room;
        for (long s = lane; s < states; s += lanes) {
            const long label = LABEL(s);
            REAL log_paths = s < 2 ? 0 : -INFINITY;
            if (t > 0) {
                const int may_skip = (s & 1) && s > 1 && label != targets[(s >> 1) - 1];
                log_paths =
                    log_sum(previous[s], s > 0 ? previous[s - 1] : -INFINITY, may_skip ? previous[s - 2] : -INFINITY);
            }
            row[s] = log_paths + emission(sizes, x + x_offset, t, n, label);
        }
        SEQUENCE_BARRIER
    }
    if (lane > 0) return;
    __global const REAL* last = alphas + alphas_offset + (n * sizes.T + length - 1) * room;
    losses[losses_offset + n] = -log_sum(last[states - 1], labels > 0 ? last[states - 2] : -INFINITY, -INFINITY);
}

// posteriors (N, T, 2 S + 1): -g exp(alpha + beta + loss). `betas` (N, 2, 2 S + 1): beta + x of this step and of the
// next one, double-buffered. chains (N, S): for the first of equal labels one plus the index of the next equal label,
// or 0; for the others the bitwise complement of that.
SEQUENCE_FN void beta_part(const long n, const int lane, const int lanes, PARAMETERS, __global const REAL* losses,
                           const long losses_offset, __global const REAL* g, const long g_offset, __global REAL* betas,
                           const long betas_offset, __global REAL* posteriors, const long posteriors_offset,
                           __global int* chains, const long chains_offset) {
    SEQUENCE
    if (!HAS_VALID_LENGTHS) return;
    const REAL loss = losses[losses_offset + n], factor = g[g_offset + n];
    for (long k = lane; k < labels; k += lanes) {
        const long label = targets[k];
        long earlier = k - 1, next = k + 1;
        while (earlier >= 0 && targets[earlier] != label) --earlier;
        while (next < labels && targets[next] != label) ++next;
        const int link = next < labels ? (int)next + 1 : 0;
        chains[chains_offset + n * sizes.S + k] = earlier < 0 ? link : ~link;
    }
    for (long t = length - 1; t >= 0; --t) {
        __global const REAL* alpha = alphas + alphas_offset + (n * sizes.T + t) * room;
        __global REAL* posterior = posteriors + posteriors_offset + (n * sizes.T + t) * room;
        __global REAL* beta = betas + betas_offset + (2 * n + (t & 1)) * room;
        __global const REAL* next_beta = betas + betas_offset + (2 * n + ((t + 1) & 1)) * room;
        for (long s = lane; s < states; s += lanes) {
            const long label = LABEL(s);
            REAL log_paths = s + 2 >= states ? 0 : -INFINITY;
            if (t + 1 < length) {
                const int may_skip = (s & 1) && s + 2 < states && label != targets[(s >> 1) + 1];
                log_paths = log_sum(next_beta[s], s + 1 < states ? next_beta[s + 1] : -INFINITY,
                                    may_skip ? next_beta[s + 2] : -INFINITY);
            }
            beta[s] = log_paths + emission(sizes, x + x_offset, t, n, label);
            // No alignment exists: the gradient is NaN, or 0 if g is 0.
            posterior[s] = loss == INFINITY ? (factor == 0 ? 0 : NAN) : -factor * d_exp(alpha[s] + log_paths + loss);
        }
        SEQUENCE_BARRIER
    }
}

// Gradient at one step of the blank (k == 0), or of label k - 1 and all labels equal to it.
static inline void gradient_of(const long k, const long t, const long n, const struct Ctc sizes,
                               __global const long* targets, const long labels, __global const REAL* posterior,
                               __global const int* chain, __global REAL* dx) {
    REAL sum = 0;
    long label = sizes.blank;
    if (k == 0) {
        for (long i = 0; i <= labels; ++i) sum += posterior[2 * i];
        for (long i = 0; i < labels; ++i) sum += targets[i] == label ? posterior[2 * i + 1] : 0;
    } else {
        label = targets[k - 1];
        int link = chain[k - 1];
        if (link < 0 || label == sizes.blank || !IS_CLASS(label)) return;
        sum = posterior[2 * k - 1];
        while (link > 0) {
            sum += posterior[2 * link - 1];
            link = ~chain[link - 1];
        }
    }
    dx[(t * sizes.N + n) * sizes.C + label] = sum;
}

#define GRADIENT_PARAMETERS                                                                    \
    __global const REAL *posteriors, const long posteriors_offset, __global const int *chains, \
        const long chains_offset, __global REAL *dx, const long dx_offset

#ifdef SIMD

__kernel void ctc_alpha(PARAMETERS, __global REAL* losses, const long losses_offset) {
    alpha_part(get_global_id(0), 0, 1, ARGUMENTS, losses, losses_offset);
}

__kernel void ctc_beta(PARAMETERS, __global const REAL* losses, const long losses_offset, __global const REAL* g,
                       const long g_offset, __global REAL* betas, const long betas_offset, __global REAL* posteriors,
                       const long posteriors_offset, __global int* chains, const long chains_offset) {
    beta_part(get_global_id(0), 0, 1, ARGUMENTS, losses, losses_offset, g, g_offset, betas, betas_offset, posteriors,
              posteriors_offset, chains, chains_offset);
}

NOINLINE void gradient_part(const long t, const long n, PARAMETERS, GRADIENT_PARAMETERS) {
    SEQUENCE
    if (!HAS_VALID_LENGTHS || t >= length) return;
    for (long k = 0; k <= labels; ++k)
        gradient_of(k, t, n, sizes, targets, labels, posteriors + posteriors_offset + (n * sizes.T + t) * room,
                    chains + chains_offset + n * sizes.S, dx + dx_offset);
}

__kernel void ctc_gradient(PARAMETERS, GRADIENT_PARAMETERS) {
    gradient_part(get_global_id(0), get_global_id(1), ARGUMENTS, posteriors, posteriors_offset, chains, chains_offset,
                  dx, dx_offset);
}

#else

__kernel void ctc_alpha(PARAMETERS, __global REAL* losses, const long losses_offset) {
    alpha_part(get_global_id(1), get_local_id(0), get_local_size(0), ARGUMENTS, losses, losses_offset);
}

__kernel void ctc_beta(PARAMETERS, __global const REAL* losses, const long losses_offset, __global const REAL* g,
                       const long g_offset, __global REAL* betas, const long betas_offset, __global REAL* posteriors,
                       const long posteriors_offset, __global int* chains, const long chains_offset) {
    beta_part(get_global_id(1), get_local_id(0), get_local_size(0), ARGUMENTS, losses, losses_offset, g, g_offset,
              betas, betas_offset, posteriors, posteriors_offset, chains, chains_offset);
}

__kernel void ctc_gradient(PARAMETERS, GRADIENT_PARAMETERS) {
    const long k = get_global_id(0), t = get_global_id(1), n = get_global_id(2);
    SEQUENCE
    if (!HAS_VALID_LENGTHS || t >= length || k > labels) return;
    gradient_of(k, t, n, sizes, targets, labels, posteriors + posteriors_offset + (n * sizes.T + t) * room,
                chains + chains_offset + n * sizes.S, dx + dx_offset);
}

#endif
