-- Tries on KEYS[1], which must be there for nobody, each command that the other scripts
-- call. Returns what was refused, each with the server's reason after it.
local refused = {}
local function try(...)
  local answer = redis.pcall(...)
  if type(answer) == 'table' and answer.err then
    refused[#refused + 1] = string.lower((...))
    refused[#refused + 1] = answer.err
    return nil
  end
  return answer
end
local replication = try('INFO', 'replication')
if replication and not string.find(replication, '\nrole:master\r', 1, true) then
  return redis.error_reply('READONLY redisgate: this server is a replica')
end
if replication and not string.find(replication, '\nmaster_replid:%x') then
  return redis.error_reply('ERR redisgate: INFO replication has no master_replid here')
end
try('INFO', 'server', 'stats', 'persistence')
try('TIME')
try('HGETALL', KEYS[1])
try('HSET', KEYS[1], 'probe', 1)
try('PEXPIRE', KEYS[1], 1000)
try('HDEL', KEYS[1], 'probe')
return refused
