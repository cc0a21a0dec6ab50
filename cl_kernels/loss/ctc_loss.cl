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
#define PART NOINLINE
#define WAIT
#else
#define PART static inline
#define WAIT barrier(CLK_GLOBAL_MEM_FENCE);
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
#define FITS ((length >= 0) & (length <= sizes.T) & (labels >= 0) & (labels <= sizes.S))
#define LABEL(s) (((s)&1) ? targets[(s) >> 1] : sizes.blank)
#define THERE(label) (((label) >= 0) & ((label) < sizes.C))

static inline REAL log_sum(const REAL a, const REAL b, const REAL c) {
    const REAL ab = a > b ? a : b, m = ab > c ? ab : c;
    if (m == -INFINITY) return a + b + c;
    return m + d_log(d_exp(a - m) + d_exp(b - m) + d_exp(c - m));
}

static inline REAL emission(const struct Ctc sizes, __global const REAL* x, const long t, const long n,
                            const long label) {
    return THERE(label) ? x[(t * sizes.N + n) * sizes.C + label] : NAN;
}

PART void alpha_part(const long n, const int lane, const int lanes, PARAMETERS, __global REAL* losses,
                     const long losses_offset) {
    SEQUENCE
    if (!FITS || length == 0) {
        if (lane == 0) losses[losses_offset + n] = FITS && labels == 0 ? 0 : INFINITY;
        return;
    }
    for (long t = 0; t < length; ++t) {
        __global REAL* row = alphas + alphas_offset + (n * sizes.T + t) * room;
        __global const REAL* before = row - room;
        for (long s = lane; s < states; s += lanes) {
            const long label = LABEL(s);
            REAL ways = s < 2 ? 0 : -INFINITY;
            if (t > 0) {
                const int skips = (s & 1) && s > 1 && label != targets[(s >> 1) - 1];
                ways = log_sum(before[s], s > 0 ? before[s - 1] : -INFINITY, skips ? before[s - 2] : -INFINITY);
            }
            row[s] = ways + emission(sizes, x + x_offset, t, n, label);
        }
        WAIT
    }
    if (lane > 0) return;
    __global const REAL* last = alphas + alphas_offset + (n * sizes.T + length - 1) * room;
    losses[losses_offset + n] = -log_sum(last[states - 1], labels > 0 ? last[states - 2] : -INFINITY, -INFINITY);
}

// posts (N, T, 2 S + 1): -g exp(alpha + beta + loss). `after` (N, 2, 2 S + 1): beta + x of this step and of the next
// one, double-buffered. chains (N, S): for the first of equal labels one plus the index of the next equal label, or 0;
// for the others the bitwise complement of that.
PART void beta_part(const long n, const int lane, const int lanes, PARAMETERS, __global const REAL* losses,
                    const long losses_offset, __global const REAL* g, const long g_offset, __global REAL* after,
                    const long after_offset, __global REAL* posts, const long posts_offset, __global int* chains,
                    const long chains_offset) {
    SEQUENCE
    if (!FITS) return;
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
        __global REAL* post = posts + posts_offset + (n * sizes.T + t) * room;
        __global REAL* own = after + after_offset + (2 * n + (t & 1)) * room;
        __global const REAL* behind = after + after_offset + (2 * n + ((t + 1) & 1)) * room;
        for (long s = lane; s < states; s += lanes) {
            const long label = LABEL(s);
            REAL ways = s + 2 >= states ? 0 : -INFINITY;
            if (t + 1 < length) {
                const int skips = (s & 1) && s + 2 < states && label != targets[(s >> 1) + 1];
                ways =
                    log_sum(behind[s], s + 1 < states ? behind[s + 1] : -INFINITY, skips ? behind[s + 2] : -INFINITY);
            }
            own[s] = ways + emission(sizes, x + x_offset, t, n, label);
            // No alignment exists: the gradient is NaN, or 0 if g is 0.
            post[s] = loss == INFINITY ? (factor == 0 ? 0 : NAN) : -factor * d_exp(alpha[s] + ways + loss);
        }
        WAIT
    }
}

// Gradient at one step of the blank (k == 0), or of label k - 1 and all labels equal to it.
static inline void gradient_of(const long k, const long t, const long n, const struct Ctc sizes,
                               __global const long* targets, const long labels, __global const REAL* post,
                               __global const int* chain, __global REAL* dx) {
    REAL sum = 0;
    long label = sizes.blank;
    if (k == 0) {
        for (long i = 0; i <= labels; ++i) sum += post[2 * i];
        for (long i = 0; i < labels; ++i) sum += targets[i] == label ? post[2 * i + 1] : 0;
    } else {
        label = targets[k - 1];
        int link = chain[k - 1];
        if (link < 0 || label == sizes.blank || !THERE(label)) return;
        sum = post[2 * k - 1];
        while (link > 0) {
            sum += post[2 * link - 1];
            link = ~chain[link - 1];
        }
    }
    dx[(t * sizes.N + n) * sizes.C + label] = sum;
}

#define GRADIENT_PARAMETERS                                                                                    \
    __global const REAL *posts, const long posts_offset, __global const int *chains, const long chains_offset, \
        __global REAL *dx, const long dx_offset

#ifdef SIMD

__kernel void ctc_alpha(PARAMETERS, __global REAL* losses, const long losses_offset) {
    alpha_part(get_global_id(0), 0, 1, ARGUMENTS, losses, losses_offset);
}

__kernel void ctc_beta(PARAMETERS, __global const REAL* losses, const long losses_offset, __global const REAL* g,
                       const long g_offset, __global REAL* after, const long after_offset, __global REAL* posts,
                       const long posts_offset, __global int* chains, const long chains_offset) {
    beta_part(get_global_id(0), 0, 1, ARGUMENTS, losses, losses_offset, g, g_offset, after, after_offset, posts,
              posts_offset, chains, chains_offset);
}

NOINLINE void gradient_part(const long t, const long n, PARAMETERS, GRADIENT_PARAMETERS) {
    SEQUENCE
    if (!FITS || t >= length) return;
    for (long k = 0; k <= labels; ++k)
        gradient_of(k, t, n, sizes, targets, labels, posts + posts_offset + (n * sizes.T + t) * room,
                    chains + chains_offset + n * sizes.S, dx + dx_offset);
}

__kernel void ctc_gradient(PARAMETERS, GRADIENT_PARAMETERS) {
    gradient_part(get_global_id(0), get_global_id(1), ARGUMENTS, posts, posts_offset, chains, chains_offset, dx,
                  dx_offset);
}

#else

__kernel void ctc_alpha(PARAMETERS, __global REAL* losses, const long losses_offset) {
    alpha_part(get_global_id(1), get_local_id(0), get_local_size(0), ARGUMENTS, losses, losses_offset);
}

__kernel void ctc_beta(PARAMETERS, __global const REAL* losses, const long losses_offset, __global const REAL* g,
                       const long g_offset, __global REAL* after, const long after_offset, __global REAL* posts,
                       const long posts_offset, __global int* chains, const long chains_offset) {
    beta_part(get_global_id(1), get_local_id(0), get_local_size(0), ARGUMENTS, losses, losses_offset, g, g_offset,
              after, after_offset, posts, posts_offset, chains, chains_offset);
}

__kernel void ctc_gradient(PARAMETERS, GRADIENT_PARAMETERS) {
    const long k = get_global_id(0), t = get_global_id(1), n = get_global_id(2);
    SEQUENCE
    if (!FITS || t >= length || k > labels) return;
    gradient_of(k, t, n, sizes, targets, labels, posts + posts_offset + (n * sizes.T + t) * room,
                chains + chains_offset + n * sizes.S, dx + dx_offset);
}

#endif
