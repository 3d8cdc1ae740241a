package redisgate

import (
	"context"
	"crypto/rand"
	_ "embed" // the scripts
	"fmt"
	"hash/fnv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tidegatedb/tidegate"
)

var (
	//go:embed use.lua
	useLua string
	//go:embed load.lua
	loadLua string
	//go:embed save.lua
	saveLua string

	loadScript = redis.NewScript(useLua + loadLua)
	saveScript = redis.NewScript(useLua + saveLua)
)

// Store is a [tidegate.Store] on Redis or Valkey. It is safe for concurrent use. It
// holds nothing itself: the client is the caller's to close.
type Store struct {
	client redis.UniversalClient
	cfg    Config
}

// New returns a store on a client's server, servers or cluster. It talks to none
// of them yet: see [Store.Check]. An error wraps [tidegate.ErrConfig] and names the field.
func New(client redis.UniversalClient, cfg Config) (*Store, error) {
	cfg = cfg.withDefaults()
	err := usable(client)
	if err == nil {
		err = cfg.validate()
	}
	if err != nil {
		return nil, fmt.Errorf("%w: redisgate: %w", tidegate.ErrConfig, err)
	}
	return &Store{client: client, cfg: cfg}, nil
}

// TTL implements [tidegate.Store].
func (s *Store) TTL() time.Duration { return s.cfg.TTL }

// tags is how many hash tags the keys have. What is known of a server is kept once for
// each, so that it is in the same slot of a cluster as the entry. There are as many
// pieces that can move to another node, and as many to learn that a server has changed.
const tags = 64

// keys returns the keys of the scripts. No entry's key is another one's second.
func (s *Store) keys(key string) []string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(key))
	server := fmt.Sprintf("%s{%02d}", s.cfg.Prefix, h.Sum32()%tags)
	return []string{server + ":" + key, server}
}

// Load implements [tidegate.Store]. A token that does not parse, because a newer
// release has kept it or somebody has changed it, makes the entry not whole and is there
// by its name, so that the next save forgets it.
func (s *Store) Load(ctx context.Context, key, marker string) (tidegate.Kept, error) {
	answer, err := loadScript.Run(ctx, s.client, s.keys(key), s.cfg.TTL.Milliseconds(), rand.Text(), marker).Slice()
	if err != nil {
		return tidegate.Kept{}, fmt.Errorf("redisgate: load: %w", err)
	}
	kept, ok := read(answer)
	if !ok {
		return tidegate.Kept{}, fmt.Errorf("redisgate: load: the script answered %q", answer)
	}
	return kept, nil
}

// read takes the answer of the script apart.
func read(answer []any) (tidegate.Kept, bool) {
	if len(answer) < 2 || len(answer)%2 != 0 {
		return tidegate.Kept{}, false
	}
	birth, isText := answer[0].(string)
	whole, isNumber := answer[1].(int64)
	if !isText || !isNumber {
		return tidegate.Kept{}, false
	}
	kept := tidegate.Kept{Birth: birth, Whole: whole == 1}
	for i := 2; i < len(answer); i += 2 {
		name, isText := answer[i].(string)
		data, isData := answer[i+1].(string)
		if !isText || !isData {
			return tidegate.Kept{}, false
		}
		token, err := tidegate.ParseBinary([]byte(data))
		if err != nil {
			kept.Whole = false // the token is zero
		}
		kept.Tokens = append(kept.Tokens, tidegate.KeptToken{Name: name, Token: token})
	}
	return kept, true
}

// Save implements [tidegate.Store].
func (s *Store) Save(ctx context.Context, key string, saving tidegate.Saving) error {
	token, err := saving.Add.Token.AppendBinary(nil)
	if err != nil {
		return fmt.Errorf("redisgate: save: %w", err)
	}
	args := make([]any, 0, 7+len(saving.Forget)+len(saving.Clear))
	args = append(args, s.cfg.TTL.Milliseconds(), rand.Text(), tidegate.MaxKept, saving.Birth,
		saving.Add.Name, token, len(saving.Forget))
	for _, name := range saving.Forget {
		args = append(args, name)
	}
	for _, marker := range saving.Clear {
		args = append(args, marker)
	}
	if err := saveScript.Run(ctx, s.client, s.keys(key), args...).Err(); err != nil {
		return fmt.Errorf("redisgate: save: %w", err)
	}
	return nil
}
