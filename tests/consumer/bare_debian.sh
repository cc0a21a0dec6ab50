#!/bin/sh
# tests/consumer/bare_debian.sh link|subdirectory|package|installed
#
# Runs the commands of README's "Install", and of docs/reference/packaging.md for pkg-config, on a machine with only git
# and a shell, as root, and builds and runs the consumer program. Installs everything that is missing; run it in a
# container or a chroot.
#   link          builds and installs by the first commands; then find_package and pkg-config
#   subdirectory  the sources within the consumer's project
#   package       ./bootstrap package, and `installed`
#   installed     installs build/package/*.deb by apt-get; then find_package and pkg-config without any path
set -eu
cd "$(dirname "$0")/../.."
source=$PWD
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

say() { printf '\n== %s\n' "$*"; }
# section KIND: the commands (indented), or the block in ```cmake, of README's "Install"; pkg-config: the commands of
# packaging.md.
section() {
    if [ "$1" = pkg-config ]; then
        sed -n '/^## pkg-config/,/^## Debian/s/^    //p' docs/reference/packaging.md
        return
    fi
    sed -n '/^## Install/,/^## Devices/p' README.md |
        if [ "$1" = cmake ]; then sed -n '/^```cmake/,/^```$/p' | sed '/^```/d'; else sed -n 's/^    //p'; fi
}
get() { apt-get -q -y install --no-install-recommends "$@" >"$scratch/apt.log" 2>&1 || { cat "$scratch/apt.log"; exit 1; }; }
# trained PROGRAM: the program runs and trains.
trained() {
    (cd "$scratch" && "$1" | tee said)
    grep -q '^saved, loaded and compared$' "$scratch/said"
}
# by_cmake COMMAND: a project from README's lines.
by_cmake() {
    say "find_package: $1"
    rm -rf "$scratch/project" && mkdir "$scratch/project"
    cp tests/consumer/main.cpp "$scratch/project/program.cpp"
    {
        echo 'cmake_minimum_required(VERSION 3.25)'
        echo 'project(program LANGUAGES CXX)'
        echo 'add_executable(program program.cpp)'
        section cmake
    } >"$scratch/project/CMakeLists.txt"
    (cd "$scratch/project" && sh -euc "$1")
    trained "$scratch/project/build/program"
}
# by_pkg_config PATTERN: the commands of packaging.md from the first one that matches.
by_pkg_config() {
    say "pkg-config"
    command -v pkg-config >/dev/null || get pkg-config
    cp tests/consumer/main.cpp "$scratch/program.cpp"
    section pkg-config | sed -n "/$1/,\$p" >"$scratch/commands"
    cat "$scratch/commands"
    (cd "$scratch" && sh -eu commands)
    trained "$scratch/program"
}

case ${1:-} in
    link)
        section shell | sed -n 1,2p >"$scratch/commands"
        cat "$scratch/commands"
        sh -eu "$scratch/commands"
        ~/.local/bin/declivity devices
        by_cmake "$(section shell | grep '^cmake -G')"
        by_pkg_config PKG_CONFIG_PATH
        ;;
    subdirectory)
        ./bootstrap install-build-packages
        say "add_subdirectory"
        cmake -G Ninja -S tests/consumer -B "$scratch/build" -DDECLIVITY_SOURCE_DIR="$source"
        cmake --build "$scratch/build" --parallel "$(nproc)"
        trained "$scratch/build/consumer"
        ;;
    package)
        ./bootstrap package
        exec "$0" installed
        ;;
    installed)
        apt-get -q update >/dev/null
        apt-get -q -y install ./build/package/*.deb >"$scratch/apt.log" 2>&1 || { cat "$scratch/apt.log"; exit 1; }
        declivity devices
        get g++ cmake make
        by_cmake 'cmake -S . -B build && cmake --build build'
        by_pkg_config '^c++'
        say "Removing"
        apt-get -q -y purge declivity libdeclivity-dev libdeclivity0.1 >/dev/null
        [ -z "$(find /usr -name '*declivity*')" ] || { find /usr -name '*declivity*'; exit 1; }
        ;;
    *)
        sed -n '2,11p' "$0" >&2
        exit 2
        ;;
esac
say "done"
