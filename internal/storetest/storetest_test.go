package storetest_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidegatedb/tidegate"
	"github.com/tidegatedb/tidegate/internal/storetest"
)

// broken is a store that does one thing wrong: it changes what comes in, or goes out.
type broken struct {
	tidegate.Store
	load func(s tidegate.Store, key, marker string) (tidegate.Kept, error)
	save func(key string, s *tidegate.Saving)
}

func (b *broken) Load(ctx context.Context, key, marker string) (tidegate.Kept, error) {
	if b.load != nil {
		return b.load(b.Store, key, marker)
	}
	return b.Store.Load(ctx, key, marker)
}

func (b *broken) Save(ctx context.Context, key string, s tidegate.Saving) error {
	if b.save != nil {
		b.save(key, &s)
	}
	return b.Store.Save(ctx, key, s)
}

// kept makes a load whose answer is changed.
func kept(change func(*tidegate.Kept)) func(tidegate.Store, string, string) (tidegate.Kept, error) {
	return func(s tidegate.Store, key, marker string) (tidegate.Kept, error) {
		k, err := s.Load(context.Background(), key, marker)
		change(&k)
		return k, err
	}
}

// A mistake is what a store can get wrong, and a case that has to notice.
var mistakes = map[string]struct {
	noticed string
	make    func(*broken)
}{
	"none": {"", func(*broken) {}},
	"everything is whole": {"NewEntry", func(b *broken) {
		b.load = kept(func(k *tidegate.Kept) { k.Whole = true })
	}},
	"nothing is whole": {"SaveMakesWhole", func(b *broken) {
		b.load = kept(func(k *tidegate.Kept) { k.Whole = false })
	}},
	"one birth for all": {"LostBetweenLoadAndSave", func(b *broken) {
		b.load = kept(func(k *tidegate.Kept) { k.Birth = "one" })
	}},
	"no markers": {"Marker", func(b *broken) {
		b.load = func(s tidegate.Store, key, _ string) (tidegate.Kept, error) {
			return s.Load(context.Background(), key, "")
		}
	}},
	"the answer is of the moment after": {"Marker", func(b *broken) {
		b.load = func(s tidegate.Store, key, marker string) (tidegate.Kept, error) {
			if marker != "" {
				s.Load(context.Background(), key, marker)
			}
			return s.Load(context.Background(), key, "")
		}
	}},
	"one marker at a time": {"MarkersOfOthers", func(b *broken) {
		b.load = func(s tidegate.Store, key, marker string) (tidegate.Kept, error) {
			if marker != "" {
				marker = "marker"
			}
			return s.Load(context.Background(), key, marker)
		}
		b.save = func(_ string, s *tidegate.Saving) {
			if len(s.Clear) > 0 {
				s.Clear = []string{"marker"}
			}
		}
	}},
	"nothing is cleared": {"Marker", func(b *broken) {
		b.save = func(_ string, s *tidegate.Saving) { s.Clear = nil }
	}},
	"nothing is forgotten": {"ForgetsWhatIsNamed", func(b *broken) {
		b.save = func(_ string, s *tidegate.Saving) { s.Forget = nil }
	}},
	"one token at a time": {"SavesAtOnce", func(b *broken) {
		b.load = kept(func(k *tidegate.Kept) { k.Tokens = k.Tokens[:min(1, len(k.Tokens))] })
	}},
	"saves are not told apart": {"SavesAddUp", func(b *broken) {
		b.save = func(_ string, s *tidegate.Saving) {
			for n := range 8 {
				s.Forget = append(s.Forget, "name "+string(rune('0'+n)))
			}
		}
	}},
	"tokens are not kept well": {"TokensComeBackAsTheyWere", func(b *broken) {
		b.save = func(_ string, s *tidegate.Saving) { s.Add.Token = tidegate.NewToken(s.Add.Token.Marks()...) }
	}},
	"keys are cut": {"KeysDoNotMix", func(b *broken) {
		b.load = func(s tidegate.Store, key, marker string) (tidegate.Kept, error) {
			return s.Load(context.Background(), key[:min(1, len(key))], marker)
		}
	}},
}

func TestMistakesAreNoticed(t *testing.T) {
	t.Parallel()
	for name, mistake := range mistakes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var failing []string
			synctest.Test(t, func(t *testing.T) {
				failing = storetest.Failing(t.Context(), func() storetest.Subject { return subject(t, mistake.make) })
			})
			if mistake.noticed == "" && len(failing) > 0 || mistake.noticed != "" && !slices.Contains(failing, mistake.noticed) {
				t.Errorf("%q fail, want %q", failing, mistake.noticed)
			}
		})
	}
}

// Stores that are too slow, or too quick, to forget.
func TestLifetimesAreNoticed(t *testing.T) {
	t.Parallel()
	for part, want := range map[float64][]string{.6: {"LoadsKeepAlive", "SavesKeepAlive"}, 1.2: {"EntryEnds", "MarkerEnds"}} {
		synctest.Test(t, func(t *testing.T) {
			failing := storetest.Failing(t.Context(), func() storetest.Subject {
				s := subject(t, func(*broken) {})
				s.Pass = func(_ context.Context, d time.Duration) error {
					time.Sleep(time.Duration(float64(d) / part))
					return nil
				}
				return s
			})
			for _, name := range want {
				if !slices.Contains(failing, name) {
					t.Errorf("of a lifetime that is %v of what it should be, %q take note, not %s", part, failing, name)
				}
			}
		})
	}
}

// subject returns a store with a mistake. It loses an entry by going on under
// another key.
func subject(t *testing.T, mistake func(*broken)) storetest.Subject {
	memory, err := tidegate.NewMemoryStore(tidegate.MemoryConfig{TTL: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	again := map[string]string{}
	b := &broken{Store: &renamed{memory, again}}
	mistake(b)
	return storetest.Subject{
		Store: b,
		Lose: func(_ context.Context, key string) error {
			again[key] += " again"
			return nil
		},
		Pass: func(_ context.Context, d time.Duration) error {
			time.Sleep(d)
			return nil
		},
	}
}

type renamed struct {
	tidegate.Store
	again map[string]string
}

func (r *renamed) Load(ctx context.Context, key, marker string) (tidegate.Kept, error) {
	return r.Store.Load(ctx, key+r.again[key], marker)
}

func (r *renamed) Save(ctx context.Context, key string, s tidegate.Saving) error {
	return r.Store.Save(ctx, key+r.again[key], s)
}
