-- ARGV[3] is the marker to set, or ''.
-- Returns the birth, 1 if the entry is whole else 0, and each token after its name.
local marker = ARGV[3]
local whole, kept = entry.w and not suspect, {}
for field, value in pairs(entry) do
  local kind, name = string.sub(field, 1, 1), string.sub(field, 2)
  if name ~= '' and kind == 't' then
    kept[#kept + 1] = name
    kept[#kept + 1] = value
  elseif name ~= '' and kind == 'm' then
    if now - value < ttl then
      whole = false
    else
      redis.call('HDEL', key, field)
    end
  end
end
if marker ~= '' then
  redis.call('HSET', key, 'm' .. marker, integer(now))
end
redis.call('PEXPIRE', key, ARGV[1])
return {entry.b, whole and 1 or 0, unpack(kept)}
