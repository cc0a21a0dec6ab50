// Layer 6, private. Scoped evaluation mode.
#pragma once

#include <utility>
#include <vector>

#include <declivity/nn/module.hpp>

namespace declivity::nn {

/// While an instance is alive, a module and its descendants are in evaluation mode; then the mode of each is restored.
class EvaluationMode {
  public:
    explicit EvaluationMode(Module& module) {
        note(module);
        module.eval();
    }
    ~EvaluationMode() {
        // train() applies to descendants as well: restored from the outermost to the innermost.
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
