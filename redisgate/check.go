package redisgate

import (
	"context"
	"crypto/rand"
	_ "embed" // the script
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

//go:embed check.lua
var checkLua string

var checkScript = redis.NewScript(checkLua)

// Check tries what loads and saves do, on a key of its own that it removes again. An
// application calls it when it starts: without a store that works, sessions catch up at each
// request, and all that tells of it are counters. The error says what is missing, such
// as a permission, and what to grant, or that the server is a replica.
func (s *Store) Check(ctx context.Context) error {
	// EVAL and EVALSHA are permissions of their own: a server that has run the script
	// before would be asked for the second only.
	keys := s.keys("check " + rand.Text())[:1]
	answer, err := checkScript.Eval(ctx, s.client, keys).StringSlice()
	if err == nil && len(answer) == 0 {
		answer, err = checkScript.EvalSha(ctx, s.client, keys).StringSlice()
	}
	switch {
	case redis.IsReadOnlyError(err):
		return fmt.Errorf("redisgate: the server is a read-only replica; use the primary's address, or redis.NewFailoverClient: %w", err)
	case redis.IsPermissionError(err):
		return fmt.Errorf("redisgate: the user may not run scripts on the store's keys; %s: %w", s.grant(), err)
	case err != nil:
		return fmt.Errorf("redisgate: %w", err)
	case len(answer) == 0:
		return nil
	}
	var refused []string
	for i := 0; i+1 < len(answer); i += 2 {
		if !slices.Contains(refused, answer[i]) {
			refused = append(refused, answer[i])
		}
	}
	return fmt.Errorf("redisgate: in a script the server refuses %s; %s: %s", strings.Join(refused, ", "), s.grant(), answer[1])
}

// grant says what the user needs.
func (s *Store) grant() string {
	return fmt.Sprintf("grant it by ACL SETUSER <user> ~%s* +eval +evalsha +info +time +hgetall +hset +hdel +pexpire", s.cfg.Prefix)
}
