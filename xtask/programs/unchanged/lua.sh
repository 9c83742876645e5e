# needs lua5.4
cat >case.lua <<'P'
collectgarbage("generational")
local words = {}
for i = 1, 60000 do words[#words + 1] = ("%08x"):format((i * 2654435761) % 4294967296):rep(i % 7 + 1) end
table.sort(words)
local text = table.concat(words, " ")
local sum, n = 0, 0
for word in text:gmatch("%x+") do n = n + 1; sum = (sum * 31 + #word + word:byte(1)) % 1000000007 end
print(n, #text, sum, text:sub(1000, 1040))
local big = ("abc"):rep(3000000); local back = big:reverse():upper():gsub("B", "--")
print(#back, back:sub(-12))
local co = coroutine.wrap(function() for i = 1, 200000 do coroutine.yield({i, tostring(i)}) end end)
local total = 0 for i = 1, 200000 do local t = co(); total = total + t[1] + #t[2] end print(total)
local packed = {} for i = 1, 30000 do packed[i] = string.pack("<i8s4d", i, ("x"):rep(i % 900), i / 3) end
local check = 0 for i, p in ipairs(packed) do local a, b, c = string.unpack("<i8s4d", p); check = check + a + #b + c // 1 end print(check)
P
"$UNDER" lua5.4 case.lua
