-- The beginning of both scripts: learns what the server is, and finds the entry or makes it.
--
-- KEYS[1] is an entry, a hash:
--   b  birth
--   h  the history of the server in which it was born: the i below
--   w  there if a change of this birth was saved
--   t<name>  a token
--   m<name>  when the marker was set
-- KEYS[2] is what is known of the server, for all entries of the same hash tag:
--   i  its history, as a name that was drawn when that was first seen
--   r  its replication ID when it was seen last, see below
--   l  the life of its process then
--   s  since when it has this history, not there if no other was seen before
-- It does not expire. Times are of the server's clock, in ms.
--
-- ARGV[1] is the TTL in ms, ARGV[2] a name that was never used, for what is new.
--
-- What adds comes before what deletes: a server that may not write any more, such as one
-- that has no memory left, says so at the first write, and then nothing has happened.
local key, known, ttl, fresh = KEYS[1], KEYS[2], tonumber(ARGV[1]), ARGV[2]
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

-- Lua's numbers are floats, which the server may write with an exponent.
local function integer(n)
  return string.format('%.0f', n)
end

local function hash(of)
  local fields, found = redis.call('HGETALL', of), {}
  for i = 1, #fields, 2 do
    found[fields[i]] = fields[i + 1]
  end
  return found
end

local replication = redis.call('INFO', 'replication')
if not string.find(replication, '\nrole:master\r', 1, true) then
  -- The code is the one of refused writes, for which the client drops the connection.
  return redis.error_reply('READONLY redisgate: this server is a replica; its history is not the one that saves go to')
end

-- A primary's replication ID belongs to one process, and to one time of it as a
-- primary: it is drawn at the start, a full synchronization replaces it by the other
-- primary's, and a promotion draws a new one and makes the old one the second. So while it
-- is the same, the data never went back.
local id = string.match(replication, '\nmaster_replid:(%x+)')
if not id then
  return redis.error_reply('ERR redisgate: INFO replication has no master_replid here')
end
local promoted = not string.find(replication, '\nmaster_replid2:0+\r')

-- It is also drawn when a primary without a backlog gets its first replica, and when there
-- was none for so long that the backlog is given up (repl-backlog-ttl). Both clear the
-- second ID, so that a promotion can hide behind them. There was none that matters
-- if the process is the same and its data were not replaced: it received nothing from a
-- primary since. That is a counter, which CONFIG RESETSTAT sets to zero, but not what the
-- last load of a data set consisted of.
local function life()
  local info = redis.call('INFO', 'server', 'stats', 'persistence')
  local said = {}
  for _, name in ipairs({'run_id', 'total_net_repl_input_bytes', 'rdb_last_load_keys_loaded', 'rdb_last_load_keys_expired'}) do
    local value = string.match(info, '\n' .. name .. ':(%w+)')
    if not value then
      return '' -- like no other
    end
    said[#said + 1] = value
  end
  return table.concat(said, ' ')
end

local server = hash(known)
if server.r ~= id then
  local now_life = life()
  if server.r and not promoted and now_life ~= '' and now_life == server.l then
    redis.call('HSET', known, 'r', id)
  else
    -- With nothing known the store is new, or has lost all. A promoted server may
    -- also have been late in hearing of the history before.
    server.i = fresh
    redis.call('HSET', known, 'i', fresh, 'r', id, 'l', now_life)
    if server.r or promoted then
      server.s = integer(now)
      redis.call('HSET', known, 's', server.s)
    end
  end
end
-- Requests that began before may go on with the old server: what they save there will
-- not be here.
local suspect = server.s and now - server.s < ttl

local entry = hash(key)
if not entry.b or entry.h ~= server.i then
  redis.call('HSET', key, 'b', fresh, 'h', server.i)
  if entry.w then
    redis.call('HDEL', key, 'w')
  end
  entry.b, entry.h, entry.w = fresh, server.i, nil
end
