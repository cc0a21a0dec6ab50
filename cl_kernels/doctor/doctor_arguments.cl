// Structs passed by value, and many arguments: each kernel writes everything that it received, as 8-byte integers. The
// structs have no padding, except Padded: sizes and offsets are those of C.

struct Small {
    int a;
    float b;
};
struct Odd {
    int a, b, c;
};
struct Longs {
    long a[7];
    int b, c;
};
struct Bytes {
    uchar a[5];
    char b[3];
    short c[2];
    int d;
};
struct Inner {
    int a[3];
    float b;
};
struct Nested {
    long first;
    struct Inner inner[3];
    int list[8];
    long last;
};
struct Table {
    long first;
    int table[2][4];
    long last;
};
struct LargeStruct {
    int values[251];
    float last;
};  // read at constant indices: see indexed_struct_argument in src/runtime/opencl/driver_faults.cpp
struct Padded {
    long a;
    int b;
};

#define TO __global long* restrict out, const long out_offset
#define PUT(v) out[out_offset + at++] = (long)(v)

__kernel void doctor_small(const struct Small s, TO) {
    int at = 0;
    PUT(s.a);
    PUT(s.b);
}
__kernel void doctor_odd(TO, const struct Odd s) {
    int at = 0;
    PUT(s.a);
    PUT(s.b);
    PUT(s.c);
}
__kernel void doctor_longs(const struct Longs s, TO) {
    int at = 0;
#pragma unroll
    for (int i = 0; i < 7; ++i) PUT(s.a[i]);
    PUT(s.b);
    PUT(s.c);
}
__kernel void doctor_bytes(const int before, const struct Bytes s, const int behind, TO) {
    int at = 0;
    PUT(before);
    for (int i = 0; i < 5; ++i) PUT(s.a[i]);
    for (int i = 0; i < 3; ++i) PUT(s.b[i]);
    for (int i = 0; i < 2; ++i) PUT(s.c[i]);
    PUT(s.d);
    PUT(behind);
}
// Two structs with local memory in between.
__kernel void doctor_nested(const struct Nested s, __local int* between, const struct Odd behind, TO) {
    between[0] = behind.b;
    int at = 0;
    PUT(s.first);
    for (int i = 0; i < 3; ++i) {
        for (int j = 0; j < 3; ++j) PUT(s.inner[i].a[j]);
        PUT(s.inner[i].b);
    }
    for (int i = 0; i < 8; ++i) PUT(s.list[i]);
    PUT(s.last);
    PUT(behind.a);
    PUT(between[0]);
    PUT(behind.c);
}
__kernel void doctor_table(const struct Table s, TO) {
    int at = 0;
    PUT(s.first);
    for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 4; ++j) PUT(s.table[i][j]);
    PUT(s.last);
}
#define FIVE(x, m) m(x##0) m(x##1) m(x##2) m(x##3) m(x##4)
#define TEN(x, m) FIVE(x, m) m(x##5) m(x##6) m(x##7) m(x##8) m(x##9)
#define HUNDREDS(m) \
    TEN(10, m) TEN(11, m) TEN(12, m) TEN(13, m) TEN(14, m) TEN(15, m) TEN(16, m) TEN(17, m) TEN(18, m) TEN(19, m)
#define VALUE(index) PUT(s.values[index]);
// 1008 bytes, plus 16 for memory and offset: the maximum that every device supports.
__kernel void doctor_large(const struct LargeStruct s, TO) {
    int at = 0;
    PUT(s.values[0]);
    HUNDREDS(VALUE)
    PUT(s.values[250]);
    PUT(s.last);
}
__kernel void doctor_padded(const struct Padded s, TO) {
    int at = 0;
    PUT(s.a);
    PUT(s.b);
}

// 126 arguments, plus 16 bytes.
// clang-format off
#define ALL(m) TEN(a, m) TEN(b, m) TEN(c, m) TEN(d, m) TEN(e, m) TEN(f, m) TEN(g, m) TEN(h, m) TEN(i, m) TEN(j, m) \
    TEN(k, m) TEN(l, m) FIVE(n, m) m(n5)
// clang-format on
#define DECLARED(name) const long name,
#define WRITTEN(name) PUT(name);
__kernel void doctor_many(ALL(DECLARED) TO) {
    int at = 0;
    ALL(WRITTEN)
}

__kernel void doctor_types(const char a, const long b, const uchar c, const short d, const float e, const ushort f,
                           const int g, const char h, const ulong i, TO) {
    int at = 0;
    PUT(a);
    PUT(b);
    PUT(c);
    PUT(d);
    PUT(e);
    PUT(f);
    PUT(g);
    PUT(h);
    PUT(i);
}
