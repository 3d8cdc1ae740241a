package chance_test

import (
	"testing"

	"github.com/tidegatedb/tidegate/internal/chance"
)

func draw() (numbers [8]int64) {
	for i := range numbers {
		numbers[i] = chance.Int64N(1 << 40)
		if f := chance.Float64(); f < 0 || f >= 1 {
			panic(f)
		}
	}
	return numbers
}

func TestSeed(t *testing.T) {
	if first, second := draw(), draw(); first == second {
		t.Error("unseeded draws repeat themselves")
	}
	var seeded, again [8]int64
	t.Run("seeded", func(t *testing.T) {
		chance.Seed(t, 7)
		seeded = draw()
		chance.Seed(t, 7)
		again = draw()
	})
	if seeded != again {
		t.Error("the same seed gave other numbers")
	}
	if draw() == seeded {
		t.Error("the seed outlived its test")
	}
}
