#include "op_db.hpp"

#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>

#include <fmt/format.h>

namespace declivity::peers {
namespace {

DType dtype_of_name(const std::string& name) {
    for (const DType d_type : kDTypes)
        if (name_of(d_type) == name || (d_type == DType::boolean && name == "bool")) return d_type;
    throw std::runtime_error("unknown type " + name);
}

double number_of(const Json& json) {
    if (json.is_object() && json.contains("number")) {
        const std::string text = json["number"];
        return text == "nan"    ? std::numeric_limits<double>::quiet_NaN()
               : text == "-inf" ? -std::numeric_limits<double>::infinity()
                                : std::numeric_limits<double>::infinity();
    }
    if (json.is_boolean()) return json.get<bool>() ? 1 : 0;
    if (!json.is_number()) throw UnsupportedSample("an argument that is no number: " + json.dump());
    return json.get<double>();
}

bool is_tensor(const Json& json) { return json.is_object() && json.contains("tensor"); }

}  // namespace

Reader::Reader(const std::string& path, const Device& device) : device_(device) {
    std::ifstream file(path, std::ios::binary);
    bytes_.assign(std::istreambuf_iterator<char>(file), {});
}

Tensor Reader::tensor(const Json& json) const {
    const DType dtype = dtype_of_name(json["dtype"]);
    Shape shape;
    for (const auto& size : json["shape"]) shape.push_back(size.get<std::int64_t>());
    const char* from = bytes_.data() + json["tensor"][0].get<std::size_t>();
    const auto n = static_cast<std::size_t>(shape.numel());
    const auto from_elements = [&]<class T>(T) {
        std::vector<T> values(n);
        if (n > 0) std::memcpy(values.data(), from, n * sizeof(T));
        return Tensor::from(values, shape).to(device_);
    };
    switch (dtype) {
        case DType::f32:
            return from_elements(float());
        case DType::f64:
            return from_elements(double());
        case DType::f16:
            return from_elements(float16());
        case DType::bf16:
            return from_elements(bfloat16());
        case DType::i64:
            return from_elements(std::int64_t());
        case DType::i32:
            return from_elements(std::int32_t());
        case DType::i16:
            return from_elements(std::int16_t());
        case DType::i8:
            return from_elements(std::int8_t());
        case DType::boolean:
            return from_elements(std::uint8_t()).to(DType::boolean);
        default:
            return from_elements(std::uint8_t());
    }
}

Arguments::Arguments(const Json& call, const Reader& reader) : reader_(&reader) {
    for (const Json& arg : call["args"]) args_.push_back(arg);
    for (const auto& [name, value] : call["kwargs"].items()) kwargs_[name] = value, used_names_[name] = false;
    for (const Json& result : call["results"]) results_.push_back(result);
    used_.resize(args_.size());
    const auto add = [&](const auto& self, const Json& json) -> void {
        if (is_tensor(json)) {
            Tensor tensor = make_tensor(json);
            if (json["grad"].get<bool>()) differentiable_.push_back(tensor);
        } else if (json.is_object() && json.contains("list")) {
            for (const Json& item : json["list"]) self(self, item);
        }
    };
    for (const Json& item : args_) add(add, item);
    for (const auto& [name, value] : kwargs_) add(add, value);
}

Tensor Arguments::make_tensor(const Json& json) {
    const std::string key = json.dump();
    if (!tensors_.contains(key)) {
        Tensor tensor = reader_->tensor(json);
        if (json["grad"].get<bool>()) tensor.set_requires_grad();
        tensors_[key] = tensor;
    }
    return tensors_[key];
}

const Json* Arguments::find(std::size_t position, const char* name) {
    if (position < args_.size()) {
        used_[position] = true;
        return &args_[position];
    }
    if (name == nullptr || !kwargs_.contains(name)) return nullptr;
    used_names_[name] = true;
    return &kwargs_[name];
}

const Json& Arguments::raw(std::size_t position, const char* name) {
    static const Json none;
    const Json* found = find(position, name);
    return found == nullptr ? none : *found;
}

bool Arguments::has(std::size_t position, const char* name) {
    return position < args_.size() || (name != nullptr && kwargs_.contains(name));
}

bool Arguments::is_given(std::size_t position, const char* name) {
    const Json* json = find(position, name);
    return json != nullptr && !json->is_null();
}

DType Arguments::dtype(const Json& json) { return dtype_of_name(json["dtype"]); }

void Arguments::ignore(const char* name) {
    if (kwargs_.contains(name)) used_names_[name] = true;
}

Tensor Arguments::tensor(std::size_t position, const char* name) {
    const Json* json = find(position, name);
    if (json == nullptr || !is_tensor(*json)) throw UnsupportedSample("an argument that is no tensor");
    return make_tensor(*json);
}

Tensor Arguments::tensor_or_none(std::size_t position, const char* name) {
    const Json* json = find(position, name);
    if (json == nullptr || json->is_null()) return {};
    if (!is_tensor(*json)) throw UnsupportedSample("an argument that is no tensor");
    return make_tensor(*json);
}

std::vector<Tensor> Arguments::tensors(std::size_t position, const char* name) {
    const Json* json = find(position, name);
    if (json == nullptr || !json->is_object() || !json->contains("list"))
        throw UnsupportedSample("an argument that is no list");
    std::vector<Tensor> all;
    for (const Json& item : (*json)["list"]) {
        if (item.is_null()) all.emplace_back();
        else if (is_tensor(item)) all.push_back(make_tensor(item));
        else throw UnsupportedSample("a list with others than tensors");
    }
    return all;
}

TensorOrScalar Arguments::tensor_or_number(std::size_t position, const char* name) {
    const Json* json = find(position, name);
    if (json == nullptr) throw UnsupportedSample("an argument that is missing");
    if (is_tensor(*json)) return make_tensor(*json);
    if (json->is_number_integer()) return Scalar(json->get<std::int64_t>());
    return Scalar(number_of(*json));
}

std::int64_t Arguments::integer(std::size_t position, const char* name, std::optional<std::int64_t> default_value) {
    const Json* json = find(position, name);
    if (json == nullptr || json->is_null()) {
        if (!default_value) throw UnsupportedSample(fmt::format("{} is missing", name));
        return *default_value;
    }
    if (!json->is_number_integer() && !json->is_boolean())
        throw UnsupportedSample(fmt::format("{} is no integer", name));
    return json->is_boolean() ? (json->get<bool>() ? 1 : 0) : json->get<std::int64_t>();
}

double Arguments::number(std::size_t position, const char* name, std::optional<double> default_value) {
    const Json* json = find(position, name);
    if (json == nullptr || json->is_null()) {
        if (!default_value) throw UnsupportedSample(fmt::format("{} is missing", name));
        return *default_value;
    }
    return number_of(*json);
}

Scalar Arguments::scalar(std::size_t position, const char* name, std::optional<Scalar> default_value) {
    const Json* json = find(position, name);
    if (json == nullptr || json->is_null()) {
        if (!default_value) throw UnsupportedSample(fmt::format("{} is missing", name));
        return *default_value;
    }
    if (json->is_number_integer()) return json->get<std::int64_t>();
    return number_of(*json);
}

bool Arguments::flag(std::size_t position, const char* name, bool default_value) {
    const Json* json = find(position, name);
    return json == nullptr || json->is_null() ? default_value : number_of(*json) != 0;
}

std::string Arguments::word(std::size_t position, const char* name, const std::string& default_value) {
    const Json* json = find(position, name);
    if (json == nullptr || json->is_null()) return default_value;
    if (!json->is_string()) throw UnsupportedSample(fmt::format("{} is no word", name));
    return *json;
}

Dims Arguments::dims(std::size_t position, const char* name, const std::optional<Dims>& default_value) {
    const Json* json = find(position, name);
    if (json == nullptr || json->is_null()) {
        if (!default_value) throw UnsupportedSample(fmt::format("{} is missing", name == nullptr ? "a list" : name));
        return *default_value;
    }
    if (json->is_number_integer()) return {json->get<std::int64_t>()};
    if (!json->is_object() || !json->contains("list")) throw UnsupportedSample("an argument that is no list");
    Dims all;
    for (const Json& item : (*json)["list"]) {
        if (!item.is_number_integer() && !item.is_null()) throw UnsupportedSample("a list with others than integers");
        all.push_back(item.is_null() ? -1 : item.get<std::int64_t>());
    }
    return all;
}

std::vector<double> Arguments::numbers(std::size_t position, const char* name) {
    const Json* json = find(position, name);
    if (json == nullptr || json->is_null()) throw UnsupportedSample(fmt::format("{} is missing", name));
    if (!json->is_object() || !json->contains("list")) return {number_of(*json)};
    std::vector<double> all;
    for (const Json& item : (*json)["list"]) all.push_back(number_of(item));
    return all;
}

void Arguments::require_all_used() const {
    for (std::size_t i = 0; i < used_.size(); ++i)
        if (!used_[i]) throw UnsupportedSample(fmt::format("argument {}", i));
    for (const auto& [name, used] : used_names_)
        if (!used) throw UnsupportedSample("the argument " + name);
}

std::string describe(const Json& call) {
    const auto format_json = [](const auto& self, const Json& json) -> std::string {
        if (is_tensor(json)) return fmt::format("{}{}", json["dtype"].get<std::string>(), json["shape"].dump());
        if (json.is_object() && json.contains("list")) {
            std::string text;
            for (const Json& item : json["list"]) text += (text.empty() ? "" : ", ") + self(self, item);
            return "[" + text + "]";
        }
        return json.dump();
    };
    std::string text;
    for (const Json& arg : call["args"]) text += (text.empty() ? "" : ", ") + format_json(format_json, arg);
    for (const auto& [name, value] : call["kwargs"].items())
        text += ", " + name + "=" + format_json(format_json, value);
    const std::string variant = call.value("variant", "");
    return call["op"].get<std::string>() + "(" + text + ")" + (variant.empty() ? "" : ", " + variant);
}

}  // namespace declivity::peers
