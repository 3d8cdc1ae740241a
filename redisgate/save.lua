-- ARGV[3] is how many tokens are kept at most, ARGV[4] the birth that was loaded or '',
-- ARGV[5] the new token's name and ARGV[6] the token, ARGV[7] how many names to forget;
-- those follow, and then the markers to clear.
local most, loaded, add, token, forgotten = tonumber(ARGV[3]), ARGV[4], 't' .. ARGV[5], ARGV[6], tonumber(ARGV[7])
local gone = {}
for i = 8, #ARGV do
  gone[(i < 8 + forgotten and 't' or 'm') .. ARGV[i]] = true
end
gone[add] = nil -- a client that got no answer repeats itself

local others = {}
for field in pairs(entry) do
  if #field > 1 and string.sub(field, 1, 1) == 't' and field ~= add and not gone[field] then
    others[#others + 1] = field
  end
end
redis.call('HSET', key, add, token)
if #others >= most then
  entry.b, entry.w = fresh, nil
  redis.call('HSET', key, 'b', fresh)
  redis.call('HDEL', key, 'w', unpack(others))
end
for field in pairs(gone) do
  redis.call('HDEL', key, field)
end
if loaded == entry.b then
  redis.call('HSET', key, 'w', 1)
end
redis.call('PEXPIRE', key, ARGV[1])
return 1
