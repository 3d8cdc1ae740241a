package route

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidegatedb/tidegate/internal/mono"
)

// small is a primary that serves so many statements at a time, each for as long;
// others queue there, first come first served.
type small struct {
	slots chan struct{}
	cost  time.Duration
}

func (s *small) serve(r *rand.Rand) {
	s.slots <- struct{}{}
	time.Sleep(s.cost + time.Duration(r.Int64N(int64(s.cost)/4)))
	<-s.slots
}

// rush is a fleet of processes that write all the time, and for a while have reads that
// want to fall back.
type rush struct {
	processes    int
	most         int
	fixed        bool
	slots        int
	cost         time.Duration
	writes       float64       // per second, of all processes together
	reads        float64       // that want to fall back
	calm, lasts  time.Duration // before it, and it
	silent       bool          // nobody tells of the writes
	sometimes    float64       // reads that want to fall back before it
	writesSlower time.Duration // from its middle on, whatever reads do
}

// rushed is what came of it: how long writes took before and during the rush, how many
// reads were served and sent away, and the limits at the end.
type rushed struct {
	before, during, late []time.Duration // late is of the second half of it
	served, shed         int
	limits               []float64
}

func p95(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)*95/100]
}

func (c rush) run(t *testing.T, seed uint64) (out rushed) {
	synctest.Test(t, func(t *testing.T) {
		primary := &small{make(chan struct{}, c.slots), c.cost}
		var mu sync.Mutex
		var all sync.WaitGroup
		start := time.Now()
		from, half, end := start.Add(c.calm), start.Add(c.calm+c.lasts/2), start.Add(c.calm+c.lasts)
		poisson := func(r *rand.Rand, rate float64, from, until time.Time, f func(r *rand.Rand)) {
			all.Go(func() {
				time.Sleep(time.Until(from))
				for time.Now().Before(until) {
					time.Sleep(time.Duration(r.ExpFloat64() / rate * float64(time.Second)))
					own := rand.New(rand.NewPCG(r.Uint64(), r.Uint64()))
					all.Go(func() { f(own) })
				}
			})
		}
		for i := range c.processes {
			l := newLimiter(c.most, c.fixed)
			r := func(n uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, uint64(i)*10+n)) }
			poisson(r(1), c.writes/float64(c.processes), start, end, func(r *rand.Rand) {
				at := time.Now()
				began := mono.Now()
				if !c.silent {
					l.begins(began)
				}
				primary.serve(r)
				if c.writesSlower > 0 && at.After(half) {
					time.Sleep(c.writesSlower)
				}
				if !c.silent {
					l.ends(began, mono.Now())
				}
				mu.Lock()
				defer mu.Unlock()
				switch took := time.Since(at); {
				case at.Before(from):
					out.before = append(out.before, took)
				case at.After(half):
					out.late = append(out.late, took)
					fallthrough
				default:
					out.during = append(out.during, took)
				}
			})
			read := func(r *rand.Rand) {
				p := l.enter()
				if p != nil {
					if slot, _ := p.wait(context.Background(), nil, 200*time.Millisecond); !slot && l.leave(p) {
						mu.Lock()
						out.shed++
						mu.Unlock()
						return
					}
				}
				since := mono.Now()
				primary.serve(r)
				l.release(since)
				mu.Lock()
				out.served++
				mu.Unlock()
			}
			poisson(r(2), c.reads/float64(c.processes), from, end, read)
			if c.sometimes > 0 {
				poisson(r(3), c.sometimes/float64(c.processes), start, from, read)
			}
			all.Go(func() {
				time.Sleep(time.Until(end))
				l.mu.Lock()
				l.look(mono.Now())
				mu.Lock()
				out.limits = append(out.limits, l.limit)
				mu.Unlock()
				l.mu.Unlock()
			})
		}
		all.Wait()
	})
	if len(out.before) < 20 {
		out.before = []time.Duration{c.cost * 5 / 4}
	}
	return out
}

// ratio is how much longer writes took, at the 95th percentile.
func (o *rushed) ratio(of []time.Duration) float64 { return float64(p95(of)) / float64(p95(o.before)) }

// got is the part of what the primary could do beside the writes that reads got.
func (c rush) got(o *rushed) float64 {
	room := float64(c.slots)/(c.cost.Seconds()*1.125) - c.writes
	return float64(o.served) / (min(room, c.reads) * c.lasts.Seconds())
}

func TestWritesHoldWhileReadsFallBack(t *testing.T) {
	t.Parallel()
	// A primary that can do 250 things a second, and is to do 420.
	two := rush{processes: 2, most: 8, slots: 4, cost: 14 * ms, writes: 100, reads: 320, calm: 10 * time.Second, lasts: 10 * time.Second}
	fixed, sometimes, silent, fresh := two, two, two, two
	fixed.fixed, sometimes.sometimes, silent.silent, fresh.calm = true, 5, true, 100*ms
	// One that has room for all.
	ample := two
	ample.slots, ample.reads = 64, 1000
	freshAmple := ample
	freshAmple.calm = 100 * ms
	// Each process has hardly a write to go by.
	few := two
	few.processes, few.writes, few.calm, few.lasts = 4, 8, 40*time.Second, 20*time.Second
	// One read of each process is more than there is room for.
	fleet := rush{processes: 100, most: 8, slots: 16, cost: 4 * ms, writes: 1500, reads: 6000, calm: 5 * time.Second, lasts: 6 * time.Second}
	fleetFixed := fleet
	fleetFixed.fixed = true
	// Writes become slower, and it is not the reads that make them so.
	slower := ample
	slower.writesSlower, slower.lasts = 10*ms, 40*time.Second
	for name, c := range map[string]struct {
		rush
		// How many times as long writes may take, in all and in the second half, and must
		// at least in all; the part of the room that reads must get; whether all slots are
		// there in the end; and the part of the reads that may be sent away.
		most, late, least, part float64
		full                    bool
		shed                    float64
	}{
		"two":         {two, 1.5, 1.4, 0, .35, false, 1},
		"sometimes":   {sometimes, 1.5, 1.4, 0, .35, false, 1},
		"ample":       {ample, 1.1, 1.1, 0, .95, true, .03},
		"few":         {few, 4, 4, 0, .5, false, 1},
		"fleet":       {fleet, 15, 2, 0, .4, false, 1},
		"fixed":       {fixed, 100, 100, 4, 1, true, 1},
		"fleet fixed": {fleetFixed, 1000, 1000, 20, 1, true, 1},
		"silent":      {silent, 100, 100, 4, 1, true, 1},
		"new":         {fresh, 4, 4, 0, .35, false, 1},
		"new, ample":  {freshAmple, 2, 2, 0, .9, true, .1},
		"slower":      {slower, 2, 2, 1.2, .7, true, .3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := c.run(t, 1)
			all, late, part := o.ratio(o.during), o.ratio(o.late), c.got(&o)
			shed := float64(o.shed) / float64(o.shed+o.served)
			t.Logf("writes take %.2f times as long, %.2f in the second half; reads got %.2f of the room, %.3f were sent away; limits %.2f", all, late, part, shed, o.limits[:2])
			if all > c.most || all < c.least || late > c.late || part < c.part || shed > c.shed {
				t.Error("it is more, or less, than it may be")
			}
			if full := slices.Min(o.limits) == float64(c.rush.most); full != c.full {
				t.Errorf("the limits are %v in the end", o.limits)
			}
		})
	}
}

// Nobody knows of slots that nobody wanted whether there is room for them.
func TestLimitDoesNotGrowUntried(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(80, false)
		write := func() {
			began := mono.Now()
			l.begins(began)
			time.Sleep(2 * ms)
			l.ends(began, mono.Now())
		}
		for range 100 {
			write()
			time.Sleep(20 * ms)
		}
		if l.limit != 80/firstLimit {
			t.Errorf("the limit is %v at first", l.limit)
		}
		for range 5 {
			if l.enter() != nil {
				t.Fatal("there is no room")
			}
		}
		since := mono.Now()
		for range 200 {
			write()
		}
		if l.limit != 80/firstLimit || !l.spell {
			t.Errorf("with half of the slots in use the limit is %v; spell %v", l.limit, l.spell)
		}
		for range 5 {
			l.release(since)
		}
	})
}

// beside runs a limiter of 8 beside calm work, and then reads that want all slots for a
// while.
func beside(t *testing.T, calm int, then func(l *limiter, work func(took time.Duration))) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(8, false)
		work := func(took time.Duration) {
			began := mono.Now()
			l.begins(began)
			time.Sleep(took)
			l.ends(began, mono.Now())
		}
		for range calm {
			work(ms)
			time.Sleep(25 * ms)
		}
		then(l, work)
	})
}

// press makes n readers want slots all the time, each for 5 ms, until it is called off.
func (l *limiter) press(n int) (off func()) {
	over := make(chan struct{})
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			for {
				select {
				case <-over:
					return
				default:
				}
				if p := l.enter(); p != nil {
					if slot, _ := p.wait(context.Background(), nil, 200*ms); !slot && l.leave(p) {
						continue
					}
				}
				since := mono.Now()
				time.Sleep(5 * ms)
				l.release(since)
			}
		})
	}
	return func() {
		close(over)
		all.Wait()
	}
}

func (l *limiter) is() float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.look(mono.Now())
	return l.limit
}

// A spell that ends at the least limit ends all the same.
func TestLimitComesBack(t *testing.T) {
	t.Parallel()
	beside(t, 100, func(l *limiter, work func(time.Duration)) {
		off := l.press(20)
		for l.is() > .04 {
			work(10 * ms)
		}
		off()
		time.Sleep(10 * time.Second)
		if l.is() != 1 {
			t.Errorf("the limit is %v when nobody wants to fall back", l.is())
		}
	})
}

// Work that there was once says nothing of today.
func TestLimitWithoutWork(t *testing.T) {
	t.Parallel()
	for _, calm := range []int{0, 1, calmEnough - 1, 100} {
		beside(t, calm, func(l *limiter, _ func(time.Duration)) {
			off := l.press(40)
			defer off()
			time.Sleep(10 * time.Second)
			if l.is() != 8 {
				t.Errorf("after %d pieces of work, and then none, the limit is %v", calm, l.is())
			}
		})
	}
}

// One long piece of work does not freeze the limit, neither high nor low; all work that is
// not answered any more lowers it.
func TestLimitAndLongWork(t *testing.T) {
	t.Parallel()
	beside(t, 100, func(l *limiter, work func(time.Duration)) {
		off := l.press(40)
		defer off()
		for l.is() > .04 {
			work(10 * ms)
		}
		var long sync.WaitGroup
		defer long.Wait()
		long.Go(func() { work(5 * time.Minute) })
		time.Sleep(time.Minute)
		if l.is() != 8 {
			t.Errorf("beside one long piece of work the limit is %v", l.is())
		}
		for range 10 * 50 {
			long.Go(func() { work(time.Minute) })
			time.Sleep(20 * ms)
		}
		if l.is() > 1 {
			t.Errorf("while no work is answered the limit is %v", l.is())
		}
	})
}

// Work that takes longer than a round is seen beside such that does not.
func TestLimitAndTwoKindsOfWork(t *testing.T) {
	t.Parallel()
	for _, slow := range []time.Duration{20 * ms, 70 * ms, 200 * ms, time.Second} {
		beside(t, 400, func(l *limiter, work func(time.Duration)) {
			off := l.press(40)
			var all sync.WaitGroup
			var sum float64
			const n = 20_000 // 20 s
			for i := range n {
				took := ms
				if l.mu.Lock(); i%2 == 0 && l.used > 1 {
					took = slow // more than one read there makes it slow
				}
				l.mu.Unlock()
				all.Go(func() { work(took) })
				time.Sleep(ms)
				if i >= n/2 {
					sum += l.is() / (n / 2)
				}
			}
			off()
			all.Wait()
			if sum > 3 {
				t.Errorf("half of the work takes %v while two reads are there, and the limit is %.1f on average", slow, sum)
			}
		})
	}
}
