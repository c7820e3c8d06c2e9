"""The programs: how each is configured, built and tested by its own build system."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Program:
    """A program.

    Commands are lines for the shell, in the folder of the sources, in which `{cc}`, `{cxx}` and `{flags}` are
    filled in, and `{cc1}`, a compiler of one word, as `{cxx}` is.

    Args:
        name: of Debian's source package.
        title: what the table calls it.
        prepare: what comes before it is configured, once.
        configure: what is not timed.
        build: what is timed.
        products: whose `.text` is counted: programs and libraries.
        test: what builds and runs its own tests; it fails where they do.
        says: run besides, and must say the same as what clang built.
    """

    name: str
    title: str
    build: str
    products: tuple[str, ...]
    test: str = "true"
    prepare: str = "true"
    configure: str = "true"
    says: str = "true"


LUA_SCRIPT = """
local t, words = {{}}, {{}}
for i = 1, 2000 do t[i] = (i * 7919) % 1009 end
table.sort(t)
for w in ("the quick brown fox jumps over the lazy dog"):gmatch("%a+") do words[#words + 1] = w:upper() end
local co = coroutine.wrap(function(...) for _, v in ipairs({{...}}) do coroutine.yield(v * 2) end end)
local ok, message = pcall(function() error({{code = 7}}) end)
local f = load("local a, b <const> = ..., 2 return a // b, a / b, a % b, a << b, ~a")
print(t[1], t[1000], t[2000], table.concat(words, " "), co(3), co(4), ok, message.code, f(23))
print(string.format("%5.2f %q %x %s", math.pi, "a\\n", 255, tostring(nil)), ("x"):rep(5, ","))
print(utf8.char(228, 8364))
local function close() print("closed") end
local m = setmetatable({{}}, {{__index = function(_, k) return k .. "!" end, __close = close}})
do local c <close> = m print(m.hello) end
collectgarbage() print(string.pack("<i4z", 77, "z"):byte(1, -1))
"""

DASH_SCRIPT = """
fact() {{ if [ "$1" -le 1 ]; then echo 1; else echo $(( $1 * $(fact $(($1 - 1))) )); fi; }}
set -- alpha beta "gamma delta"
for word in "$@"; do printf "%s|" "${{word%a}}" "${{word#*a}}" "${{#word}}"; done; echo
echo $(fact 10) $((7 % 3 << 4 | 1)) ${{unset:-default}} "$#" "$*"
case README.txt in *.md) echo no;; R*.t?t) echo matched;; esac
while read -r a b; do echo "$b-$a"; done <<INPUT
1 one
2 two
INPUT
(trap 'echo leaving' EXIT; exit 3); echo "code $?"
echo x y z | {{ read -r p q; echo "$q $p"; }}
eval 'i=0; until [ $i -ge 3 ]; do i=$((i + 1)); [ $i = 2 ] && continue; echo $i; done'
alias say=echo; IFS=:; for part in $(echo a:b:c); do echo "<$part>"; done; printf "%05d %x %s\\n" 42 255 end
"""

_BZIP2 = "CC='{cc}' CFLAGS='-Wall -Winline {flags} -D_FILE_OFFSET_BITS=64'"
_REDIS = " ".join(
    f"--single unit/{name}"
    for name in (
        *("type/string", "type/list", "type/hash", "type/set", "type/zset", "scripting", "sort"),
        *("bitops", "expire", "hyperloglog", "geo"),
    )
)

PROGRAMS = (
    Program(
        "lua5.4",
        "Lua 5.4.4",
        prepare="cd debian/patches && cat 0002-lua-modules-paths.patch 0001-build-system.patch "
        "| patch -R -p1 -d ../..",  # back to Lua's own Makefile: Debian's needs libtool
        build="make -C src linux-noreadline CC='{cc} -std=gnu99' MYCFLAGS='{flags}'",
        products=("src/lua", "src/luac"),
        test="make test",
        says=f"cat > check.lua <<'END'\n{LUA_SCRIPT}\nEND\n"
        "src/lua check.lua && src/luac -l check.lua | wc -l",
    ),
    Program(
        "zlib",
        "zlib 1.2.13",
        # Its version script names functions that it does not have, which lld refuses otherwise.
        configure="CC='{cc}' CFLAGS='{flags} -D_LARGEFILE64_SOURCE=1' LDSHARED='{cc} -shared "
        "-Wl,-soname,libz.so.1,--version-script,zlib.map,--undefined-version' ./configure",
        build="make libz.a libz.so.1.2.13",
        products=("libz.so.1.2.13",),
        test="make test",
    ),
    Program(
        "bzip2",
        "bzip2 1.0.8",
        build=f"make {_BZIP2} libbz2.a bzip2 bzip2recover",
        products=("libbz2.so.1.0.4", "bzip2", "bzip2recover"),
        test=f"LD_LIBRARY_PATH=. make {_BZIP2} test",
    ),
    Program(
        "lz4",
        "lz4 1.9.4",
        # Its Makefile, as Debian has it, links the library of the system.
        build="{cc} {flags} -Ilib -DXXH_NAMESPACE=LZ4_ lib/*.c programs/*.c -lpthread -o programs/lz4",
        products=("programs/lz4",),
        test="cat lib/*.c > all.txt && programs/lz4 -9 < all.txt | programs/lz4 -d | cmp - all.txt",
        says="cat lib/*.c programs/*.c | programs/lz4 -12 | cksum",
    ),
    Program(
        "libpng1.6",
        "libpng 1.6.39 (lists were chosen on it, too)",
        build="cp scripts/pnglibconf.h.prebuilt pnglibconf.h && "
        "{cc} {flags} -I. png*.c -lz -lm -o pngtest && "
        "{cc} {flags} -I. contrib/libtests/pngvalid.c $(ls png*.c | grep -v pngtest) -lz -lm -o pngvalid",
        products=("pngtest", "pngvalid"),
        test="for test in tests/pngtest-all tests/pngvalid-*; do srcdir=. sh -e $test || exit 1; done",
        says="./pngtest pngtest.png out.png && cksum < out.png",
    ),
    Program(
        "dash",
        "dash 0.5.12",
        prepare="test -x configure || autoreconf -i",
        configure="CC='{cc}' ./configure",
        build="make CC='{cc} {flags}' CFLAGS= CC_FOR_BUILD=gcc",  # CFLAGS are for its tools, too
        products=("src/dash",),
        says=f"cat > check.sh <<'END'\n{DASH_SCRIPT}\nEND\nsrc/dash check.sh",
    ),
    Program(
        "fmtlib",
        "{fmt} 9.1.0 (C++)",
        configure="cmake -S . -B build -DCMAKE_CXX_COMPILER='{cxx}' -DCMAKE_BUILD_TYPE=MinSizeRel "
        "-DCMAKE_CXX_FLAGS_MINSIZEREL='{flags} -DNDEBUG' -DBUILD_SHARED_LIBS=ON -DFMT_TEST=OFF "
        "-DFMT_DOC=OFF",
        build="cmake --build build --target fmt",
        products=("build/libfmt.so.9.1.0",),
        test="cd test && for name in format-test printf-test; do "
        "clang++-22 -w -std=c++17 -I../include -DFMT_SHARED $name.cc gtest-extra.cc test-main.cc util.cc "
        "-L../build -lfmt -lgmock -lgtest -lpthread -o $name && LD_LIBRARY_PATH=../build ./$name || exit 1; "
        "done",
    ),
    Program(
        "fribidi",
        "GNU FriBidi 1.0.8",
        configure="CC='{cc}' CFLAGS='{flags}' ./configure --disable-shared",
        build="make -C lib && make -C bin fribidi",
        products=("bin/fribidi",),
        test="cd test && for case in test_*.input; do set -- $(echo $case | tr _. '  '); "
        "../bin/fribidi --test --charset $2 $case | cmp - ${{case%.input}}.reference || exit 1; done",
    ),
    Program(
        "jq",
        "jq 1.6",
        prepare="test -x configure || autoreconf -i",
        configure="CC='{cc}' CFLAGS='{flags}' ./configure --disable-shared --disable-docs "
        "--disable-maintainer-mode --without-oniguruma",
        build="make src/builtin.inc src/version.h jq",  # its Makefile lacks what builtin.lo includes
        products=("jq",),
        test="./jq -L tests/modules --run-tests tests/jq.test && ./jq --run-tests tests/base64.test",
        says="./jq -n -c '[range(200) | {{a: ., b: (. * 7919 % 1009 | tostring)}}] | group_by(.a % 7) "
        '| map([.[].b] | sort | join("-") | @base64)\'',
    ),
    Program(
        "mbedtls",
        "Mbed TLS 2.28",
        build="{cc} {flags} -Iinclude library/*.c programs/test/selftest.c -o selftest",
        products=("selftest",),
        test="./selftest",
        says="./selftest -x timing entropy | grep -v -i random",
    ),
    Program(
        "cjson",
        "cJSON 1.7.15",
        configure="cmake -S . -B build -DCMAKE_C_COMPILER='{cc1}' -DCMAKE_C_FLAGS='{flags}' "
        "-DENABLE_CJSON_UTILS=On -DENABLE_CUSTOM_COMPILER_FLAGS=Off",
        build="cmake --build build --target cjson cjson_utils",
        products=("build/libcjson.so.1.7.15", "build/libcjson_utils.so.1.7.15"),
        test="cmake --build build && ctest --test-dir build --output-on-failure",
    ),
    Program(
        "sqlite3",
        "SQLite 3.40.1",
        configure="CC='{cc}' CFLAGS='{flags}' ./configure --disable-tcl --disable-shared --disable-readline "
        "&& make sqlite3.c shell.c",
        build="make sqlite3",
        products=("sqlite3",),
        test="make fuzzcheck && ./fuzzcheck test/fuzzdata1.db test/fuzzdata2.db test/fuzzdata3.db",
        says='./sqlite3 :memory: "with recursive c(i) as (select 1 union all select i+1 from c where i<5000) '
        "select count(*), sum(i*i%97), group_concat(hex(i%16),''), max(printf('%.3f', i/7.0)) from c\"",
    ),
    Program(
        "redis",
        "Redis 7.0.15",
        build="make -C src V=1 MALLOC=libc CC='{cc}' OPTIMIZATION='{flags}' "
        "redis-server redis-cli redis-benchmark",
        products=("src/redis-server", "src/redis-cli", "src/redis-benchmark"),
        test=f"./runtest --clients 1 {_REDIS}",
    ),
    Program(
        "libjsoncpp",
        "JsonCpp 1.9.5 (C++)",
        configure="cmake -S . -B build -DCMAKE_CXX_COMPILER='{cxx}' -DCMAKE_BUILD_TYPE=MinSizeRel "
        "-DCMAKE_CXX_FLAGS_MINSIZEREL='{flags} -DNDEBUG' -DBUILD_OBJECT_LIBS=OFF -DBUILD_STATIC_LIBS=OFF",
        build="cmake --build build --target jsoncpp_lib",
        products=("build/lib/libjsoncpp.so.1.9.5",),
        test="cmake --build build && build/bin/jsoncpp_test && ctest --test-dir build --output-on-failure",
    ),
    Program(
        "pugixml",
        "pugixml 1.13 (C++)",
        configure="cmake -S . -B build -DCMAKE_CXX_COMPILER='{cxx}' -DCMAKE_CXX_FLAGS='{flags}' "
        "-DBUILD_SHARED_LIBS=ON",
        build="cmake --build build --target pugixml-shared",
        products=("build/libpugixml.so.1.13",),
        test="make test config=release defines=standard CXX='{cxx}' CXXFLAGS='-O1 -Isrc -std=c++11'",
    ),
)
