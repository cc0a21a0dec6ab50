// Traces and tuning results.
#include <filesystem>

#include <declivity/ops/tuning.hpp>

#include "runtime/trace_reader.hpp"
#include "target.hpp"
#include "tests/support/temp_folder.hpp"

namespace declivity::fuzz {
namespace {

std::vector<Bytes> trace_seeds() {
    return {bytes_of(R"({"displayTimeUnit":"ms","traceEvents":[)"
                     R"({"ph":"M","name":"process_name","pid":2,"tid":0,"args":{"name":"a"}},)"
                     R"({"ph":"X","cat":"kernel","name":"conv","pid":2,"tid":1,"ts":10.5,"dur":4.0,)"
                     R"("args":{"scope":"Net/1","operator":"conv2d","flops":8000,"bytes":1000,"f64":true}},)"
                     R"({"ph":"X","cat":"copy","name":"copy","pid":3,"tid":2,"ts":1,"dur":1}],)"
                     R"("otherData":{"declivity":"0.1.0","devices":[{"pid":2,"id":"0:0","name":"a","platform":"p",)"
                     R"("driver":"d","ceilings":{"flops_f32":1e12,"flops_f64":5e11,"bytes":1e10}}],)"
                     R"("left_out":{"commands":12}}})")};
}

bool run_trace(Input input) {
    const InputFile file(input);
    bool read = false;
    for (const auto by : {detail::TraceKey::kernel, detail::TraceKey::module, detail::TraceKey::function})
        read = attempt(file.path(), [&] {
            for (const auto& device : detail::read_trace(file.path(), by).devices)
                for (const auto& [name, sum] : device.groups)
                    require(sum.calls > 0 && sum.seconds >= 0, "a sum of no calls");
        });
    return read;
}

std::vector<Bytes> tuning_seeds() {
    return {bytes_of(R"({"format":"declivity tuning 2","sections":[{"device":"a","driver":"b","library":"0.1.0",)"
                     R"("entries":{"matmul":{"winner":"gemm","microseconds":{"gemm":1.5,"tiled":2},)"
                     R"("rejected":{"x":"wrong"}}}}]})"),
            bytes_of(R"({"format":"declivity tuning 2","sections":[]})")};
}

bool run_tuning(Input input) {
    static const test::TempFolder folder;
    const InputFile file(input);
    const std::filesystem::path target = folder / "target.json";
    std::filesystem::remove(target);
    if (!attempt(file.path(), [&] { ops::merge_tuning({file.path()}, target); })) return false;
    // First as a target, then the written file as a source.
    attempt(target.string(), [&] { ops::merge_tuning({target, file.path()}, target); });
    test::put_file(target, input);
    require(attempt(target.string(), [&] { ops::merge_tuning({file.path()}, target); }), "a target is not a source");
    return true;
}

}  // namespace

std::vector<Target> runtime_targets() {
    return {{"trace", trace_seeds, run_trace}, {"tuning", tuning_seeds, run_tuning, 500}};
}

}  // namespace declivity::fuzz
