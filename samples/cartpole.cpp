// Reinforcement learning on the cart-pole task (A. Barto, R. Sutton, C. Anderson, 1983) with PPO (J. Schulman et al.,
// Proximal policy optimization algorithms, 2017), REINFORCE (R. Williams, 1992) or DQN with a replay buffer (V. Mnih et
// al., 2015).
//
//     ./cartpole --method ppo --plot cartpole.png
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <numeric>
#include <vector>

#include "common.hpp"

using namespace samples;

namespace {

constexpr std::int64_t kState = 4, kActions = 2, kMaxSteps = 500;

/// The cart moves on a rail and is pushed left or right 50 times a second. An episode ends when the pole leans by 12
/// degrees, the cart is 2.4 m away, or after 500 steps. The reward is 1 per step.
class CartPole {
  public:
    explicit CartPole(std::uint64_t seed) : random_(seed, 0, 0, data::Purpose::user) { reset(); }

    void reset() {
        for (double& value : state_) value = random_.uniform(-0.05F, 0.05F);
        steps_ = 0;
    }
    /// Returns true if the pole fell.
    bool step(std::int64_t action) {
        constexpr double gravity = 9.8, cart = 1, pole = 0.1, half_length = 0.5, push = 10, seconds = 0.02;
        auto& [x, speed, angle, angular_speed] = state_;
        const double force = action == 1 ? push : -push, sine = std::sin(angle), cosine = std::cos(angle);
        const double acceleration = (force + pole * half_length * angular_speed * angular_speed * sine) / (cart + pole);
        const double angular_acceleration = (gravity * sine - cosine * acceleration) /
                                            (half_length * (4.0 / 3 - pole * cosine * cosine / (cart + pole)));
        const double cart_acceleration =
            acceleration - pole * half_length * angular_acceleration * cosine / (cart + pole);
        x += seconds * speed;
        speed += seconds * cart_acceleration;
        angle += seconds * angular_speed;
        angular_speed += seconds * angular_acceleration;
        ++steps_;
        return std::abs(x) > 2.4 || std::abs(angle) > 12 * 3.14159265358979 / 180;
    }
    [[nodiscard]] std::int64_t steps() const { return steps_; }
    void append_to(std::vector<float>& all) const {
        for (const double value : state_) all.push_back(static_cast<float>(value));
    }

  private:
    std::array<double, kState> state_{};
    std::int64_t steps_ = 0;
    data::Random random_;
};

Tensor rows_of(const std::vector<float>& elements, std::int64_t columns) {
    return Tensor::from(elements, {static_cast<std::int64_t>(elements.size()) / columns, columns});
}
template <class T>
Tensor column_of(const std::vector<T>& elements) {
    return Tensor::from(elements, {static_cast<std::int64_t>(elements.size())});
}

/// Maps states (N, 4) to a score for each action and the value of the state.
nn::Sequential network() {
    return nn::Sequential(nn::Linear(kState, 64), nn::Tanh(), nn::Linear(64, 64), nn::Tanh(),
                          nn::Linear(64, kActions + 1));
}

std::vector<float> outputs(nn::Sequential& model, const std::vector<float>& states) {
    const NoGrad no_grad;
    return model(rows_of(states, kState)).to_vector<float>();
}

std::int64_t greedy_action(const float* scores) { return scores[1] > scores[0] ? 1 : 0; }
/// Samples an action from the softmax of the scores.
std::int64_t sample_action(const float* scores, data::Random& random) {
    return random.chance(1 / (1 + std::exp(scores[0] - scores[1]))) ? 1 : 0;
}
Tensor log_probabilities(const Tensor& scores, const Tensor& actions) {
    return squeeze(gather(log_softmax(slice(scores, 1, 0, kActions), 1), 1, unsqueeze(actions, 1)), 1);
}

/// Mean episode length over `count` parallel episodes with greedy actions.
double evaluate(nn::Sequential& model, std::int64_t count, std::uint64_t seed) {
    std::vector<CartPole> carts;
    for (std::int64_t i = 0; i < count; ++i) carts.emplace_back(seed + static_cast<std::uint64_t>(i));
    std::vector<bool> done(carts.size());
    for (std::int64_t step = 0; step < kMaxSteps; ++step) {
        std::vector<float> states;
        for (const CartPole& cart : carts) cart.append_to(states);
        const std::vector<float> scores = outputs(model, states);
        for (std::size_t i = 0; i < carts.size(); ++i)
            if (!done[i]) done[i] = carts[i].step(greedy_action(&scores[i * (kActions + 1)]));
        if (std::ranges::all_of(done, [](bool flag) { return flag; })) break;
    }
    double steps = 0;
    for (const CartPole& cart : carts) steps += static_cast<double>(cart.steps());
    return steps / static_cast<double>(count);
}

struct Options {
    std::string method = "ppo", device = {}, plot = {};
    std::int64_t steps = 150000;
    std::uint64_t seed = 1;
};

/// Collects the lengths of finished episodes, for the log and the learning curve.
class EpisodeLog {
  public:
    void ended(std::int64_t length, std::int64_t at) {
        lengths_.push_back(static_cast<double>(length));
        if (at < next_) return;
        next_ = at + 10000;
        const std::size_t count = std::min<std::size_t>(lengths_.size(), 50);
        const double mean = std::accumulate(lengths_.end() - static_cast<std::ptrdiff_t>(count), lengths_.end(), 0.0) /
                            static_cast<double>(count);
        curve_.x.push_back(static_cast<double>(at));
        curve_.y.push_back(mean);
        std::printf("step %7lld: episodes of %.1f steps\n", static_cast<long long>(at), mean);
    }
    void draw(const std::string& path) const {
        io::write_png(path, train::learning_curve({.title = "Cart-pole balancing",
                                                   .x_label = "steps",
                                                   .losses = {curve_},
                                                   .losses_label = "episode length (steps)"}));
    }

  private:
    std::vector<double> lengths_;
    train::Series curve_{.name = "mean of 50", .x = {}, .y = {}};
    std::int64_t next_ = 0;
};

void ppo(nn::Sequential& model, const Options& options, EpisodeLog& episode_log) {
    constexpr std::int64_t kCarts = 8, kSteps = 128, kBatch = 256, kPasses = 6;
    constexpr float kDiscount = 0.99F, kLambda = 0.95F;
    constexpr float kValueScale =
        100;  // the value output is in hundreds, so that value errors do not dominate the policy loss
    constexpr double kClip = 0.2;
    optim::Adam optimizer(model.parameters(), {.lr = 1e-3});
    data::Random random(options.seed, 0, 0, data::Purpose::user);
    std::vector<CartPole> carts;
    for (std::int64_t i = 0; i < kCarts; ++i) carts.emplace_back(options.seed * 1000 + static_cast<std::uint64_t>(i));
    constexpr std::int64_t round = kCarts * kSteps;
    for (std::int64_t at = 0; at < options.steps; at += round) {
        optimizer.set_learning_rate(1e-3 * (1 - static_cast<double>(at) / static_cast<double>(options.steps)) + 1e-5);
        // Rollout of all carts with the network's outputs at that time.
        std::vector<float> states, values, rewards, log_probs;
        std::vector<std::int64_t> actions;
        std::vector<bool> ends;
        for (std::int64_t t = 0; t < kSteps; ++t) {
            std::vector<float> now;
            for (const CartPole& cart : carts) cart.append_to(now);
            const std::vector<float> scores = outputs(model, now);
            states.insert(states.end(), now.begin(), now.end());
            for (std::size_t i = 0; i < carts.size(); ++i) {
                const float* score = &scores[i * (kActions + 1)];
                const std::int64_t action = sample_action(score, random);
                actions.push_back(action);
                log_probs.push_back(-std::log1p(std::exp(score[1 - action] - score[action])));
                values.push_back(kValueScale * score[kActions]);
                const bool terminated = carts[i].step(action), truncated = carts[i].steps() >= kMaxSteps;
                float reward = 1;
                if (truncated && !terminated) {  // truncated by the step limit, not fallen
                    std::vector<float> last;
                    carts[i].append_to(last);
                    reward += kDiscount * kValueScale * outputs(model, last)[kActions];
                }
                rewards.push_back(reward);
                ends.push_back(terminated || truncated);
                if (terminated || truncated) {
                    episode_log.ended(carts[i].steps(), at + t * kCarts);
                    carts[i].reset();
                }
            }
        }
        // Generalised advantage estimation (J. Schulman et al., High-dimensional continuous control ..., 2016).
        std::vector<float> now;
        for (const CartPole& cart : carts) cart.append_to(now);
        const std::vector<float> after = outputs(model, now);
        std::vector<float> advantages(values.size()), returns(values.size());
        for (std::size_t i = 0; i < kCarts; ++i) {
            float advantage = 0, next = kValueScale * after[i * (kActions + 1) + kActions];
            for (std::int64_t t = kSteps - 1; t >= 0; --t) {
                const std::size_t k = static_cast<std::size_t>(t) * kCarts + i;
                const float not_done = ends[k] ? 0.0F : 1.0F;
                const float value_error = rewards[k] + kDiscount * next * not_done - values[k];
                advantage = value_error + kDiscount * kLambda * not_done * advantage;
                advantages[k] = advantage;
                returns[k] = advantage + values[k];
                next = values[k];
            }
        }
        const Tensor all_states = rows_of(states, kState), all_actions = column_of(actions),
                     all_log_probs = column_of(log_probs), all_returns = column_of(returns),
                     raw = column_of(advantages), all_advantages = (raw - mean(raw)) / (sqrt(var(raw)) + 1e-8);
        for (std::int64_t pass = 0; pass < kPasses; ++pass) {
            const Tensor order = randperm(round);
            for (std::int64_t first = 0; first < round; first += kBatch) {
                const Tensor picked = slice(order, 0, first, first + kBatch);
                const auto minibatch_of = [&](const Tensor& all) { return index_select(all, 0, picked); };
                const Tensor scores = model(minibatch_of(all_states)), advantage = minibatch_of(all_advantages);
                const Tensor log_policy = log_softmax(slice(scores, 1, 0, kActions), 1);
                const Tensor ratio =
                    exp(log_probabilities(scores, minibatch_of(all_actions)) - minibatch_of(all_log_probs));
                const Tensor gain = minimum(ratio * advantage, clamp(ratio, 1 - kClip, 1 + kClip) * advantage);
                const Tensor value_error = select(scores, 1, kActions) - minibatch_of(all_returns) / kValueScale;
                const Tensor entropy = -sum(exp(log_policy) * log_policy, 1);
                const Tensor loss = mean(0.5 * square(value_error) - gain - 0.01 * entropy);
                loss.backward();
                optim::clip_grad_norm_(model.parameters(), 0.5);
                optimizer.step();
                optimizer.zero_grad();
            }
        }
    }
}

void reinforce(nn::Sequential& model, const Options& options, EpisodeLog& episode_log) {
    constexpr std::size_t kCarts = 16;
    optim::Adam optimizer(model.parameters(), {.lr = 5e-3});
    data::Random random(options.seed, 0, 0, data::Purpose::user);
    for (std::int64_t at = 0; at < options.steps;) {
        // Complete episodes of several carts.
        std::vector<CartPole> carts;
        for (std::size_t i = 0; i < kCarts; ++i)
            carts.emplace_back(static_cast<std::uint64_t>(at) * 31 + i + options.seed);
        std::vector<float> states, returns;
        std::vector<std::int64_t> actions;
        std::vector<std::vector<std::size_t>> episode_indices(kCarts);
        std::vector<bool> done(kCarts);
        for (std::int64_t step = 0; step < kMaxSteps; ++step) {
            std::vector<float> now;
            for (const CartPole& cart : carts) cart.append_to(now);
            const std::vector<float> scores = outputs(model, now);
            for (std::size_t i = 0; i < kCarts; ++i) {
                if (done[i]) continue;
                const std::int64_t action = sample_action(&scores[i * (kActions + 1)], random);
                episode_indices[i].push_back(actions.size());
                actions.push_back(action);
                states.insert(states.end(), now.begin() + static_cast<std::ptrdiff_t>(i * kState),
                              now.begin() + static_cast<std::ptrdiff_t>((i + 1) * kState));
                done[i] = carts[i].step(action);
            }
        }
        returns.resize(actions.size());
        for (const auto& episode : episode_indices) {
            float sum = 0;
            for (auto index = episode.rbegin(); index != episode.rend(); ++index)
                returns[*index] = sum = 1 + 0.99F * sum;
            at += static_cast<std::int64_t>(episode.size());
            episode_log.ended(static_cast<std::int64_t>(episode.size()), at);
        }
        const Tensor all_returns_tensor = column_of(returns), scores = model(rows_of(states, kState));
        const Tensor value = select(scores, 1, kActions), value_error = all_returns_tensor / 100 - value;  // baseline
        const Tensor advantage = value_error.detach(),
                     scaled = (advantage - mean(advantage)) / (sqrt(var(advantage)) + 1e-8);
        const Tensor loss = mean(square(value_error) - scaled * log_probabilities(scores, column_of(actions)));
        loss.backward();
        optim::clip_grad_norm_(model.parameters(), 0.5);
        optimizer.step();
        optimizer.zero_grad();
    }
}

void dqn(nn::Sequential& model, const Options& options, EpisodeLog& episode_log) {
    constexpr std::size_t kRoom = 20000, kBatch = 128;
    nn::Sequential target = network();
    target.load_state_dict(model.state_dict());
    optim::Adam optimizer(model.parameters(), {.lr = 5e-4});
    data::Random random(options.seed, 0, 0, data::Purpose::user);
    std::vector<float> before(kRoom * kState), after(kRoom * kState), not_done(kRoom);
    std::vector<std::int64_t> taken_actions(kRoom);
    CartPole cart(options.seed);
    for (std::int64_t at = 0; at < options.steps; ++at) {
        const auto index = static_cast<std::size_t>(at) % kRoom;
        std::vector<float> now, next;
        cart.append_to(now);
        const double epsilon = std::max(0.04, 1 - static_cast<double>(at) / 10000);
        const std::int64_t action = random.chance(static_cast<float>(epsilon))
                                        ? random.below(kActions)
                                        : greedy_action(outputs(model, now).data());
        const bool terminated = cart.step(action);
        cart.append_to(next);
        std::ranges::copy(now, before.begin() + static_cast<std::ptrdiff_t>(index * kState));
        std::ranges::copy(next, after.begin() + static_cast<std::ptrdiff_t>(index * kState));
        taken_actions[index] = action;
        not_done[index] = terminated ? 0.0F : 1.0F;
        if (terminated || cart.steps() >= kMaxSteps) {
            episode_log.ended(cart.steps(), at);
            cart.reset();
        }
        if (at < 1000 || at % 4 != 0) continue;
        std::vector<float> states, next_states, not_done_batch;
        std::vector<std::int64_t> actions;
        for (std::size_t i = 0; i < kBatch; ++i) {
            const auto k = static_cast<std::size_t>(
                random.below(std::min<std::int64_t>(at + 1, static_cast<std::int64_t>(kRoom))));
            for (std::size_t j = 0; j < kState; ++j) {
                states.push_back(before[k * kState + j]);
                next_states.push_back(after[k * kState + j]);
            }
            actions.push_back(taken_actions[k]);
            not_done_batch.push_back(not_done[k]);
        }
        Tensor target_values;
        {
            const NoGrad no_grad;
            target_values = 1 + 0.99 * column_of(not_done_batch) *
                                    amax(slice(target(rows_of(next_states, kState)), 1, 0, kActions), {1});
        }
        const Tensor predicted_values =
            squeeze(gather(model(rows_of(states, kState)), 1, unsqueeze(column_of(actions), 1)), 1);
        huber_loss(predicted_values, target_values).backward();
        optim::clip_grad_norm_(model.parameters(), 10);
        optimizer.step();
        optimizer.zero_grad();
        if (at % 500 == 0) target.load_state_dict(model.state_dict());
    }
}

}  // namespace

int main(int argc, char** argv) {
    Options options;
    CLI::App app("Trains an agent to balance a pole on a cart by reinforcement learning.");
    app.add_option("--method", options.method, "ppo, reinforce or dqn")
        ->check(CLI::IsMember({"ppo", "reinforce", "dqn"}))
        ->capture_default_str();
    app.add_option("--steps", options.steps, "environment steps in total")->capture_default_str();
    app.add_option("--seed", options.seed, "random seed")->capture_default_str();
    app.add_option("--device", options.device,
                   "device: gpu, cpu, an id such as 0:0, or part of a name (default: the best one)");
    app.add_option("--plot", options.plot, "PNG file for the learning curve");
    CLI11_PARSE(app, argc, argv);
    return guarded([&] {
        if (!options.device.empty()) set_default_device(Device::select(options.device));
        manual_seed(options.seed);
        nn::Sequential model = network();
        EpisodeLog episode_log;
        if (options.method == "ppo") ppo(model, options, episode_log);
        else if (options.method == "dqn") dqn(model, options, episode_log);
        else reinforce(model, options, episode_log);
        if (!options.plot.empty()) episode_log.draw(options.plot);
        std::printf("mean of 100 episodes: %.1f of %lld\n", evaluate(model, 100, 123456 + options.seed),
                    static_cast<long long>(kMaxSteps));
        return 0;
    });
}
