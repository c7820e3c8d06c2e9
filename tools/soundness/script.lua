-- What the interpreter must still do after its code was transformed. No addresses, times or hash orders are
-- printed, so that every right interpreter writes the same.

local function section(name) print("== " .. name) end

section("integers")
local x = 1
for i = 1, 60 do x = x * 6364136223846793005 + i; if i % 12 == 0 then print(x, x >> 7, ~x & 0xffff, x // i, x % i) end end
print(math.maxinteger + 1 == math.mininteger, 7 // -2, 7 % -2, -7 // 2, -7 % 2, 3 | 4 ~ 1 << 2)
print(math.ult(1, -1), math.tointeger(3.0), 10 // 3, 2^53 == 2^53 + 1, 1 < 1.5, -1 == -1.0)
print(string.format("%d %5d|%-5d|%05d|%x|%X|%o", 42, 42, 42, 42, 255, 255, 8))

section("floats")
print(0.1 + 0.2, 1e308 * 10, -1e308 * 10, 1 / 3, 100 / 3, 2^0.5, 7.5 // 2, -7.5 % 2)
print(string.format("%.14g %e %a %5.1f|%g %g", math.pi, 12345.678, 0.5, 2.25, 1e20, 1e-5))
print(math.floor(-3.5), math.ceil(-3.5), math.fmod(7, 3), math.fmod(-7, 3), math.abs(-0.0), math.max(1, 2.5))
local nan = 0 / 0
print(nan ~= nan, nan < 1, tostring(1e15), tostring(-0.0), 1e100, tonumber("0x1p4"), tonumber("1e1"), tonumber("z", 36))
local sum = 0.0
for i = 1, 2000 do sum = sum + 1 / (i * i) end
print(string.format("%.12f", sum), math.sqrt(2), math.exp(1), math.log(8, 2))

section("strings")
local s = "The quick brown fox jumps over the lazy dog"
print(#s, s:upper(), s:reverse(), s:sub(-8, -5), s:byte(1, 5))
print(s:find("fox"), s:find("o", 20, true), s:match("(%a+) (%a+)$"), s:gsub("%w+", string.lower))
for word, rest in s:gmatch("(%w)(%w*)") do io.write(word, #rest, " ") end
print(("x"):rep(5, ","), ("%d+"):len(), ("a,b,,c"):gsub(",", ";", 2))
print(("key = value # note"):match("^(%w+)%s*=%s*(%w+)"), ("[[nested]]"):find("[[]", 1), ("f(a(b)c)d"):match("%b()"))
print(("THE (quick) fox"):find("%((%a+)%)"), ("hello world"):gsub("o", {o = "0"}), ("abc"):gsub("", "-"))
print(("  trim  "):match("^%s*(.-)%s*$") .. "|", ("%5s|%-5s|%.2s"):format("ab", "ab", "abc"), ("%q"):format("a\n\"b\0c"))
print(string.pack("<i4 >I2 z s1", -2, 513, "zero", "one"):byte(1, -1))
print(string.unpack("<i4 >I2 z s1", string.pack("<i4 >I2 z s1", -2, 513, "zero", "one")))
print("10" + 5, "3" * "4", 10 .. 20, "a" < "b", "a" < "B", "" < "a", utf8.char(228, 8364, 128512), utf8.len("äöü"))
for p, c in utf8.codes("a€") do io.write(p, ":", c, " ") end print()
local pieces = {}
for i = 1, 300 do pieces[#pieces + 1] = string.char(97 + i * 7 % 26) end
local long = table.concat(pieces)
print(#long, long:sub(100, 120), select(2, long:gsub("a.", "")))

section("tables")
local t = {}
for i = 1, 200 do t[i] = (i * 7919) % 211 end
table.sort(t)
print(t[1], t[50], t[200], #t, table.concat(t, " ", 90, 100))
table.sort(t, function(a, b) return a % 10 * 1000 + a > b % 10 * 1000 + b end)
print(table.concat(t, " ", 1, 12), table.unpack({1, nil, 3}, 1, 3))
table.insert(t, 1, "first"); table.insert(t, "last"); print(table.remove(t, 1), table.remove(t), #t)
local map, keys = {}, {}
for i = 1, 500 do map["k" .. i] = i; map[i * 1.5] = -i; map[-i] = i * i end
for i = 1, 500, 3 do map["k" .. i] = nil end
local count, total = 0, 0
for k, v in pairs(map) do count = count + 1; total = total + v end
for k in pairs({b = 1, a = 2, c = 3}) do keys[#keys + 1] = k end
table.sort(keys)
print(count, total, map.k2, map[3.0], map[-7], table.concat(keys), next({}), rawlen({1, 2}), rawequal(t, t))
print(table.concat(table.move({1, 2, 3, 4, 5}, 2, 5, 1), ","), select("#", table.unpack({}, 1, 3)), table.pack(1, nil).n)
local grid = {}
for i = 1, 12 do grid[i] = {} for j = 1, 12 do grid[i][j] = i * j % 7 end end
local trace = 0
for i = 1, 12 do for j = 1, 12 do for k = 1, 12 do trace = trace + grid[i][k] * grid[k][j] end end end
print(trace)

section("closures")
local function counter(by) local n = 0; return function() n = n + by; return n end, function() return n end end
local up, look = counter(3)
up(); up(); print(up(), look())
local fs = {}
for i = 1, 5 do local k = i * i; fs[i] = function(d) k = k + (d or 0); return k end end
fs[2](10); print(fs[1](), fs[2](), fs[5](1))
local function vararg(...) local a, b = ...; return select("#", ...), a, b, ... end
print(vararg(), (vararg(1, nil)), vararg(nil, 2, nil))
local function fib(n) if n < 2 then return n end return fib(n - 1) + fib(n - 2) end
local function loop(n, acc) if n == 0 then return acc end return loop(n - 1, acc + n) end
print(fib(17), loop(20000, 0))
do local i = 1; ::top:: if i < 4 then io.write(i, " "); i = i + 1; goto top end print() end
do local c <const> = 5; local d <close> = setmetatable({}, {__close = function() print("closed", c) end}) print("open") end

section("coroutines")
local function permute(a, n)
  if n == 0 then coroutine.yield(a) end
  for i = 1, n do a[n], a[i] = a[i], a[n]; permute(a, n - 1); a[n], a[i] = a[i], a[n] end
end
for p in coroutine.wrap(function() permute({"a", "b", "c"}, 3) end) do io.write(table.concat(p), " ") end print()
local co = coroutine.create(function(a, b) local c = coroutine.yield(a + b); local d, e = coroutine.yield(c * 2); error({code = d + e}) end)
print(coroutine.resume(co, 1, 2)); print(coroutine.resume(co, 10))
local ok, err = coroutine.resume(co, 3, 4); print(ok, err.code, coroutine.status(co), coroutine.resume(co))
print(coroutine.isyieldable(), coroutine.close(coroutine.create(print)), select(2, coroutine.running()))
local inner = coroutine.wrap(function() for i = 1, 3 do pcall(coroutine.yield, i) end return "end" end)
print(inner(), inner(), inner(), inner())

section("metatables")
local V = {}
V.__index = V
V.__add = function(a, b) return setmetatable({x = a.x + b.x}, V) end
V.__eq = function(a, b) return a.x == b.x end
V.__lt = function(a, b) return a.x < b.x end
V.__le = function(a, b) return a.x <= b.x end
V.__call = function(self, k) return self.x * k end
V.__concat = function(a, b) return "<" .. (type(a) == "table" and a.x or a) .. (type(b) == "table" and b.x or b) .. ">" end
V.__len = function(a) return a.x end
V.__tostring = function(a) return "V" .. a.x end
V.__idiv = function(a, b) return "idiv" end
V.__unm = function(a) return setmetatable({x = -a.x}, V) end
local function vec(n) return setmetatable({x = n}, V) end
print(tostring(vec(1) + vec(2)), vec(3) == vec(3), vec(1) < vec(2), vec(2) <= vec(1), vec(4)(5), vec(1) .. "s", #vec(9), vec(1) // 2, tostring(-vec(6)))
local log = {}
local proxy = setmetatable({}, {__index = function(_, k) log[#log + 1] = "r" .. k; return k .. "!" end, __newindex = function(p, k, v) log[#log + 1] = "w" .. k; rawset(p, k, v) end})
proxy.a = 1; proxy.a = 2; print(proxy.a, proxy.b, table.concat(log, " "))
local Base = {}; Base.__index = Base
function Base.new(class, n) return setmetatable({n = n}, class) end
function Base:get() return self.n end
local Derived = setmetatable({}, {__index = Base}); Derived.__index = Derived
function Derived:get() return Base.get(self) * 2 end
print(Base:new(4):get(), Derived:new(4):get())

section("errors")
print(pcall(error, "plain"), pcall(error, nil), select("#", pcall(error)))
print(pcall(function() error("with place", 1) end))
print(pcall(function() local a; return a.b end))
print(pcall(function() return 1 + {} end))
print(pcall(function() return #5 end))
print(pcall(function() return {} < {} end))
print(pcall(string.rep)); print(pcall(string.format, "%d", 1.5)); print(pcall(setmetatable, 1, {}))
print(xpcall(function() error("deep") end, function(m) return "handled " .. m end))
print(select(2, pcall(function() local function f() return f() + 1 end return f() end)):match("stack overflow") )
print(load("return 1 +"), load("x ="), load("goto nowhere"), load("for i = 1 do end"))
print(load("return ...", "chunk", "t", {})(7), pcall(load("error 'e'", "=name")))
print(pcall(function() return 1 // 0 end)); print(1 // 0.0, pcall(math.tointeger, "x"))
print(pcall(next, {}, "none"), tostring(assert(1 == 1)), pcall(assert, false, "no"), pcall(assert, nil))

section("collector")
local weak = setmetatable({}, {__mode = "k"})
local held = {}
for i = 1, 500 do local key = {}; weak[key] = i; if i % 50 == 0 then held[#held + 1] = key end end
local finalized = 0
for i = 1, 300 do setmetatable({i}, {__gc = function(o) finalized = finalized + o[1] end}) end
collectgarbage(); collectgarbage()
local left = 0
for _ in pairs(weak) do left = left + 1 end
print(left, #held, finalized)
collectgarbage("generational")
local trees = {}
local function tree(d) if d == 0 then return {1} end return {tree(d - 1), tree(d - 1)} end
local function weigh(n) if not n[2] then return n[1] end return weigh(n[1]) + weigh(n[2]) end
for i = 1, 6 do trees[i % 3] = tree(i + 3); io.write(weigh(trees[i % 3]), " ") end print()
collectgarbage("incremental", 120, 200); collectgarbage("step", 50)
for i = 1, 2000 do local _ = ("garbage"):rep(i % 9) .. i end
print(collectgarbage("count") > 0, collectgarbage("isrunning"))

section("chunks")
local code = string.dump(function(a, b) local t = {a, b, n = a * b}; for i, v in ipairs(t) do t.n = t.n + v * i end return t.n end)
print(load(code, "dumped", "b")(3, 4), #code > 100, load(code, "dumped", "t"))
local names = {}
for name in pairs(_G) do if type(name) == "string" and #name < 6 then names[#names + 1] = name end end
table.sort(names); print(table.concat(names, " "))
print(debug.getinfo(1, "l").currentline, debug.getinfo(print, "S").what, (debug.traceback("tb", 1):gsub("\n.*", "")))
local lines = {}
debug.sethook(function(_, line) lines[#lines + 1] = line end, "l")
local a = 1
local b = a + 1
debug.sethook()
print(#lines, lines[2] - lines[1])
print(os.time({year = 2001, month = 2, day = 3, hour = 12}) - os.time({year = 2001, month = 2, day = 2, hour = 12}), os.date("!%Y-%m-%d %H:%M:%S", 86399))

section("work")
local function sieve(n) local p = {} for i = 2, n do p[i] = true end for i = 2, n do if p[i] then for k = i * i, n, i do p[k] = false end end end local c = 0 for i = 2, n do if p[i] then c = c + 1 end end return c end
print(sieve(5000))
local function queens(n, row, c, l, r) if row == n then return 1 end local f = 0 for i = 0, n - 1 do local b = 1 << i if (c | l | r) & b == 0 then f = f + queens(n, row + 1, c | b, (l | b) << 1, (r | b) >> 1) end end return f end
print(queens(6, 0, 0, 0, 0))
local heap, state = {}, 42
for i = 1, 300 do
  state = (state * 1103515245 + 12345) & 0x7fffffff
  heap[#heap + 1] = state % 1000
  local k = #heap
  while k > 1 and heap[k // 2] > heap[k] do heap[k // 2], heap[k] = heap[k], heap[k // 2]; k = k // 2 end
end
print(heap[1], heap[2], heap[150], heap[300])
local memo = setmetatable({}, {__index = function(m, n) local v = n < 3 and 1 or m[n - 1] + m[n - 2]; m[n] = v; return v end})
print(memo[90], ("%s"):rep(3, "-"):format(1, true, nil))
