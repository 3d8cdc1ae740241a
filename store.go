package tidegate

import (
	"context"
	"time"
)

// Store keeps the tokens of sessions on the server's side, for clients that
// cannot be trusted to keep one, or have no room for it. A [Keeper] uses it; an
// application only makes one, such as [NewMemoryStore] or redisgate's.
//
// Requests of one session run side by side, on several instances, and their loads and
// saves arrive in any order. So an entry is a set of tokens under names that are used
// once: a save adds one, and deletes exactly those whose content went into it. What two
// requests save at once is then there twice and nothing of it is lost, and a save that
// arrives late does no harm.
//
// A store can also lose what it had acknowledged: it evicts, it fails over to a copy that
// is older, it starts again from a snapshot. An entry that may be short of something
// is not whole, and its session catches up. It is whole when all of this holds:
//
//   - a change of its own birth was saved: who creates the entry, or finds it empty, has
//     caught up by then with all that was before;
//   - no marker is left: a marker is set before each write and cleared by the save
//     that follows the write, so that one that is left tells of a write that no save
//     tells of; it ends a [Store.TTL] after it was set;
//   - the store's own history (which server, in which life) is the one in which the entry
//     was born, and has been the store's for a TTL, unless it is its first: requests that
//     began before may go on with the old server, and what they save there is lost to
//     entries that were made or made whole meanwhile, but matters no longer than that.
//
// Implementations must be safe for concurrent use, and each call is one atomic
// step. Times are of the store's clock.
type Store interface {
	// Load returns what is kept under a key, and creates the entry, with a new
	// birth, if there is none. If marker is not empty it then sets that marker; the
	// answer is of the moment before. The entry lives for a TTL from now. It is one
	// round trip.
	Load(ctx context.Context, key, marker string) (Kept, error)
	// Save carries a change out. The entry lives for a TTL from now.
	Save(ctx context.Context, key string, s Saving) error
	// TTL returns how long an entry is kept from when it was used last.
	TTL() time.Duration
}

// MaxKept is the number of tokens that a store keeps under one key. A [Store]
// that is to keep more keeps the new one only and makes the entry another's, with a
// new birth: whoever loads it catches up.
const MaxKept = 64

// Kept is what a [Store] has under a key.
type Kept struct {
	// Birth identifies the entry: one that was lost and made again has another.
	Birth string
	// Whole tells that nothing is known to be missing. Otherwise the session must catch up.
	Whole bool
	// Tokens are the session's tokens; it must see what any of them requires.
	Tokens []KeptToken
}

// KeptToken is a token in a [Store].
type KeptToken struct {
	// Name is what it is kept under: used once, for ever.
	Name string
	// Token is what is kept.
	Token Token
}

// Saving is a change that a [Store] carries out.
type Saving struct {
	// Birth is that of the entry that was loaded. A change of another one's, or of none
	// (""), is carried out but makes nothing whole.
	Birth string
	// Add is the token to add, under a name that was never used before.
	Add KeptToken
	// Forget names the tokens whose content is in the new one.
	Forget []string
	// Clear lists the markers of the writes that the new token tells of.
	Clear []string
}
