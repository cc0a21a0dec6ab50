// Layer 4, private. Evaluation mode for a while.
#pragma once

#include <utility>
#include <vector>

#include <declivity/nn/module.hpp>

namespace declivity::nn {

/// While one lives, a module and all below it are in evaluation mode; then each is in its own mode again.
class EvaluationMode {
  public:
    explicit EvaluationMode(Module& module) {
        note(module);
        module.eval();
    }
    ~EvaluationMode() {
        // train() reaches what is below, too: from the outermost to the innermost.
        for (const auto& [module, training] : before_)
            if (module->training() != training) module->train(training);
    }
    EvaluationMode(const EvaluationMode&) = delete;
    EvaluationMode& operator=(const EvaluationMode&) = delete;

  private:
    void note(Module& module) {
        before_.emplace_back(&module, module.training());
        for (const auto& [name, child] : module.children()) note(*child);
    }

    std::vector<std::pair<Module*, bool>> before_;
};

}  // namespace declivity::nn
