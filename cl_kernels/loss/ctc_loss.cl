// Connectionist temporal classification (CTC) loss (Graves et al. 2006) of sequences of log-probabilities x (T, N, C)
// with one target each, summed over all alignments, and its gradient.
//
// A target of L labels has 2 L + 1 states: its labels with blanks around them. All values are logarithms.
//
//   alpha[t][s] = x[t][label of s] + logsumexp of alpha[t - 1] at s, s - 1 and, for a label that differs from the label
//                 before it, s - 2
//   loss        = -(logsumexp of alpha[length - 1] at the last two states)
//   beta        the same recursion backward in time, without x[t] itself
//   x_gradient[t][c] = -g sum of exp(alpha + beta + loss) over the states with label c
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

// sequence_barrier() makes the states of one step visible to the work-items of a sequence; all of them must call it.
#ifdef SIMD
#define SEQUENCE_FN NOINLINE
static inline void sequence_barrier(void) {}
#else
#define SEQUENCE_FN static inline
static inline void sequence_barrier(void) { barrier(CLK_GLOBAL_MEM_FENCE); }
#endif

// Common parameters of all kernels.
#define PARAMETERS                                                                                             \
    const struct Ctc sizes, __global const REAL *restrict x, const long x_offset,                              \
        __global const long *restrict targets_base, const long targets_offset,                                 \
        __global const long *restrict input_lengths, const long input_lengths_offset,                          \
        __global const long *restrict target_lengths, const long target_lengths_offset, __global REAL *alphas, \
        const long alphas_offset
#define ARGUMENTS                                                                                          \
    sizes, x, x_offset, targets_base, targets_offset, input_lengths, input_lengths_offset, target_lengths, \
        target_lengths_offset, alphas, alphas_offset

// The lengths and the target of sequence n.
struct Sequence {
    long length;  // steps of the input
    long labels;  // of the target
    long states;
    __global const long* targets;
};
static inline struct Sequence sequence_of(const long n, PARAMETERS) {
    struct Sequence sequence;
    sequence.length = input_lengths[input_lengths_offset + n];
    sequence.labels = target_lengths[target_lengths_offset + n];
    sequence.states = 2 * sequence.labels + 1;
    sequence.targets = targets_base + targets_offset + n * sizes.S;
    return sequence;
}

static inline bool has_valid_lengths(const struct Sequence sequence, const struct Ctc sizes) {
    return (sequence.length >= 0) & (sequence.length <= sizes.T) & (sequence.labels >= 0) &
           (sequence.labels <= sizes.S);
}

static inline long label_of_state(const long s, const struct Sequence sequence, const long blank) {
    return (s & 1) ? sequence.targets[s >> 1] : blank;
}

static inline bool is_class(const long label, const struct Ctc sizes) { return (label >= 0) & (label < sizes.C); }

// Elements per step of alphas and of the other arrays of states.
static inline long padded_states(const struct Ctc sizes) { return 2 * sizes.S + 1; }

static inline REAL log_sum(const REAL a, const REAL b, const REAL c) {
    const REAL ab = a > b ? a : b, m = ab > c ? ab : c;
    if (m == -INFINITY) return a + b + c;
    return m + d_log(d_exp(a - m) + d_exp(b - m) + d_exp(c - m));
}

static inline REAL emission(const struct Ctc sizes, __global const REAL* x, const long t, const long n,
                            const long label) {
    return is_class(label, sizes) ? x[(t * sizes.N + n) * sizes.C + label] : NAN;
}

// Logarithm of the sum over the states before state s, of which `previous` has the logarithms; at the first step the
// paths begin at the first two states.
static inline REAL paths_to_state(const long t, const long s, const long label, const struct Sequence sequence,
                                  __global const REAL* previous) {
    if (t == 0) return s < 2 ? 0 : -INFINITY;
    const int may_skip = (s & 1) && s > 1 && label != sequence.targets[(s >> 1) - 1];
    return log_sum(previous[s], s > 0 ? previous[s - 1] : -INFINITY, may_skip ? previous[s - 2] : -INFINITY);
}

SEQUENCE_FN void alpha_part(const long n, const int lane, const int lanes, PARAMETERS, __global REAL* losses,
                            const long losses_offset) {
    const struct Sequence sequence = sequence_of(n, ARGUMENTS);
    const long room = padded_states(sizes);
    if (!has_valid_lengths(sequence, sizes) || sequence.length == 0) {
        if (lane == 0)
            losses[losses_offset + n] = has_valid_lengths(sequence, sizes) && sequence.labels == 0 ? 0 : INFINITY;
        return;
    }
    for (long t = 0; t < sequence.length; ++t) {
        __global REAL* row = alphas + alphas_offset + (n * sizes.T + t) * room;
        __global const REAL* previous = row - room;
        for (long s = lane; s < sequence.states; s += lanes) {
            const long label = label_of_state(s, sequence, sizes.blank);
            row[s] = paths_to_state(t, s, label, sequence, previous) + emission(sizes, x + x_offset, t, n, label);
        }
        sequence_barrier();
    }
    if (lane > 0) return;
    __global const REAL* last = alphas + alphas_offset + (n * sizes.T + sequence.length - 1) * room;
    losses[losses_offset + n] =
        -log_sum(last[sequence.states - 1], sequence.labels > 0 ? last[sequence.states - 2] : -INFINITY, -INFINITY);
}

// Links equal labels. The chain has one number per label: for the first of equal labels one plus the index of the next
// equal label, or 0; for the others the bitwise complement of that.
static inline void link_labels(const int lane, const int lanes, const struct Sequence sequence, __global int* chain) {
    for (long k = lane; k < sequence.labels; k += lanes) {
        const long label = sequence.targets[k];
        long earlier = k - 1, next = k + 1;
        while (earlier >= 0 && sequence.targets[earlier] != label) --earlier;
        while (next < sequence.labels && sequence.targets[next] != label) ++next;
        const int link = next < sequence.labels ? (int)next + 1 : 0;
        chain[k] = earlier < 0 ? link : ~link;
    }
}

// Logarithm of the sum over the states after state s, of which `next_beta` has the logarithms; at the last step the
// paths end at the last two states.
static inline REAL paths_from_state(const long t, const long s, const long label, const struct Sequence sequence,
                                    __global const REAL* next_beta) {
    if (t + 1 >= sequence.length) return s + 2 >= sequence.states ? 0 : -INFINITY;
    const int may_skip = (s & 1) && s + 2 < sequence.states && label != sequence.targets[(s >> 1) + 1];
    return log_sum(next_beta[s], s + 1 < sequence.states ? next_beta[s + 1] : -INFINITY,
                   may_skip ? next_beta[s + 2] : -INFINITY);
}

// posteriors (N, T, 2 S + 1): -g exp(alpha + beta + loss). `betas` (N, 2, 2 S + 1): beta + x of this step and of the
// next one, double-buffered.
SEQUENCE_FN void beta_part(const long n, const int lane, const int lanes, PARAMETERS, __global const REAL* losses,
                           const long losses_offset, __global const REAL* g, const long g_offset, __global REAL* betas,
                           const long betas_offset, __global REAL* posteriors, const long posteriors_offset,
                           __global int* chains, const long chains_offset) {
    const struct Sequence sequence = sequence_of(n, ARGUMENTS);
    const long room = padded_states(sizes);
    if (!has_valid_lengths(sequence, sizes)) return;
    const REAL loss = losses[losses_offset + n], factor = g[g_offset + n];
    link_labels(lane, lanes, sequence, chains + chains_offset + n * sizes.S);
    for (long t = sequence.length - 1; t >= 0; --t) {
        __global const REAL* alpha = alphas + alphas_offset + (n * sizes.T + t) * room;
        __global REAL* posterior = posteriors + posteriors_offset + (n * sizes.T + t) * room;
        __global REAL* beta = betas + betas_offset + (2 * n + (t & 1)) * room;
        __global const REAL* next_beta = betas + betas_offset + (2 * n + ((t + 1) & 1)) * room;
        for (long s = lane; s < sequence.states; s += lanes) {
            const long label = label_of_state(s, sequence, sizes.blank);
            const REAL log_paths = paths_from_state(t, s, label, sequence, next_beta);
            beta[s] = log_paths + emission(sizes, x + x_offset, t, n, label);
            // No alignment exists: the gradient is NaN, or 0 if g is 0.
            posterior[s] = loss == INFINITY ? (factor == 0 ? 0 : NAN) : -factor * d_exp(alpha[s] + log_paths + loss);
        }
        sequence_barrier();
    }
}

// Gradient at one step of the blank (k == 0), or of label k - 1 and all labels equal to it.
static inline void gradient_of(const long k, const long t, const long n, const struct Ctc sizes,
                               const struct Sequence sequence, __global const REAL* posterior,
                               __global const int* chain, __global REAL* x_gradient) {
    REAL sum = 0;
    long label = sizes.blank;
    if (k == 0) {
        for (long i = 0; i <= sequence.labels; ++i) sum += posterior[2 * i];
        for (long i = 0; i < sequence.labels; ++i) sum += sequence.targets[i] == label ? posterior[2 * i + 1] : 0;
    } else {
        label = sequence.targets[k - 1];
        int link = chain[k - 1];
        if (link < 0 || label == sizes.blank || !is_class(label, sizes)) return;
        sum = posterior[2 * k - 1];
        while (link > 0) {
            sum += posterior[2 * link - 1];
            link = ~chain[link - 1];
        }
    }
    x_gradient[(t * sizes.N + n) * sizes.C + label] = sum;
}

#define GRADIENT_PARAMETERS                                                                    \
    __global const REAL *posteriors, const long posteriors_offset, __global const int *chains, \
        const long chains_offset, __global REAL *x_gradient, const long x_gradient_offset

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
    const struct Sequence sequence = sequence_of(n, ARGUMENTS);
    if (!has_valid_lengths(sequence, sizes) || t >= sequence.length) return;
    for (long k = 0; k <= sequence.labels; ++k)
        gradient_of(k, t, n, sizes, sequence, posteriors + posteriors_offset + (n * sizes.T + t) * padded_states(sizes),
                    chains + chains_offset + n * sizes.S, x_gradient + x_gradient_offset);
}

__kernel void ctc_gradient(PARAMETERS, GRADIENT_PARAMETERS) {
    gradient_part(get_global_id(0), get_global_id(1), ARGUMENTS, posteriors, posteriors_offset, chains, chains_offset,
                  x_gradient, x_gradient_offset);
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
    const struct Sequence sequence = sequence_of(n, ARGUMENTS);
    if (!has_valid_lengths(sequence, sizes) || t >= sequence.length || k > sequence.labels) return;
    gradient_of(k, t, n, sizes, sequence, posteriors + posteriors_offset + (n * sizes.T + t) * padded_states(sizes),
                chains + chains_offset + n * sizes.S, x_gradient + x_gradient_offset);
}

#endif
